"""The tile control: which tile of which CONVOLVE goes to work next, and whether it may."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import MATRIX_INSTRUCTION


class TileControl(wiring.Component):
    """Holds a CONVOLVE until the last of its tiles was swapped in.

    Members
    -------
    instructions : In(stream)
    instruction : Out
        The one whose tile is next, while ``holding``.
    holding : Out
    post_done : In
        Instructions that the post stream has completed.
    in_step, prepared : In
        In the next cycle a tile may go to work; there is one.
    permitted, next_permitted : Out
        It may, there is, and ``instruction`` need not wait for more; two cycles after it was taken
        at the earliest. And so in the next cycle.
    first_tile, final_tile : Out
        Of the instruction, the next tile is.
    swap : In
        The tile goes to work.
    """

    instruction: data.View
    holding: Signal
    post_done: Signal
    in_step: Signal
    prepared: Signal
    permitted: Signal
    next_permitted: Signal
    first_tile: Signal
    final_tile: Signal
    swap: Signal
    instructions: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "instruction": Out(MATRIX_INSTRUCTION),
                "holding": Out(1),
                "post_done": In(16),
                "in_step": In(1),
                "prepared": In(1),
                "permitted": Out(1),
                "next_permitted": Out(1),
                "first_tile": Out(1),
                "final_tile": Out(1),
                "swap": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tiles_left = Signal(16, reset_less=True)
        instruction = Signal(MATRIX_INSTRUCTION, reset_less=True)
        given: data.View = self.instructions.payload
        m.d.comb += [
            # a cycle after the final swap, on which the fetcher would hang
            self.instructions.ready.eq(~self.holding),
            self.instruction.eq(instruction),
        ]
        waited = ~(self.post_done - instruction.wait)[15]
        ended = self.swap & self.final_tile
        m.d.comb += self.next_permitted.eq(
            self.holding & waited & self.in_step & self.prepared & ~ended
        )
        m.d.sync += self.permitted.eq(self.next_permitted)
        with m.If(self.swap):
            m.d.sync += [
                tiles_left.eq(tiles_left - 1),
                self.final_tile.eq(tiles_left == 1),
                self.first_tile.eq(0),
            ]
        with m.If(ended):
            m.d.sync += self.holding.eq(0)
        with m.If(self.instructions.valid & self.instructions.ready):
            m.d.sync += [
                instruction.eq(given),
                tiles_left.eq(given.reduction_tiles - 1),
                self.final_tile.eq(given.reduction_tiles == 1),
                self.first_tile.eq(1),
                self.holding.eq(1),
            ]
        return m
