"""Instructions of a convolution, for a part of its output."""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import POST_FIELDS, Opcode

from ...program.steps import Placement
from ..ir.operations import Convolution
from ..ir.requantization import Requantization
from ..mapping.depthwise_window import Sliding
from ..mapping.reduction import ChannelTile, channel_tiles, weight_words
from ..memory.constants import CELLS_OF_NINTH, Images
from ..timing.timeline import Instruction, Region

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
    """Holds where an operation reads and writes, and the names of those buffers."""

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
    keeps : bool
        Input rows may be kept in the array: then its output may not be cut at will.
    """

    def __init__(
        self,
        convolution: Convolution,
        operation: int,
        site: Site,
        images: Images,
        configuration: Configuration,
        *,
        keeps: bool = True,
    ) -> None:
        self.convolution, self._operation = convolution, operation
        source, self._result = site.sources[0], _folded(site.result, convolution.pixels)
        self._source, self.buffer = source, site.buffer
        self._configuration = configuration
        pitches = (source.row_pitch, source.pixel_pitch)
        self.tiles = channel_tiles(convolution, pitches, configuration, keeps=keeps)
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
        self._table = None
        if convolution.function is not None and convolution.drains:
            table = convolution.function.astype(np.int32)
            self._table = images.add_table(table, convolution.node.name)

    @property
    def table(self) -> tuple[int, int] | None:
        """(address, words) of the table that its results go through."""
        return self._table

    def load_table(self) -> Instruction:
        """The TABLE that must come before its DRAINs."""
        return load_table(self._operation, self._table)

    @property
    def kept_along(self) -> int | None:
        """The side along which kernels slide that keep rows of the input, if they do."""
        ways = [tile.reduction.sliding for tile in self.tiles]
        return next((way.along for way in ways if way is not None and way.keeps), None)

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
        if convolution.source_apart and 2 * x0 >= convolution.input.width:
            # the second half of the image is the second half of the channels, so far to the left
            offset += convolution.input.channels - convolution.source_apart * source.pixel_pitch
        width = convolution.input.width if convolution.source_apart else source.width
        last_row = origin_y + (y1 - y0 - 1) * stride_y + (convolution.kernel[0] - 1) * dilation_y
        rows = (max(origin_y, 0), min(last_row + 1, source.height))
        sliding = reduction.sliding
        fields = {
            "opcode": Opcode.CONVOLVE,
            "accumulate": convolution.accumulates,
            "diagonal": reduction.diagonal,
            "depthwise": 0,
            "skip": 0,
            "kept_rows": 0,
            "joined": 0,
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
            "width": 1 if reduction.merged else width,
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
            fields |= self._slide(sliding, rectangle, reduction.first)
        channels = (reduction.first, reduction.first + reduction.channels)
        if convolution.source_apart:
            channels = (0, source.channels)
        read = Region(source, rows, channels)
        return Instruction(self._operation, fields, reads=(read,))

    def _slide(self, sliding: Sliding, rectangle: Rectangle, channel: int) -> dict[str, int]:
        """Fields of a CONVOLVE whose kernel slides, in place of the others'."""
        source, convolution = self._source, self.convolution
        spans = (rectangle.rows, rectangle.columns)
        first = list(sliding.origin(convolution, spans))
        address = source.address + channel
        address += first[0] * source.row_pitch + first[1] * source.pixel_pitch
        inputs = (source.height, source.width)
        if sliding.backwards:
            first[sliding.across] = inputs[sliding.across] - 1 - first[sliding.across]
        fields = sliding.fields(convolution, (source.row_pitch, source.pixel_pitch))
        outputs = (spans[0][1] - spans[0][0], spans[1][1] - spans[1][0])
        for names, sides in (
            (("origin_y", "origin_x"), (first[0], first[1])),
            (("height", "width"), inputs),
            (("rows", "groups"), outputs),
        ):
            fields |= dict(zip(names, sliding.exchanged(sides), strict=True))
        result = convolution.output
        whole = outputs[sliding.along] == (result.height, result.width)[sliding.along]
        return {**fields, "origin": address, "joined": sliding.joins and whole}

    def _drain(self, rectangle: Rectangle, tile: ChannelTile, parameters: int) -> Instruction:
        lanes, values = self._configuration.lanes, self.convolution.requantization
        slices = -(-tile.count // lanes)
        fields = {
            "opcode": Opcode.DRAIN,
            **_loops(rectangle, slices),
            **_destination(self._result, rectangle, tile.first),
            **_turned(tile, rectangle, self._result),
            "parameter_address": parameters,
            "use_table": self._table is not None,
            **finish_fields(values, tile.rounding, self._configuration),
        }
        channels = (tile.first, tile.first + slices * lanes)
        write = Region(self._result, rectangle.rows, channels)
        return Instruction(self._operation, fields, writes=(write,))


def load_table(operation: int, table: tuple[int, int] | None) -> Instruction:
    """A TABLE from (address, words)."""
    address, words = table or (0, 0)
    fields = {"opcode": Opcode.TABLE, "table_address": address, "table_words": words}
    return Instruction(operation, fields)


def _turned(tile: ChannelTile, rectangle: Rectangle, place: Placement) -> dict[str, int]:
    """Fields of a DRAIN that are others if the accumulators hold columns of the output, or hold
    it from its end on."""
    sliding = tile.reduction.sliding
    if sliding is None:
        return {}
    outputs = (
        rectangle.rows[1] - rectangle.rows[0],
        rectangle.columns[1] - rectangle.columns[0],
    )
    rows, columns = sliding.exchanged(outputs)
    row_step, column_step = sliding.exchanged((place.row_pitch, place.pixel_pitch))
    fields = _destination(place, rectangle, tile.first)
    if sliding.backwards:
        fields["destination"] += (rows - 1) * row_step
        row_step = -row_step % (1 << POST_FIELDS["destination_row_step"].width)
    steps = {"destination_row_step": row_step, "destination_column_step": column_step}
    return {**fields, **steps, "rows": rows, "columns": columns}


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


def finish_fields(
    values: Requantization, rounding: int, configuration: Configuration
) -> dict[str, int]:
    """Returns the fields that all results of an instruction have in common."""
    return {
        "rounding": rounding,
        "zero_point": values.zero_point,
        "minimum": values.minimum,
        "maximum": values.maximum,
        "coded": "coded" not in configuration.format.absent_fields and values.coded,
    }
