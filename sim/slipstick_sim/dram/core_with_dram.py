"""The core with a DRAM chip behind it, for the compiled simulation."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.dma_unit import dram_settings
from slipstick_rtl.dram.ddr3 import Ddr3Settings
from slipstick_rtl.dram.ddr3_memory import DDR3_DOMAIN
from slipstick_rtl.layouts import EVENTS
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES

from .ddr3_chip import Ddr3Model
from .ddr3_reads import window
from .sdr_chip import SdrModel

_POWER_UP_SECONDS = 1e-6
"""Less than chips want: nothing of it is simulated but waiting."""
_WINDOWS = (window(1, 4, 2), window(3, 5, 1))
"""Windows of delays in which the two bytes of DDR3 can be read, unlike each other."""


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
        The first ``Violation`` or ``Ddr3Violation`` of the chip's rules.
    ddr3_clk : In
        Only with DDR3: the controller's clock, half of the chip's.
    """

    i: stream.Interface
    o: stream.Interface
    running: Signal
    events: data.View
    violation: Signal
    ddr3_clk: Signal

    def __init__(
        self, *, configuration: Configuration, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES
    ) -> None:
        settings = dram_settings(configuration)
        self._core: Any = Accelerator(
            configuration=configuration,
            timeout_cycles=timeout_cycles,
            power_up_seconds=_POWER_UP_SECONDS,
        )
        self._model: SdrModel | Ddr3Model
        clock = {}
        if isinstance(settings, Ddr3Settings):
            self._model = Ddr3Model(settings=settings, rows_held=settings.chip.rows)
            clock = {"ddr3_clk": In(1)}
        else:
            self._model = SdrModel(chip=settings.chip, hertz=settings.hertz)
        super().__init__(
            {
                **clock,
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
        m.submodules.core = core = self._core
        model = self._model
        if isinstance(model, Ddr3Model):
            m.domains += ClockDomain(DDR3_DOMAIN, reset_less=True)
            m.d.comb += ClockSignal(DDR3_DOMAIN).eq(self.ddr3_clk)
            m.submodules.model = DomainRenamer(DDR3_DOMAIN)(model)
            for k, values in enumerate(_WINDOWS):
                m.d.comb += [model.windows[k][name].eq(value) for name, value in values.items()]
        else:
            m.submodules.model = model
        connect(m, flipped(self.i), core.i)
        connect(m, core.o, flipped(self.o))
        connect(m, core.chip, model.pins)
        m.d.comb += [
            self.running.eq(core.running),
            self.events.eq(core.events),
            self.violation.eq(model.violation),
        ]
        return m
