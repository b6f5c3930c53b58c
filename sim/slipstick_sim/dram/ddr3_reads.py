"""The way of what DDR3 sends through the PHY: right only with the right delay and slip."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.dram.ddr3 import PHASES, Ddr3Settings
from slipstick_rtl.dram.ddr3_signals import DelaySignature
from slipstick_rtl.primitives.delay import delay

WINDOW = data.StructLayout({"first": 3, "last": 3, "slip": 2, "exists": 1, "strobe": 1})
"""Delays that are right, with the slip that is right; whether any are, and the strobe is seen."""

Window = dict[str, int]


def window(first: int = 0, last: int = 7, slip: int = 0, **other: int) -> Window:
    """Returns the fields of a WINDOW that exists and whose strobe is seen."""
    return {"first": first, "last": last, "slip": slip, "exists": 1, "strobe": 1, **other}


_STAGES = 4
"""Parts of a burst that the slip chooses from: one before, two of the burst, one after."""
_REST_CYCLES = 16
"""After a byte was selected its reads are wrong for so long."""
_NOISE = 0xC3
"""A word where there is no burst; also what is wrong in each word at a wrong delay."""


class Ddr3Reads(wiring.Component):
    """Delays bursts, and shifts or spoils the bytes whose delay or slip is wrong.

    Parameters
    ----------
    settings : Ddr3Settings

    Members
    -------
    valid, burst : In
        A burst, in the cycle after its READ.
    delays : In(DelaySignature)
    windows : In(array of WINDOW)
    read_data : Out
        The burst, ``read_latency`` cycles behind its READ.
    """

    valid: Signal
    burst: Signal
    delays: Any
    windows: data.View
    read_data: Signal

    def __init__(self, *, settings: Ddr3Settings) -> None:
        self._settings = settings
        super().__init__(
            {
                "valid": In(1),
                "burst": In(settings.word_bits),
                "delays": In(DelaySignature(settings)),
                "windows": In(data.ArrayLayout(WINDOW, settings.chip.groups)),
                "read_data": Out(settings.word_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings, groups = self._settings, self._settings.chip.groups
        # the PHY gets half a burst in a cycle
        waits = settings.read_latency - _STAGES + 1
        valid = delay(m, self.valid, waits, "valid")
        burst = delay(m, self.burst, waits, "burst")
        second, rest = Signal(), Signal(settings.word_bits // PHASES)
        m.d.sync += [second.eq(valid), rest.eq(burst[len(rest) :])]
        noise = Const(int.from_bytes([_NOISE] * (len(rest) // 8)), len(rest))
        part = Mux(valid, burst[: len(rest)], Mux(second, rest, noise))
        parts = [part]
        for stage in range(1, _STAGES):
            parts.append(delay(m, parts[-1], 1, f"part_{stage}"))
        words = settings.chip.BURST // PHASES
        for k in range(groups):
            # the oldest first, each part's words of this byte
            line = Cat(
                each.word_select(word * groups + k, 8)
                for each in reversed(parts)
                for word in range(words)
            )
            found = self._byte(m, k, line, words, valid)
            for word in range(settings.chip.BURST):
                byte = found.word_select(word, 8)
                m.d.comb += self.read_data.word_select(word * groups + k, 8).eq(byte)
        return m

    def _byte(self, m: Module, k: int, line: Value, words: int, valid: Value) -> Value:
        """Returns the 8 words that the PHY makes of a byte's line."""
        delays, window = self.delays, self.windows[k]
        read_delay, slip = Signal(3, name=f"delay_{k}"), Signal(2, name=f"slip_{k}")
        rest = Signal(range(_REST_CYCLES + 1), name=f"rest_{k}")
        seen = Signal(name=f"seen_{k}")
        with m.If(delays.select[k]):
            m.d.sync += rest.eq(_REST_CYCLES)
            m.d.sync += read_delay.eq(Mux(delays.delay_reset, 0, read_delay + delays.delay_next))
            m.d.sync += slip.eq(Mux(delays.slip_reset, 0, slip + delays.slip_next))
        with m.Elif(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        right = (read_delay >= window.first) & (read_delay <= window.last)
        right &= window.exists & (rest == 0)
        with m.If(valid & right & window.strobe):
            m.d.sync += seen.eq(1)
        with m.Elif(delays.clear):
            m.d.sync += seen.eq(0)
        m.d.comb += delays.seen[k].eq(seen)
        shift = Signal(range(2 * words), name=f"shift_{k}")
        m.d.comb += shift.eq(words + slip - window.slip)
        bits = 8 * self._settings.chip.BURST
        noise = Const(int.from_bytes([_NOISE] * (bits // 8)), bits)
        return Mux(right, 0, noise) ^ (line >> (shift << 3))[:bits]
