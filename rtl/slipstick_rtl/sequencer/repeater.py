"""The repeater: an instruction as often as it says, each turn a little further on."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class Repeater(wiring.Component):
    """Turns an instruction with ``repeats`` into ``repeats`` + 1 of them, each with the next bank.

    A turn is presented in the cycle after its instruction, or the turn before it, was taken. The
    next instruction is taken with the last turn of this one.

    Parameters
    ----------
    layout : data.StructLayout
        Of the instructions, with ``bank``, ``parts``, ``wait`` and ``repeats``.
    steps : mapping of str to str
        Fields that grow from turn to turn, and the fields that hold by how much.
    fills : bool
        The instruction fills banks: as many turns as there are banks wait for what the first one
        waits for, unless it ``waits_each``. It is each turn behind them, or else behind the first,
        that waits for one more.

    Members
    -------
    i, o : In(stream), Out(stream)
    busy : Out
        An instruction is at hand.
    """

    i: stream.Interface
    o: stream.Interface
    busy: Signal

    def __init__(self, *, layout: data.StructLayout, steps: Mapping[str, str], fills: bool) -> None:
        self._layout, self._steps, self._fills = layout, dict(steps), fills
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turn = Signal(self._layout, reset_less=True)
        held, following = Signal(3, reset_less=True), Signal(3)
        last = Signal(reset_less=True)
        taken = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.payload.eq(turn),
            self.busy.eq(self.o.valid),
            following.eq(turn.bank + 1),
            self.i.ready.eq(~self.o.valid | (self.o.ready & last)),
        ]
        with m.If(taken):
            m.d.sync += [
                turn.bank.eq(following & Cat(1, turn.parts != 0, turn.parts[1])),
                turn.repeats.eq(turn.repeats - 1),
                last.eq(turn.repeats == 1),
                held.eq(Mux(held == 0, 0, held - 1)),
                turn.wait.eq(turn.wait + (held == 0)),
                *(turn[name].eq(turn[name] + turn[step]) for name, step in self._steps.items()),
                self.o.valid.eq(~last),
            ]
        given: data.View = self.i.payload
        unheld: Value = Const(0, 3)
        if self._fills:
            unheld = Mux(given.waits_each, 0, Cat(1, given.parts != 0, given.parts[1]))
        # whether there is an instruction is of no matter but to ``valid``
        with m.If(self.i.ready):
            m.d.sync += [
                Value.cast(turn).eq(Value.cast(self.i.payload)),
                last.eq(self.i.payload.repeats == 0),
                held.eq(unheld),
                self.o.valid.eq(self.i.valid),
            ]
        return m
