"""Instructions of one operation, for a part of its output."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode

from ..steps import Placement
from .images import CELLS_OF_NINTH, Images
from .operations import Convolution, Map, Window
from .reduction import ChannelTile, channel_tiles, is_diagonal, weight_words
from .requantization import Requantization
from .streams import Instruction, Region

Span = tuple[int, int]


@dataclass(frozen=True)
class Rectangle:
    """Rows and columns of an output, each (first, behind the last)."""

    rows: Span
    columns: Span

    def words(self, pixels: int) -> int:
        """The accumulators that it takes, of so many pixels each."""
        (y0, y1), (x0, x1) = self.rows, self.columns
        return (y1 - y0) * -(-(x1 - x0) // pixels)


@dataclass(frozen=True)
class Site:
    """Where an operation reads and writes, and the names of those buffers."""

    sources: tuple[Placement, ...]
    result: Placement
    source_buffers: tuple[str, ...]
    buffer: str


class ConvolutionEmitter:
    """Emits a convolution, tile by tile; its weights and parameters are placed once.

    Parameters
    ----------
    convolution : Convolution
    operation : int
        Its index.
    site : Site
    images : Images
    configuration : Configuration
    """

    def __init__(
        self,
        convolution: Convolution,
        operation: int,
        site: Site,
        images: Images,
        configuration: Configuration,
    ) -> None:
        self.convolution, self._operation = convolution, operation
        source, self._result = site.sources[0], _folded(site.result, convolution.pixels)
        self._source, self.buffer = source, site.buffer
        self._configuration = configuration
        pitches = (source.row_pitch, source.pixel_pitch)
        self.tiles = channel_tiles(convolution, pitches, configuration)
        self._from_ninth = convolution.node.name in images.in_ninth
        words = [
            weight_words(convolution, tile, source.pixel_pitch, configuration)
            for tile in self.tiles
        ]
        # all tiles in a row, equal ones too: turns of one instruction take them with equal steps
        first = images.add_weights(np.concatenate(words), convolution.node.name)
        apart = itertools.accumulate((len(part) for part in words[:-1]), initial=0)
        scale = CELLS_OF_NINTH if self._from_ninth else 1
        self._weights = [first + scale * words_before for words_before in apart]
        self._parameters = [
            images.add_parameters(
                convolution.requantization, tile.first, tile.count, convolution.node.name
            )
            for tile in self.tiles
            if convolution.drains
        ]

    def emit(
        self, rectangle: Rectangle, number: int, bank: int, parts: int
    ) -> Iterator[Instruction]:
        """CONVOLVE and DRAIN of one rectangle of pixels and one tile of channels.

        Parameters
        ----------
        rectangle : Rectangle
        number : int
            The tile of channels.
        bank, parts : int
            Tiles before it, which take the banks in turns, and what banks there are.
        """
        tile = self.tiles[number]
        made = [self._convolve(rectangle, tile, self._weights[number])]
        if self.convolution.drains:
            made.append(self._drain(rectangle, tile, self._parameters[number]))
        for instruction in made:
            fields = {**instruction.fields, "parts": parts}
            yield dataclasses.replace(instruction, fields=fields, bank=bank)

    def _convolve(self, rectangle: Rectangle, tile: ChannelTile, weights: int) -> Instruction:
        convolution, source, reduction = self.convolution, self._source, tile.reduction
        (y0, y1), (x0, x1) = rectangle.rows, rectangle.columns
        stride_y, stride_x = convolution.stride
        dilation_y, dilation_x = convolution.dilation
        origin_y = y0 * stride_y - convolution.padding[0]
        origin_x = x0 * stride_x - convolution.padding[1]
        offset = origin_y * source.row_pitch + origin_x * source.pixel_pitch + reduction.first
        last_row = origin_y + (y1 - y0 - 1) * stride_y + (convolution.kernel[0] - 1) * dilation_y
        rows = (max(origin_y, 0), min(last_row + 1, source.height))
        sliding = reduction.sliding
        diagonal = sliding is None and is_diagonal(convolution, self._configuration)
        fields = {
            "opcode": Opcode.CONVOLVE,
            "accumulate": convolution.accumulates,
            "diagonal": diagonal,
            "depthwise": 0,
            "skip": 0,
            "align_tap": reduction.align_tap,
            "align_row": reduction.align_row,
            "weight_address": weights,
            "reduction_tiles": reduction.tiles,
            "channels": reduction.channels,
            "kernel_x": reduction.kernel[1],
            "tap_step_x": reduction.steps[1],
            "tap_step_y": reduction.steps[0],
            "dilation_x": dilation_x,
            "dilation_y": dilation_y,
            "origin": source.address + offset,
            "origin_y": origin_y,
            "origin_x": origin_x,
            "height": source.height,
            "width": 1 if reduction.merged else source.width,
            "stride_y": stride_y,
            "stride_x": stride_x,
            "column_step": stride_x * source.pixel_pitch,
            "row_step": stride_y * source.row_pitch,
            "rows": y1 - y0,
            "groups": -(-(x1 - x0) // self._configuration.pixels),
            "padding_value": convolution.input_zero_point,
            "pairs": reduction.pairs,
            "from_ninth": self._from_ninth,
            "whole_words": reduction.channels % self._configuration.weight_rows == 0,
        }
        if sliding is not None:
            fields |= sliding.fields(convolution, (source.row_pitch, source.pixel_pitch))
            for pair in (("origin_y", "origin_x"), ("height", "width"), ("rows", "groups")):
                sides = fields[pair[0]], fields[pair[1]]
                fields |= dict(zip(pair, sliding.exchanged(sides), strict=True))
        read = Region(source, rows, (reduction.first, reduction.first + reduction.channels))
        return Instruction(self._operation, fields, reads=(read,))

    def _drain(self, rectangle: Rectangle, tile: ChannelTile, parameters: int) -> Instruction:
        lanes, values = self._configuration.lanes, self.convolution.requantization
        slices = -(-tile.count // lanes)
        fields = {
            "opcode": Opcode.DRAIN,
            **_loops(rectangle, slices),
            **_destination(self._result, rectangle, tile.first),
            **_turned(tile, rectangle, self._result),
            "parameter_address": parameters,
            **_finish(values, tile.rounding),
        }
        channels = (tile.first, tile.first + slices * lanes)
        write = Region(self._result, rectangle.rows, channels)
        return Instruction(self._operation, fields, writes=(write,))


def _turned(tile: ChannelTile, rectangle: Rectangle, place: Placement) -> dict[str, int]:
    """Fields of a DRAIN that are exchanged if the accumulators hold columns of the output."""
    sliding = tile.reduction.sliding
    if sliding is None or sliding.along == 1:
        return {}
    return {
        "rows": rectangle.columns[1] - rectangle.columns[0],
        "columns": rectangle.rows[1] - rectangle.rows[0],
        "destination_row_step": place.pixel_pitch,
        "destination_column_step": place.row_pitch,
    }


def _folded(place: Placement, pixels: int) -> Placement:
    """A placement whose pixels are so many neighbours each."""
    if pixels == 1:
        return place
    return dataclasses.replace(
        place,
        pixel_pitch=pixels * place.pixel_pitch,
        width=place.width // pixels,
        channels=pixels * place.channels,
    )


def _loops(rectangle: Rectangle, slices: int) -> dict[str, int]:
    return {
        "rows": rectangle.rows[1] - rectangle.rows[0],
        "columns": rectangle.columns[1] - rectangle.columns[0],
        "slices": slices,
    }


def _destination(place: Placement, rectangle: Rectangle, channel: int) -> dict[str, int]:
    return {
        "destination": place.address
        + rectangle.rows[0] * place.row_pitch
        + rectangle.columns[0] * place.pixel_pitch
        + channel,
        "destination_row_step": place.row_pitch,
        "destination_column_step": place.pixel_pitch,
    }


def _finish(values: Requantization, rounding: int) -> dict[str, int]:
    return {
        "rounding": rounding,
        "zero_point": values.zero_point,
        "minimum": values.minimum,
        "maximum": values.maximum,
    }


class MapEmitter:
    """Emits a map, in parts of its output; its table and parameters are placed once."""

    def __init__(
        self,
        operation: Map,
        index: int,
        site: Site,
        images: Images,
        configuration: Configuration,
    ) -> None:
        self.map, self._index = operation, index
        self._sources, self._result = site.sources, site.result
        self.buffer, self.source_buffers = site.buffer, site.source_buffers
        self._configuration = configuration
        name = operation.node.name
        self._parameters = [
            images.add_single(window.requantization, name) for window in operation.windows
        ]
        self._table = None if operation.table is None else images.add_table(operation.table, name)

    @property
    def table(self) -> tuple[int, int] | None:
        """(address, words) of its table."""
        return self._table

    def load_table(self) -> Instruction:
        """The TABLE that must come before its MAPs."""
        address, words = self._table or (0, 0)
        fields: Mapping[str, int] = {
            "opcode": Opcode.TABLE,
            "table_address": address,
            "table_words": words,
        }
        return Instruction(self._index, fields)

    def rows_needed(self, row: int, buffer: str) -> Span:
        """Rows of an input, clipped, that an output row depends on."""
        second = self.map.is_sum and buffer == self.source_buffers[1]
        shift = self.map.second_origin[0] if second else 0
        spans = []
        for window in self.map.windows:
            if window.rows[0] <= row < window.rows[1]:
                start = window.origin[0] + (row - window.rows[0]) * window.stride[0] + shift
                spans.append((start, start + window.taps[0]))
        return min(span[0] for span in spans), max(span[1] for span in spans)

    def emit(self, rows: Span, channels: Span) -> Iterator[Instruction]:
        """MAPs of some output rows and channels, one for each window that they meet."""
        for number, window in enumerate(self.map.windows):
            places = window.covered(rows)
            if places[0] < places[1]:
                part = window.channels or channels
                yield self._map(window, places, part, self._parameters[number])

    def _map(self, window: Window, places: Span, channels: Span, parameters: int) -> Instruction:
        lanes, values = self._configuration.lanes, window.requantization
        sources = self._sources[window.source :][:1] if self.map.gathers else self._sources
        source, count = sources[0], places[1] - places[0]
        top = window.origin[0] + places[0] * window.stride[0]
        bottom = top + (count - 1) * window.stride[0] + window.taps[0]
        first = window.rows[0] + places[0] * window.step[0]
        last = first + (count - 1) * window.step[0]
        taps_y, taps_x, tap_step_x = (*window.taps, source.pixel_pitch)
        shifts = [0] * len(sources)
        if len(sources) == 2:
            # the two operands are the taps
            shifts[1], across = self.map.second_origin
            away = shifts[1] * source.row_pitch + across * source.pixel_pitch
            taps_x, tap_step_x = 2, sources[1].address - source.address + away
        # a copy reads other channels than it writes
        read = channels[0] if window.channels is None else window.origin_channel
        slices = -(-channels[1] // lanes) - channels[0] // lanes
        place = self._result
        fields = {
            "opcode": Opcode.MAP,
            "rows": count,
            "columns": -(-(window.columns[1] - window.columns[0]) // window.step[1]),
            "slices": slices,
            "destination": place.address
            + first * place.row_pitch
            + window.columns[0] * place.pixel_pitch
            + channels[0],
            "destination_row_step": window.step[0] * place.row_pitch,
            "destination_column_step": window.step[1] * place.pixel_pitch,
            "parameter_address": parameters,
            **_finish(values, int(values.rounding[0])),
            "source": source.address
            + top * source.row_pitch
            + window.origin[1] * source.pixel_pitch
            + read,
            "source_row_step": window.stride[0] * source.row_pitch,
            "source_column_step": window.stride[1] * source.pixel_pitch,
            "taps_y": taps_y,
            "taps_x": taps_x,
            "tap_step_y": source.row_pitch,
            "tap_step_x": tap_step_x,
            "take_maximum": self.map.take_maximum,
            "use_table": self.map.looked_up,
            "shift_taps": self.map.shifts,
        }
        touched = (read // lanes * lanes, read // lanes * lanes + slices * lanes)
        reads = tuple(
            Region(place, (top + shift, bottom + shift), touched)
            for place, shift in zip(sources, shifts, strict=True)
        )
        written = channels[0] // lanes * lanes
        write = Region(self._result, (first, last + 1), (written, written + slices * lanes))
        return Instruction(self._index, fields, reads=reads, writes=(write,))
