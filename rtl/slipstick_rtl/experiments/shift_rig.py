"""Surrounds a piece of gateware so that it can be placed and routed by itself."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class ShiftRig(wiring.Component):
    """Inputs come in bit by bit; of each output the parity goes out.

    Every input of the piece is a register, and every output goes to one; the parities take a tree
    of registered gates, so that the piece alone decides the clock.

    Parameters
    ----------
    piece : Elaboratable
    inputs, outputs : sequences of Value
        Its ports.

    Members
    -------
    clk, i : In
    o : Out
        A bit an output.
    """

    clk: Signal
    i: Signal
    o: Signal

    def __init__(self, *, piece: Any, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self._piece, self._inputs, self._outputs = piece, inputs, outputs
        super().__init__({"clk": In(1), "i": In(1), "o": Out(len(outputs))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.d.comb += ClockSignal().eq(self.clk)
        m.submodules.piece = self._piece
        chain = Signal(sum(map(len, self._inputs)))
        m.d.sync += chain.eq(Cat(self.i, chain))
        m.d.comb += Cat(*self._inputs).eq(chain)
        for place, output in enumerate(self._outputs):
            word = Signal(len(output), name=f"word_{place}")
            m.d.sync += word.eq(output)
            m.d.comb += self.o[place].eq(_parity(m, word, f"parity_{place}"))
        return m


def _parity(m: Module, word: Value, name: str) -> Value:
    """Computes the parity of a word, four bits at a time, a register each."""
    while len(word) > 1:
        pieces = [word[k : k + 4].xor() for k in range(0, len(word), 4)]
        register = Signal(len(pieces), name=f"{name}_{len(pieces)}")
        m.d.sync += register.eq(Cat(pieces))
        word = register
    return word
