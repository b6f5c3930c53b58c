"""SDR SDRAM as the core sees it: bursts of 64-bit words, in the core's clock."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .burst_port import WORD_BYTES, BurstPort, burst_layout
from .controller import DramController
from .litedram import LiteDramSettings
from .sdr_signals import SdrSignature


class SdrMemory(wiring.Component):
    """Port and controller; :class:`.ddr3_memory.Ddr3Memory` has the same streams.

    Parameters
    ----------
    settings : LiteDramSettings
    power_up_seconds : float, optional
        As of ``SdrInitialiser``.

    Members
    -------
    bursts, writes, reads, idle
        As of :class:`.burst_port.BurstPort`.
    ready : Out
        The chip is initialised.
    chip : Out(SdrSignature)
    """

    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
    idle: Signal
    ready: Signal
    chip: Any

    def __init__(
        self, *, settings: LiteDramSettings, power_up_seconds: float | None = None
    ) -> None:
        self.settings = settings
        self._port = BurstPort(settings=settings)
        self._controller = DramController(settings=settings, power_up_seconds=power_up_seconds)
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
                "ready": Out(1),
                "chip": Out(SdrSignature(settings.chip)),
            }
        )

    @property
    def verilog(self) -> str:
        """LiteDRAM's, which goes beside the Verilog of this."""
        return self._controller.verilog

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port, m.submodules.controller = self._port, self._controller
        port, controller = self._port, self._controller
        connect(m, flipped(self.bursts), port.bursts)
        connect(m, flipped(self.writes), port.writes)
        connect(m, port.reads, flipped(self.reads))
        connect(m, port.commands, controller.commands)
        connect(m, controller.chip, flipped(self.chip))
        m.d.comb += [
            controller.written.eq(port.written),
            port.write_taken.eq(controller.write_taken),
            port.read_valid.eq(controller.read_valid),
            port.read_data.eq(controller.read_data),
            self.idle.eq(port.idle),
            self.ready.eq(controller.ready),
        ]
        return m
