"""DDR3 on the pins of an ECP5: LiteDRAM's PHY, its clocks, and the pins themselves."""

from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ...dram.ddr3 import PHASES, Ddr3Settings, ddr3_phy_verilog
from ...dram.ddr3_controller import COMMAND_PINS
from ...dram.ddr3_memory import DDR3_DOMAIN
from ...dram.ddr3_signals import Ddr3Signature
from .ddr3_clock import Ecp5Ddr3Clock

_RESOURCE = "ddr3"


class Ecp5Ddr3Pins(wiring.Component):
    """The PHY. It asks the platform for ``ddr3``, and drives the domain ``DDR3_DOMAIN``.

    Who holds it defines the domain. Boards may lack the pins of reset and chip select.

    Parameters
    ----------
    oscillator_hz : int
    settings : Ddr3Settings

    Members
    -------
    oscillator : In
    chip : In(Ddr3Signature)

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    ValueError
        If the PLL cannot make the clocks; while it is elaborated, if the board's pins are not as
        many as the chip's.
    """

    oscillator: Signal
    chip: Any

    def __init__(self, *, oscillator_hz: int, settings: Ddr3Settings) -> None:
        self._settings = settings
        self._clock = Ecp5Ddr3Clock(oscillator_hz=oscillator_hz, settings=settings)
        self._verilog = ddr3_phy_verilog(settings)
        super().__init__({"oscillator": In(1), "chip": In(Ddr3Signature(settings))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        settings, chip, kind = self._settings, self.chip, self._settings.chip
        platform.add_file(f"{settings.phy_name}.v", self._verilog)
        m.submodules.clock = clock = self._clock
        m.d.comb += clock.oscillator.eq(self.oscillator)
        pins = platform.request(_RESOURCE, 0, dir="-")
        # LiteDRAM's names of the pins that only the FPGA drives, and the platform's
        outputs = {
            "a": ("a", kind.address_bits),
            "ba": ("ba", kind.bank_bits),
            "ras_n": ("ras", 1),
            "cas_n": ("cas", 1),
            "we_n": ("we", 1),
            "cke": ("clk_en", 1),
            "odt": ("odt", 1),
            "dm": ("dm", kind.groups),
            "clk_p": ("clk", 1),
        }
        driven = {name: Signal(bits, name=name) for name, (_, bits) in outputs.items()}
        delays = chip.delays
        m.submodules.phy = Instance(
            settings.phy_name,
            i_sys_clk=ClockSignal(DDR3_DOMAIN),
            i_sys_rst=ResetSignal(DDR3_DOMAIN),
            i_sys2x_clk=clock.pins,
            i_init_clk=clock.slow,
            i_init_rst=clock.slow_reset,
            o_clocks_stop=clock.stop,
            o_clocks_reset=clock.reset,
            i_dfi_cke=chip.cke,
            i_dfi_odt=chip.odt,
            i_dfi_read=chip.read,
            i_dfi_write=chip.write,
            i_dfi_written=chip.written,
            i_dfi_mask=chip.mask,
            o_dfi_read_data=chip.read_data,
            **{
                f"i_phase{k}_{name}": getattr(getattr(chip, f"phase{k}"), name)
                for k in range(PHASES)
                for name in COMMAND_PINS
            },
            i_level_select=delays.select,
            i_level_delay_reset=delays.delay_reset,
            i_level_delay_next=delays.delay_next,
            i_level_slip_reset=delays.slip_reset,
            i_level_slip_next=delays.slip_next,
            i_level_clear=delays.clear,
            o_level_seen=delays.seen,
            **{f"o_pins_{name}": signal for name, signal in driven.items()},
            io_pins_dq=_pads(pins, "dq", kind.data_bits),
            io_pins_dqs_p=_pads(pins, "dqs", kind.groups),
        )
        for name, (resource, bits) in outputs.items():
            self._drive(m, _pads(pins, resource, bits), driven[name], name)
        # they change long before and after anything else
        for resource, value in (("rst", chip.reset_n), ("cs", Signal(name="selected"))):
            if hasattr(pins, resource):
                self._drive(m, _pads(pins, resource, 1), value, resource)
        return m

    def _drive(self, m: Module, pads: Any, signal: Signal, name: str) -> None:
        """A buffer per pin, without the inverter that the platform would put before it."""
        for k in range(len(pads)):
            m.submodules[f"{name}_{k}"] = Instance("OB", i_I=signal[k], io_O=pads[k])


def _pads(pins: Any, name: str, bits: int) -> Any:
    """The pins of a role; of a pair the first one, whose place has both."""
    port = getattr(pins, name)
    pads = port.p if hasattr(port, "p") else port.io
    if len(pads) != bits:
        raise ValueError(f"pins {name} of the DRAM must be {bits}, not {len(pads)}")
    return pads
