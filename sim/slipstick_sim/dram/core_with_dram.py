"""The core with a DRAM chip behind it, for the compiled simulation."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.dma_unit import dram_settings
from slipstick_rtl.layouts import EVENTS
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES

from .sdr_chip import SdrModel

_POWER_UP_SECONDS = 1e-6
"""Less than chips want: nothing of it is simulated but waiting."""


class CoreWithDram(wiring.Component):
    """The core and its chip, which checks what is done to it.

    Parameters
    ----------
    configuration : Configuration
        With DRAM.
    timeout_cycles : int
        As of ``Accelerator``.

    Members
    -------
    i, o, running, events
        As of ``Accelerator``.
    violation : Out
        The first ``Violation`` of the chip's rules.
    """

    i: stream.Interface
    o: stream.Interface
    running: Signal
    events: data.View
    violation: Signal

    def __init__(
        self, *, configuration: Configuration, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES
    ) -> None:
        settings = dram_settings(configuration)
        self._core: Any = Accelerator(
            configuration=configuration,
            timeout_cycles=timeout_cycles,
            power_up_seconds=_POWER_UP_SECONDS,
        )
        self._model = SdrModel(chip=settings.chip, hertz=settings.hertz)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "running": Out(1),
                "events": Out(EVENTS),
                "violation": Out(self._model.violation.shape()),
            }
        )

    @property
    def verilog(self) -> str:
        """The controller's and the chip's contents', which go beside the Verilog of this."""
        return self._core.dma.verilog + self._model.verilog

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core, m.submodules.model = core, model = self._core, self._model
        connect(m, flipped(self.i), core.i)
        connect(m, core.o, flipped(self.o))
        connect(m, core.chip, model.pins)
        m.d.comb += [
            self.running.eq(core.running),
            self.events.eq(core.events),
            self.violation.eq(model.violation),
        ]
        return m
