"""LiteDRAM's modules, joined in Migen. Only ``litedram`` imports this: it needs LiteDRAM."""

from typing import Any

import litedram.modules
from litedram.common import PhySettings
from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litex.gen.fhdl import verilog

from .litedram import LiteDramSettings
from .litedram_top import Top

_COMMAND = ("address", "bank", "ras_n", "cas_n", "we_n", "cs_n")
_WRITE = ("wrdata", "wrdata_en", "wrdata_mask")


class ControllerTop(Top):
    """Controller and crossbar: words on one side, the chip's commands on the other."""

    def __init__(self, settings: LiteDramSettings) -> None:
        super().__init__()
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
        pads = self.pads("chip", [(name, len(getattr(phase, name))) for name in names])
        self.comb += [getattr(pads, name).eq(getattr(phase, name)) for name in names]
        answer = self.pads("answer", [("data", chip.data_bits), ("valid", 1)])
        self.comb += [phase.rddata.eq(answer.data), phase.rddata_valid.eq(answer.valid)]
        self.words(crossbar.get_port("both"))


def convert(settings: LiteDramSettings) -> str:
    """Returns the Verilog of a controller."""
    top = ControllerTop(settings)
    return str(verilog.convert(top, top.ports, name=settings.name))
