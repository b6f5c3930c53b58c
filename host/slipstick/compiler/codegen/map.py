"""Instructions of a map, for a part of its output."""

from collections.abc import Iterator

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import PRODUCT_TAPS, MapFlag, Opcode

from ..ir.operations import Map, Window
from ..memory.constants import Images
from ..timing.timeline import Instruction, Region
from .convolution import Site, Span, finish_fields, load_table


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
        return load_table(self._index, self._table)

    def rows_needed(self, row: int, buffer: str) -> Span:
        """Rows of an input, clipped, that an output row depends on."""
        second = self.map.is_binary and buffer == self.source_buffers[1]
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
            taps_x = PRODUCT_TAPS if self.map.multiplies else 2
            tap_step_x = sources[1].address - source.address + away
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
            **finish_fields(values, int(values.rounding[0]), self._configuration),
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
            "table_words": MapFlag.MULTIPLY if self.map.multiplies else 0,
        }
        touched = (read // lanes * lanes, read // lanes * lanes + slices * lanes)
        reads = tuple(
            Region(place, (top + shift, bottom + shift), touched)
            for place, shift in zip(sources, shifts, strict=True)
        )
        written = channels[0] // lanes * lanes
        write = Region(self._result, (first, last + 1), (written, written + slices * lanes))
        return Instruction(self._index, fields, reads=reads, writes=(write,))
