"""LiteDRAM's modules, joined in Migen. Only ``litedram`` imports this: it needs LiteDRAM."""

from typing import Any

import litedram.modules
from litedram.common import PhySettings
from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litex.gen import LiteXModule
from litex.gen.fhdl import verilog
from migen import ClockDomain, Record

from .litedram import LiteDramSettings

_COMMAND = ("address", "bank", "ras_n", "cas_n", "we_n", "cs_n")
_WRITE = ("wrdata", "wrdata_en", "wrdata_mask")


class ControllerTop(LiteXModule):
    """Controller and crossbar; ``ports`` are those of the Verilog."""

    comb: Any
    sync: Any

    def __init__(self, settings: LiteDramSettings) -> None:
        self.ports: set[Any] = set()
        self.cd_sys = ClockDomain()
        self.ports |= {self.cd_sys.clk, self.cd_sys.rst}
        chip = settings.chip
        module = getattr(litedram.modules, chip.name)(settings.hertz, "1:1")
        module.timing_settings.tREFI = settings.refresh_cycles
        phy = PhySettings(
            phytype="SdrPins",
            memtype="SDR",
            databits=chip.data_bits,
            dfi_databits=chip.data_bits,
            nphases=1,
            rdphase=0,
            wrphase=0,
            cl=settings.cas_latency,
            read_latency=settings.read_latency,
            write_latency=0,
        )
        # of all settings tried, those with the fastest clock: 97 to 100 MHz alone on an LFE5U of
        # speed 6 (without auto precharge and without times for either direction, 88 to 92)
        plain = ControllerSettings(cmd_buffer_depth=4)
        self.controller = controller = LiteDRAMController(
            phy, module.geom_settings, module.timing_settings, settings.hertz, plain
        )
        self.crossbar = crossbar = LiteDRAMCrossbar(controller.interface)
        dfi: Any = controller.dfi
        phase = dfi.p0
        names = (*_COMMAND, *_WRITE, "rddata_en")
        pads = self._pads("chip", [(name, len(getattr(phase, name))) for name in names])
        self.comb += [getattr(pads, name).eq(getattr(phase, name)) for name in names]
        answer = self._pads("answer", [("data", chip.data_bits), ("valid", 1)])
        self.comb += [phase.rddata.eq(answer.data), phase.rddata_valid.eq(answer.valid)]
        self._user(crossbar.get_port("both"))

    def _user(self, port: Any) -> None:
        command = self._pads(
            "command", [("valid", 1), ("ready", 1), ("write", 1), ("address", len(port.cmd.addr))]
        )
        written = self._pads(
            "written", [("ready", 1), ("data", port.data_width), ("enable", port.data_width // 8)]
        )
        read = self._pads("read", [("valid", 1), ("data", port.data_width)])
        self.comb += [
            port.cmd.valid.eq(command.valid),
            port.cmd.we.eq(command.write),
            port.cmd.addr.eq(command.address),
            command.ready.eq(port.cmd.ready),
            port.wdata.valid.eq(1),
            port.wdata.data.eq(written.data),
            port.wdata.we.eq(written.enable),
            written.ready.eq(port.wdata.ready),
            port.rdata.ready.eq(1),
            read.valid.eq(port.rdata.valid),
            read.data.eq(port.rdata.data),
        ]

    def _pads(self, name: str, layout: Any) -> Any:
        pads = Record(list(layout), name=name)
        self.ports |= set(pads.flatten())
        return pads


def convert(settings: LiteDramSettings) -> str:
    """Returns the Verilog of a controller."""
    top = ControllerTop(settings)
    return str(verilog.convert(top, top.ports, name=settings.name))
