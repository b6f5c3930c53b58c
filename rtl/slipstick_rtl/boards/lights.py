"""What a board's lights show: states that last long enough for people to see them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

GLOW_SECONDS = 1 / 16
"""How long a state output stays on after what it shows, for people to see it."""

STATES = ("running", "receiving", "sending", "line_error", "alive")
"""What a light can show: the outputs of ``StateLights``."""


class Glow(wiring.Component):
    """Holds a strobe for a time.

    Parameters
    ----------
    cycles : int
        From the last cycle of ``i`` on; at least 1.

    Members
    -------
    i : In
    o : Out
        A cycle after ``i``, for ``cycles`` cycles.
    """

    i: Signal
    o: Signal

    def __init__(self, *, cycles: int) -> None:
        if cycles < 1:
            raise ValueError(f"cycles must be at least 1, not {cycles}")
        self._cycles = cycles
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(self._cycles + 1))
        m.d.comb += self.o.eq(left != 0)
        with m.If(self.i):
            m.d.sync += left.eq(self._cycles)
        with m.Elif(self.o):
            m.d.sync += left.eq(left - 1)
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
        The same, on for at least ``GLOW_SECONDS``.
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
        cycles = max(1, round(self._clock_hz * GLOW_SECONDS))
        shown = {
            "running": (self.busy, self.running),
            "receiving": (self.received, self.receiving),
            "sending": (self.sent, self.sending),
            "line_error": (self.fault, self.line_error),
        }
        for name, (strobe, output) in shown.items():
            m.submodules[name] = glow = Glow(cycles=cycles)
            m.d.comb += [glow.i.eq(strobe), output.eq(glow.o)]
        # its highest bit is a wave of 0.7 to 1.4 Hz
        time = Signal(self._clock_hz.bit_length())
        m.d.sync += time.eq(time + 1)
        m.d.comb += self.alive.eq(time[-1])
        return m
