"""LiteDRAM's modules for DDR3, joined in Migen. Only ``ddr3`` imports this: it needs LiteDRAM."""

from typing import Any

from litedram.common import GeomSettings, PhySettings, TimingSettings
from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litedram.phy.ecp5ddrphy import ECP5DDRPHY
from litex.gen.fhdl import verilog
from migen import Cat, ClockDomain, Instance, Module
from migen.fhdl.specials import Tristate

from .ddr3 import PHASES, Ddr3Settings
from .litedram_top import Top

_COMMAND = ("address", "bank", "ras_n", "cas_n", "we_n")
_COMMAND_QUEUE = 4
"""Depth of each bank's queue of commands: the only port waits before it goes to another bank."""


class ControllerTop(Top):
    """Controller and crossbar: words on one side, DFI on the other."""

    def __init__(self, settings: Ddr3Settings) -> None:
        super().__init__()
        # the one port has its commands in order, so neither kind can starve the other
        plain = ControllerSettings(
            cmd_buffer_depth=_COMMAND_QUEUE,
            read_time=0,
            write_time=0,
            with_auto_precharge=False,
        )
        self.controller = controller = LiteDRAMController(
            _phy_settings(settings), _geometry(settings), _times(settings), settings.hertz, plain
        )
        self.crossbar = crossbar = LiteDRAMCrossbar(controller.interface)
        dfi: Any = controller.dfi
        for k, phase in enumerate(dfi.phases):
            pads = self.pads(f"phase{k}", [(name, len(getattr(phase, name))) for name in _COMMAND])
            self.comb += [getattr(pads, name).eq(getattr(phase, name)) for name in _COMMAND]
        read, write = dfi.phases[settings.read_phase], dfi.phases[settings.write_phase]
        bits = settings.word_bits
        pads = self.pads("dfi", [("read", 1), ("write", 1), ("written", bits), ("mask", bits // 8)])
        self.comb += [
            pads.read.eq(read.rddata_en),
            pads.write.eq(write.wrdata_en),
            pads.written.eq(Cat(*(phase.wrdata for phase in dfi.phases))),
            pads.mask.eq(Cat(*(phase.wrdata_mask for phase in dfi.phases))),
        ]
        answer = self.pads("answer", [("data", bits)])
        for k, phase in enumerate(dfi.phases):
            part = bits // PHASES
            self.comb += phase.rddata.eq(answer.data[part * k : part * (k + 1)])
        self.words(crossbar.get_port("both"))


class _Pin(Module):
    """A pin that both sides drive: LiteX would have made the port an input."""

    specials: Any

    def __init__(self, tristate: Any) -> None:
        self.specials += Instance(
            "BB", i_I=tristate.o, i_T=~tristate.oe, o_O=tristate.i, io_B=tristate.target
        )


class _PinLowering:
    lower = _Pin


class PhyTop(Top):
    """The PHY: DFI and what sets its delays on one side, the FPGA's pins on the other."""

    def __init__(self, settings: Ddr3Settings) -> None:
        super().__init__()
        self.cd_sys2x = ClockDomain(reset_less=True)
        self.cd_init = ClockDomain()
        self.ports |= {self.cd_sys2x.clk, self.cd_init.clk, self.cd_init.rst}
        chip = settings.chip
        pins = self.pads(
            "pins",
            [
                ("a", chip.address_bits),
                ("ba", chip.bank_bits),
                *((name, 1) for name in ("ras_n", "cas_n", "we_n", "cke", "odt", "clk_p")),
                ("dm", chip.groups),
                ("dq", chip.data_bits),
                ("dqs_p", chip.groups),
            ],
        )
        phy: Any = ECP5DDRPHY(
            pins, sys_clk_freq=settings.hertz, cl=chip.cas_latency, cwl=chip.cas_write_latency
        )
        self.phy = phy
        _check(phy.settings, settings)
        self._commands(phy.dfi, settings)
        clocks = self.pads("clocks", [("stop", 1), ("reset", 1)])
        self.comb += [clocks.stop.eq(phy.init.stop), clocks.reset.eq(phy.init.reset)]
        level = self.pads(
            "level",
            [
                ("select", chip.groups),
                *((name, 1) for name in ("delay_reset", "delay_next", "slip_reset", "slip_next")),
                ("clear", 1),
                ("seen", chip.groups),
            ],
        )
        self.comb += [
            phy._dly_sel.storage.eq(level.select),
            phy._rdly_dq_rst.re.eq(level.delay_reset),
            phy._rdly_dq_inc.re.eq(level.delay_next),
            phy._rdly_dq_bitslip_rst.re.eq(level.slip_reset),
            phy._rdly_dq_bitslip.re.eq(level.slip_next),
            phy._burstdet_clr.re.eq(level.clear),
            level.seen.eq(phy._burstdet_seen.status),
        ]

    def _commands(self, dfi: Any, settings: Ddr3Settings) -> None:
        bits = settings.word_bits
        pads = self.pads(
            "dfi",
            [
                *((name, 1) for name in ("cke", "odt", "read", "write")),
                *(("written", bits), ("mask", bits // 8), ("read_data", bits)),
            ],
        )
        for k, phase in enumerate(dfi.phases):
            given = self.pads(f"phase{k}", [(name, len(getattr(phase, name))) for name in _COMMAND])
            part = slice(bits // PHASES * k, bits // PHASES * (k + 1))
            mask = slice(part.start // 8, part.stop // 8)
            self.comb += [
                *(getattr(phase, name).eq(getattr(given, name)) for name in _COMMAND),
                phase.cke.eq(pads.cke),
                phase.odt.eq(pads.odt),
                phase.rddata_en.eq(pads.read),
                phase.wrdata_en.eq(pads.write),
                phase.wrdata.eq(pads.written[part]),
                phase.wrdata_mask.eq(pads.mask[mask]),
                pads.read_data[part].eq(phase.rddata),
            ]


def _phy_settings(settings: Ddr3Settings) -> PhySettings:
    chip = settings.chip
    return PhySettings(
        phytype="ECP5DDRPHY",
        memtype="DDR3",
        databits=chip.data_bits,
        dfi_databits=settings.word_bits // PHASES,
        nphases=PHASES,
        rdphase=settings.read_phase,
        wrphase=settings.write_phase,
        cl=chip.cas_latency,
        cwl=chip.cas_write_latency,
        read_latency=settings.read_latency,
        write_latency=settings.write_latency,
    )


def _geometry(settings: Ddr3Settings) -> GeomSettings:
    chip = settings.chip
    rows = chip.rows.bit_length() - 1
    return GeomSettings(bankbits=chip.bank_bits, rowbits=rows, colbits=chip.column_bits)


def _times(settings: Ddr3Settings) -> TimingSettings:
    """In cycles of the controller.

    LiteDRAM's own table has tRFC of this chip in cycles of its fastest clock: five times too long.
    """
    names = ("tRP", "tRCD", "tWR", "tWTR", "tRFC", "tFAW", "tRRD", "tRC", "tRAS", "tZQCS")
    cycles = {name: settings.cycles(f"t_{name[1:].lower()}") for name in names}
    words = settings.chip.BURST // settings.chip.transfers_per_clock // PHASES
    return TimingSettings(tREFI=settings.refresh_cycles, tCCD=words, **cycles)


def _check(given: Any, settings: Ddr3Settings) -> None:
    """Checks that LiteDRAM's PHY is the one that the controller is made for."""
    for name, value in vars(_phy_settings(settings)).items():
        if name in {"rdphase", "wrphase", "read_latency", "write_latency", "dfi_databits"}:
            found = getattr(given, name)
            if found != value:
                raise ValueError(f"{name} of LiteDRAM's ECP5DDRPHY must be {value}, not {found}")


def convert_controller(settings: Ddr3Settings) -> str:
    """Returns the Verilog of a controller."""
    top = ControllerTop(settings)
    return str(verilog.convert(top, top.ports, name=settings.name))


def convert_phy(settings: Ddr3Settings) -> str:
    """Returns the Verilog of a PHY."""
    top = PhyTop(settings)
    lowered = {Tristate: _PinLowering}
    return str(verilog.convert(top, top.ports, name=settings.phy_name, special_overrides=lowered))
