"""The weight loader: prepares the next reduction tile, lanes and weights, while one is at work."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION

TILE_OVERHEAD = 1
"""Cycles beyond R from one tile's swap until the next one's."""


class WeightLoader(wiring.Component):
    """Takes CONVOLVEs, walks their reduction tiles, R cycles each, and hands them over.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream)
    instruction : Out
        The CONVOLVE whose tile is being prepared.
    start, advance, last_lane : Out
        For the lane table.
    reading, address : Out
        A weight word to be read; with ``diagonal`` only byte ``row`` of it counts.
    row : Out
        The array row that the word is for.
    diagonal : Out
    prepared : Out
        A tile waits to be swapped in.
    first_tile, final_tile : Out
        Of its instruction.
    swap : In
        The prepared tile goes to work; only while ``prepared``.
    """

    instruction: data.View
    start: Signal
    advance: Signal
    last_lane: Signal
    reading: Signal
    address: Signal
    row: Signal
    diagonal: Signal
    prepared: Signal
    first_tile: Signal
    final_tile: Signal
    swap: Signal
    instructions: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._rows = configuration.rows
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "instruction": Out(MATRIX_INSTRUCTION),
                "start": Out(1),
                "advance": Out(1),
                "last_lane": Out(1),
                "reading": Out(1),
                "address": Out(24),
                "row": Out(exact_log2(self._rows)),
                "diagonal": Out(1),
                "prepared": Out(1),
                "first_tile": Out(1),
                "final_tile": Out(1),
                "swap": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        holding, loading = Signal(), Signal()
        tiles_left = Signal(16)
        given = self.instructions
        m.d.comb += [
            # a cycle after the final swap, on which the fetcher and all lanes would hang
            given.ready.eq(~holding),
            self.start.eq(given.valid & given.ready),
            self.advance.eq(loading),
            self.reading.eq(loading),
            self.last_lane.eq(self.row == self._rows - 1),
            self.diagonal.eq(self.instruction.diagonal),
        ]
        with m.If(loading):
            m.d.sync += self.row.eq(self.row + 1)
            with m.If(self.last_lane | ~self.diagonal):
                m.d.sync += self.address.eq(self.address + 1)
            with m.If(self.last_lane):
                # beside ``loading``, on which all lanes hang, so that the swap comes soon
                m.d.sync += [loading.eq(0), self.prepared.eq(1)]
        with m.If(self.swap):
            m.d.sync += [
                self.prepared.eq(0),
                loading.eq(~self.final_tile),
                tiles_left.eq(tiles_left - 1),
                self.final_tile.eq(tiles_left == 1),
                self.first_tile.eq(0),
                holding.eq(~self.final_tile),
            ]
        with m.If(self.start):
            m.d.sync += [
                self.instruction.eq(given.payload),
                self.address.eq(given.payload.weight_address),
                tiles_left.eq(given.payload.reduction_tiles - 1),
                self.final_tile.eq(given.payload.reduction_tiles == 1),
                self.first_tile.eq(1),
                loading.eq(1),
                holding.eq(1),
                self.row.eq(0),
            ]
        return m
