"""The weight loader: tiles are read whole and in order, and never captured too early."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from slipstick_rtl.array.weight_loader import WeightLoader
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION

from .registry import Proof

ROWS = 4


class WholeTiles(wiring.Component):
    """Counts the words read, the tiles that they make, and the cycles since the last swap."""

    instructions: stream.Interface
    swap: Signal
    ready: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "swap": In(1),
                "ready": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = Configuration(rows=ROWS, columns=4, lanes=4)
        loader: Any = WeightLoader(configuration=configuration)
        m.submodules.loader = loader
        connect(m, flipped(self.instructions), loader.instructions)
        words, pending = Signal(range(ROWS)), Signal()
        since = Signal(range(ROWS + 1), init=ROWS)
        taken = loader.reads.valid & loader.reads.ready
        whole = taken & (words == ROWS - 1)
        with m.If(taken):
            m.d.sync += words.eq(words + 1)
        with m.If(whole):
            m.d.sync += pending.eq(1)
        with m.Elif(self.swap):
            m.d.sync += pending.eq(0)
        m.d.sync += since.eq(Mux(self.swap, 1, Mux(since == ROWS, ROWS, since + 1)))
        waits, address = Signal(), Signal(24)
        idle = loader.instructions.ready & ~loader.reads.valid
        m.d.sync += [waits.eq(loader.reads.valid & ~self.ready), address.eq(loader.reads.payload)]
        m.d.comb += [
            loader.swap.eq(self.swap),
            loader.reads.ready.eq(self.ready),
            Assume(~self.swap | loader.prepared, "prepared tiles are swapped in"),
            Assert(~loader.from_ninth, "ninth bits where there are none"),
            Assert(idle | loader.whole, "a read that completes no word"),
            Assert(loader.step == words, "a word for the wrong row"),
            Assert(loader.first == (words == 0), "the first word is not marked"),
            Assert(loader.last == (words == ROWS - 1), "the last word is not marked"),
            Assert(loader.prepared == pending, "a tile is handed over that was not read"),
            Assert(~pending | (words <= 1), "captured over a tile that waits"),
            Assert(since >= words, "captured over a tile at work"),
            Assert(~(taken & pending) | (words == 0), "a second word while a tile waits"),
            Assert(~waits | loader.reads.valid, "a read is taken back"),
            Assert(~waits | (address == loader.reads.payload), "a read changes"),
        ]
        return m


PROOFS = (Proof(name="weight_loader", component=WholeTiles, depth=ROWS + 2),)
