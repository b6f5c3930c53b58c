"""The commands that DDR3 wants after power-up."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .chips import Ddr3Chip
from .ddr3 import PHASES, Ddr3Settings
from .ddr3_signals import PhaseSignature

_POWER_UP_SECONDS = 500e-6
_LOCK_CYCLES = 512
"""Cycles of the chip's clock: tDLLK, and tZQinit too."""
_MODE_CYCLES = 12
"""Cycles of the chip's clock: tMOD, which is longer than tMRD."""
ALL_BANKS = 1 << 10
"""Address bit that makes a PRECHARGE close all banks, or a calibration the long one."""

_PRECHARGE = (0, 1, 0)
_MODE = (0, 0, 0)
_CALIBRATE = (1, 1, 0)
"""Levels of RAS, CAS and WE."""

_WRITE_RECOVERY = range(5, 9)
"""Cycles that mode register 0 can have; for WRITEs with a PRECHARGE of their own, not used here."""


def mode_registers(chip: Ddr3Chip, chip_hertz: int) -> tuple[int, int, int, int]:
    """Computes the values of mode registers 0 to 3.

    Bursts of 8; drivers of 34 ohms, termination of 60 ohms in the chip: one chip beside its FPGA.
    Source: JEDEC 79-3F, 3.4.
    """
    recovery = max(chip.chip_cycles("t_wr", chip_hertz), _WRITE_RECOVERY.start)
    if recovery not in _WRITE_RECOVERY:
        raise ValueError(f"t_wr must be within 8 cycles of the chip, not {recovery}")
    dll_reset, drive_34, nominal_60, dynamic_60 = 1 << 8, 1 << 1, 1 << 2, 1 << 9
    return (
        (chip.cas_latency - 4) << 4 | dll_reset | (recovery - 4) << 9,
        drive_34 | nominal_60,
        (chip.cas_write_latency - 5) << 3 | dynamic_60,
        0,
    )


class Ddr3Initialiser(wiring.Component):
    """Resets the chip, waits, sets its mode registers and calibrates its drivers.

    Source: JEDEC 79-3F, 3.3.1. Before the mode registers it closes all banks: a board may lack the
    reset pin, and then a chip that ran before may have open rows.

    Parameters
    ----------
    settings : Ddr3Settings
    power_up_seconds : float
        With RESET low, and again with CKE low; less only in simulations.

    Members
    -------
    reset_n, cke : Out
        As the chip's pins.
    phase : Out(PhaseSignature)
        What the first phase has.
    done : Out
        The chip can be used.
    """

    reset_n: Signal
    cke: Signal
    phase: Any
    done: Signal

    def __init__(
        self, *, settings: Ddr3Settings, power_up_seconds: float = _POWER_UP_SECONDS
    ) -> None:
        self._settings = settings
        self._power_up_cycles = max(1, round(power_up_seconds * settings.hertz))
        super().__init__(
            {
                "reset_n": Out(1),
                "cke": Out(1),
                "phase": Out(PhaseSignature(settings)),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings = self._settings
        chip, hertz = settings.chip, settings.hertz
        # from CKE to the first command, tXPR
        wakes = chip.cycles(chip.t_rfc + 10, hertz) + 1
        modes = mode_registers(chip, settings.chip_hertz)
        steps = [
            (_PRECHARGE, 0, ALL_BANKS, settings.cycles("t_rp")),
            *((_MODE, bank, modes[bank], _MODE_CYCLES // PHASES) for bank in (2, 3, 1, 0)),
            (_CALIBRATE, 0, ALL_BANKS, _LOCK_CYCLES // PHASES),
        ]
        longest = max(self._power_up_cycles, wakes, _LOCK_CYCLES // PHASES)
        left = Signal(range(longest), init=self._power_up_cycles - 1)
        step = Signal(range(len(steps)))
        over = Signal()
        m.d.comb += over.eq(left == 0)
        m.d.sync += left.eq(left - 1)
        phase = self.phase
        m.d.comb += [pin.eq(1) for pin in (phase.ras_n, phase.cas_n, phase.we_n)]
        with m.FSM():
            with m.State("reset"), m.If(over):
                m.d.sync += [self.reset_n.eq(1), left.eq(self._power_up_cycles - 1)]
                m.next = "asleep"
            with m.State("asleep"), m.If(over):
                m.d.sync += [self.cke.eq(1), left.eq(wakes - 1)]
                m.next = "commands"
            with m.State("commands"), m.If(over):
                m.d.sync += step.eq(step + 1)
                with m.Switch(step):
                    for k, (levels, bank, address, wait) in enumerate(steps):
                        with m.Case(k):
                            m.d.comb += [
                                phase.ras_n.eq(levels[0]),
                                phase.cas_n.eq(levels[1]),
                                phase.we_n.eq(levels[2]),
                                phase.bank.eq(bank),
                                phase.address.eq(address),
                            ]
                            m.d.sync += left.eq(wait - 1)
                with m.If(step == len(steps) - 1):
                    m.next = "settle"
            with m.State("settle"), m.If(over):
                m.next = "done"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
        return m
