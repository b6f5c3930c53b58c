"""The commands that SDR SDRAM wants after power-up."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .litedram import LiteDramSettings

_POWER_UP_SECONDS = 200e-6
_REFRESHES = 8
_MODE_CYCLES = 2
ALL_BANKS = 1 << 10
"""Address bit that makes a PRECHARGE close all banks, or adds a PRECHARGE to a READ or WRITE."""


class SdrInitialiser(wiring.Component):
    """Waits, closes all banks, refreshes them and sets the mode register: single accesses.

    Source: JEDEC 21-C, 3.11.5.4, and the data sheets of the chips.

    Parameters
    ----------
    settings : LiteDramSettings
    power_up_seconds : float
        Before the first command; less only in simulations.

    Members
    -------
    cs_n, ras_n, cas_n, we_n, address : Out
        As the chip's pins.
    done : Out
        The chip can be used.
    """

    cs_n: Signal
    ras_n: Signal
    cas_n: Signal
    we_n: Signal
    address: Signal
    done: Signal

    def __init__(
        self, *, settings: LiteDramSettings, power_up_seconds: float = _POWER_UP_SECONDS
    ) -> None:
        self._settings = settings
        self._power_up_cycles = max(1, round(power_up_seconds * settings.hertz))
        super().__init__(
            {
                "cs_n": Out(1),
                "ras_n": Out(1),
                "cas_n": Out(1),
                "we_n": Out(1),
                "address": Out(settings.chip.address_bits),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip, hertz = self._settings.chip, self._settings.hertz
        precharge, refresh = chip.cycles(chip.t_rp, hertz), chip.cycles(chip.t_rfc, hertz)
        mode = self._settings.cas_latency << 4
        longest = max(self._power_up_cycles, precharge, refresh, _MODE_CYCLES)
        left = Signal(range(longest), init=self._power_up_cycles - 1)
        refreshes = Signal(range(_REFRESHES), init=_REFRESHES - 1)
        m.d.sync += left.eq(left - 1)
        command = (self.ras_n, self.cas_n, self.we_n)
        m.d.comb += [pin.eq(1) for pin in (self.cs_n, *command)]

        def send(*levels: int, wait: int) -> None:
            m.d.comb += self.cs_n.eq(0)
            m.d.comb += [pin.eq(level) for pin, level in zip(command, levels, strict=True)]
            m.d.sync += left.eq(wait - 1)

        with m.FSM():
            with m.State("power up"):
                with m.If(left == 0):
                    send(0, 1, 0, wait=precharge)
                    m.d.comb += self.address.eq(ALL_BANKS)
                    m.next = "refresh"
            with m.State("refresh"):
                with m.If(left == 0):
                    send(0, 0, 1, wait=refresh)
                    m.d.sync += refreshes.eq(refreshes - 1)
                    with m.If(refreshes == 0):
                        m.next = "mode"
            with m.State("mode"):
                with m.If(left == 0):
                    send(0, 0, 0, wait=_MODE_CYCLES)
                    m.d.comb += self.address.eq(mode)
                    m.next = "settle"
            with m.State("settle"):
                with m.If(left == 0):
                    m.next = "done"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
        return m
