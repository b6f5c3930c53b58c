"""The weight loader: a tile is handed over when all of its lanes were taken, never before."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from slipstick_rtl.array.weight_loader import WeightLoader
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION

from .registry import Proof

ROWS = 4


class WholeTiles(wiring.Component):
    """Counts the lanes taken since the last swap or start."""

    instructions: stream.Interface
    swap: Signal

    def __init__(self) -> None:
        super().__init__({"instructions": In(stream.Signature(MATRIX_INSTRUCTION)), "swap": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = Configuration(rows=ROWS, columns=4, lanes=4)
        loader: Any = WeightLoader(configuration=configuration)
        m.submodules.loader = loader
        connect(m, flipped(self.instructions), loader.instructions)
        taken = Signal(range(ROWS + 2))
        accepted = loader.instructions.valid & loader.instructions.ready
        with m.If(self.swap | loader.start):
            m.d.sync += taken.eq(0)
        with m.Elif(loader.advance):
            m.d.sync += taken.eq(taken + 1)
        ready = loader.instructions.ready
        ends = self.swap & loader.final_tile
        m.d.comb += [
            loader.swap.eq(self.swap),
            Assume(~self.swap | loader.prepared, "prepared tiles are swapped in"),
            Assert(~loader.prepared | (taken == ROWS), "handed over with lanes missing"),
            Assert(~(loader.prepared & loader.reading), "prepared while reading"),
            Assert(~(loader.prepared & loader.advance), "prepared while taking lanes"),
            Assert(~loader.reading | (loader.row == taken), "a word for the wrong row"),
            Assert(~loader.prepared | (loader.row == 0), "the next tile starts amid its rows"),
            Assert(loader.reading == loader.advance, "lanes and weights part"),
            Assert(~loader.advance | (taken < ROWS), "more lanes than rows"),
            Assert(loader.last_lane | (loader.row != ROWS - 1), "the last lane is not marked"),
            Assert(loader.start == accepted, "a start without an instruction"),
            Assert(~(ready & loader.reading), "an instruction amid a tile"),
            Assert(~(ready & loader.prepared) | ends, "an instruction amid another"),
        ]
        return m


PROOFS = (Proof(name="weight_loader", component=WholeTiles, depth=3),)
