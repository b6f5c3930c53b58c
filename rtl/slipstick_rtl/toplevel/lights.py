"""Shows states on a board's lights, long enough for people to see them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .board import STATES

GLOW_SECONDS = 1 / 16
"""Time that a state output stays on after the state has ended, for people to see it."""


class Glow(wiring.Component):
    """Holds a strobe until the second tick after it: for one to two times from tick to tick.

    Members
    -------
    i : In
    tick : In
        Strobes that many of these share.
    o : Out
        From the cycle after ``i`` on.
    """

    i: Signal
    tick: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(1), "tick": In(1), "o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(2)
        m.d.comb += self.o.eq(left.any())
        with m.If(self.i):
            m.d.sync += left.eq(0b11)
        with m.Elif(self.tick):
            m.d.sync += left.eq(left >> 1)
        return m


class StateLights(wiring.Component):
    """The states of a core behind a physical layer, one output each.

    Parameters
    ----------
    clock_hz : int
        Of ``sync``.

    Members
    -------
    busy : In
        A program runs.
    received, sent, fault : In
        Strobes: a byte came, a byte went, a byte was lost.
    running, receiving, sending, line_error : Out
        The same a cycle later, on for at least ``GLOW_SECONDS``.
    alive : Out
        On half a second of each second or so, while the clock runs.
    """

    busy: Signal
    received: Signal
    sent: Signal
    fault: Signal
    running: Signal
    receiving: Signal
    sending: Signal
    line_error: Signal
    alive: Signal

    def __init__(self, *, clock_hz: int) -> None:
        if clock_hz < 2:
            raise ValueError(f"clock_hz must be at least 2, not {clock_hz}")
        self._clock_hz = clock_hz
        super().__init__(
            {
                **{name: In(1) for name in ("busy", "received", "sent", "fault")},
                **{name: Out(1) for name in STATES},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # its highest bit is a wave of 0.5 to 1 Hz
        time = Signal(self._clock_hz.bit_length())
        turned, tick = Signal(), Signal()
        turning = time[ceil_log2(max(2, round(self._clock_hz * GLOW_SECONDS)))]
        m.d.sync += [time.eq(time + 1), turned.eq(turning)]
        m.d.comb += [tick.eq(turning ^ turned), self.alive.eq(time[-1])]
        shown = {
            "running": (self.busy, self.running),
            "receiving": (self.received, self.receiving),
            "sending": (self.sent, self.sending),
            "line_error": (self.fault, self.line_error),
        }
        for name, (strobe, output) in shown.items():
            m.submodules[name] = glow = Glow()
            # nobody sees a cycle, and strobes come from far away, with logic before them
            taken = Signal(name=f"{name}_taken")
            m.d.sync += taken.eq(strobe)
            m.d.comb += [glow.i.eq(taken), glow.tick.eq(tick), output.eq(glow.o)]
        return m
