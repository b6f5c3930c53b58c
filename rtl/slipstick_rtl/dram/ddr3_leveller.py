"""Finds when the FPGA must look at what DDR3 sends: the read delay and slip of each byte."""

import random
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .ddr3 import Ddr3Settings
from .ddr3_signals import DelaySignature, command_layout

DELAYS, SLIPS = 8, 4
"""Numbers of read delays and of slips that the PHY has."""
_WORDS = 4
"""Words written and read back, without a pause between them, for each delay and slip."""
_SETTLE_CYCLES = 32
"""Before and after a delay changes: more than the PHY's own steps of 8 cycles at 25 MHz."""
_ATTEMPTS = 4

LEVEL = data.StructLayout(
    {"delay": range(DELAYS), "slip": range(SLIPS), "width": range(DELAYS + 1)}
)
"""The middle of a byte's longest window of delays at one slip, and its width; 0: there is none."""


def pattern(word_bits: int) -> int:
    """The first word that is written; the others have bits of even or of odd places inverted."""
    return random.Random(3).getrandbits(word_bits)


class Ddr3Leveller(wiring.Component):
    """Tries all delays and slips for all bytes at once, and sets the best for each of them.

    It writes and reads through the controller, which refreshes the chip meanwhile. A delay and slip
    are good for a byte if all words come back and its strobe was seen where the PHY expects it.
    In the end it tests what it has set, and begins anew if that fails, up to four times.

    Parameters
    ----------
    settings : Ddr3Settings

    Members
    -------
    start : In
    commands, written, write_taken, read_valid, read_data
        Of :class:`.ddr3_controller.Ddr3Controller`. It overwrites the first words of the chip.
    delays : Out(DelaySignature)
    done : Out
    failed : Out
        With ``done``: a bit for each byte that has no window.
    levels : Out(array of LEVEL)
        What was found for each byte.
    """

    start: Signal
    commands: stream.Interface
    written: Signal
    write_taken: Signal
    read_valid: Signal
    read_data: Signal
    delays: Any
    done: Signal
    failed: Signal
    levels: data.View

    def __init__(self, *, settings: Ddr3Settings) -> None:
        self._settings = settings
        bits, groups = settings.word_bits, settings.chip.groups
        super().__init__(
            {
                "start": In(1),
                "commands": Out(stream.Signature(command_layout(settings))),
                "written": Out(bits),
                "write_taken": In(1),
                "read_valid": In(1),
                "read_data": In(bits),
                "delays": Out(DelaySignature(settings)),
                "done": Out(1),
                "failed": Out(groups),
                "levels": Out(data.ArrayLayout(LEVEL, groups)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups = self._settings.chip.groups
        # scanning: the slip and the delay that are tried; setting: 16 resets, 15 to 8 are for the
        # slips, 7 to 0 for the delays
        step = Signal(range(DELAYS * SLIPS))
        setting, everything = Signal(), C((1 << groups) - 1, groups)
        left, over = Signal(range(_SETTLE_CYCLES)), Signal()
        attempts = Signal(range(_ATTEMPTS))
        begin, good = Signal(), Signal(groups)
        m.d.sync += left.eq(Mux(over, _SETTLE_CYCLES - 1, left - 1))
        m.d.comb += over.eq(left == 0)
        sent_all, came_all = self._test(m, begin, good)
        mask = Mux(setting & ~step[4], self._wanted(step), everything)
        delays = self.delays
        with m.FSM():
            with m.State("idle"), m.If(self.start):
                m.d.sync += left.eq(_SETTLE_CYCLES - 1)
                m.next = "rest"
            with m.State("rest"):
                m.d.comb += delays.select.eq(mask)
                with m.If(over):
                    m.next = "change"
            with m.State("change"):
                resets = Mux(setting, step[4], step == 0)
                m.d.comb += [
                    delays.select.eq(mask),
                    delays.delay_reset.eq(resets),
                    delays.slip_reset.eq(resets),
                    delays.delay_next.eq(~resets & ~(setting & step[3])),
                    delays.slip_next.eq(~resets & Mux(setting, step[3], step[:3] == 0)),
                ]
                m.d.sync += left.eq(_SETTLE_CYCLES - 1)
                m.next = "changed"
            with m.State("changed"):
                m.d.comb += delays.select.eq(mask)
                with m.If(over):
                    m.next = "together"
            # all bytes must leave their rest in the same cycle: litex pull request 359
            with m.State("together"):
                m.d.comb += delays.select.eq(everything)
                with m.If(over):
                    m.next = "leave"
            with m.State("leave"), m.If(over):
                with m.If(setting & (step != 0)):
                    m.d.sync += step.eq(step - 1)
                    m.next = "rest"
                with m.Else():
                    m.d.comb += begin.eq(1)
                    m.next = "test"
            with m.State("test"):
                m.d.comb += delays.clear.eq(~sent_all)
                with m.If(came_all):
                    m.d.sync += left.eq(_SETTLE_CYCLES - 1)
                    m.next = "see"
            with m.State("see"), m.If(over):
                with m.If(~setting):
                    self._judge(m, step, good)
                    m.d.sync += step.eq(step + 1)
                    m.next = "rest"
                    with m.If(step == DELAYS * SLIPS - 1):
                        m.d.sync += [setting.eq(1), step.eq(16)]
                with m.Elif(good.all() | (attempts == _ATTEMPTS - 1)):
                    m.d.sync += self.failed.eq(~good)
                    m.next = "done"
                with m.Else():
                    m.d.sync += [setting.eq(0), step.eq(0), attempts.eq(attempts + 1)]
                    m.d.sync += [self.levels[k].width.eq(0) for k in range(groups)]
                    m.next = "rest"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
        return m

    def _wanted(self, step: Value) -> Value:
        """The bytes whose slip or delay must be one more, while the best are set."""
        levels = [self.levels[k] for k in range(self._settings.chip.groups)]
        return Cat(Mux(step[3], level.slip, level.delay) > step[:3] for level in levels)

    def _judge(self, m: Module, step: Value, good: Value) -> None:
        """Looks whether the window that ends here is the longest."""
        delay, slip = step[:3], step[3:]
        for k in range(len(good)):
            level = self.levels[k]
            run = Signal(range(DELAYS + 1), name=f"run_{k}")
            longer = Signal(range(DELAYS + 1), name=f"longer_{k}")
            m.d.comb += longer.eq(Mux(good[k], Mux(delay == 0, 0, run) + 1, 0))
            m.d.sync += run.eq(longer)
            with m.If(longer > level.width):
                m.d.sync += [
                    level.width.eq(longer),
                    level.delay.eq(delay - longer[1:]),
                    level.slip.eq(slip),
                ]

    def _test(self, m: Module, begin: Value, good: Signal) -> tuple[Value, Value]:
        """Writes and reads; returns whether READs have begun, and whether all words have come."""
        bits, groups = self._settings.word_bits, self._settings.chip.groups
        first = pattern(bits)
        # of commands, words written and words read
        sent = Signal(range(2 * _WORDS + 1), init=2 * _WORDS)
        put = Signal(range(_WORDS))
        came, wrong = Signal(range(_WORDS + 1)), Signal(groups)

        def word(number: Value) -> Value:
            return first ^ number[:2].replicate(bits // 2)

        command = self.commands
        m.d.comb += [
            command.valid.eq(sent != 2 * _WORDS),
            command.payload.write.eq(sent < _WORDS),
            command.payload.address.eq(sent[:2]),
            self.written.eq(word(put)),
            good.eq(~wrong & self.delays.seen),
        ]
        with m.If(command.valid & command.ready):
            m.d.sync += sent.eq(sent + 1)
        m.d.sync += put.eq(put + self.write_taken)
        differ = self.read_data ^ word(came)
        with m.If(self.read_valid):
            m.d.sync += came.eq(came + 1)
            m.d.sync += wrong.eq(
                wrong
                | Cat(
                    Cat(differ[at : at + 8] for at in range(8 * k, bits, 8 * groups)).any()
                    for k in range(groups)
                )
            )
        with m.If(begin):
            m.d.sync += [sent.eq(0), came.eq(0), wrong.eq(0)]
        return sent > _WORDS, came == _WORDS
