"""DDR3: what is made from a chip's data sheet, and what stands on a board's pins."""

import importlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out, connect
from slipstick.toolchain import YOSYS
from slipstick_rtl.dram.chips import CHIPS, MT41K256M16, MT48LC16M16
from slipstick_rtl.dram.ddr3 import Ddr3Settings, ddr3_phy_verilog, ddr3_verilog
from slipstick_rtl.dram.ddr3_initialiser import mode_registers
from slipstick_rtl.dram.ddr3_memory import DDR3_DOMAIN, Ddr3Memory
from slipstick_rtl.dram.ddr3_port import Ddr3Port
from slipstick_rtl.fpga.ecp5.ddr3_clock import Ecp5Ddr3Clock
from slipstick_rtl.fpga.ecp5.ddr3_pins import Ecp5Ddr3Pins
from slipstick_rtl.fpga.yosys_script import FREE_COLLISIONS
from slipstick_sim.toolchain import convert_to_rtlil

SETTINGS = Ddr3Settings(chip=MT41K256M16, hertz=75_000_000)


def test_chips_of_both_kinds_have_sizes_and_peaks() -> None:
    assert MT41K256M16.bytes == 512 << 20
    assert MT41K256M16.peak_bytes_per_second(150_000_000) == 600_000_000
    assert MT48LC16M16.bytes == 32 << 20
    assert MT48LC16M16.peak_bytes_per_second(100_000_000) == 200_000_000
    assert {MT41K256M16.name, MT48LC16M16.name} <= CHIPS.keys()


def test_times_are_the_longer_of_cycles_and_nanoseconds() -> None:
    assert MT41K256M16.chip_cycles("t_wtr", 150_000_000) == 4
    assert MT41K256M16.chip_cycles("t_wtr", 800_000_000) == 6
    assert MT41K256M16.chip_cycles("t_rfc", 150_000_000) == 39


@pytest.mark.parametrize("hertz", [50_000_000, 75_000_000, 100_000_000])
@pytest.mark.parametrize("time", ["t_rcd", "t_rp", "t_ras", "t_rc", "t_rfc", "t_wr", "t_faw"])
def test_the_controller_waits_long_enough(time: str, hertz: int) -> None:
    """Waits from the last phase of a cycle to the first of another."""
    settings = Ddr3Settings(chip=MT41K256M16, hertz=hertz)
    seconds = (2 * settings.cycles(time) - 1) / settings.chip_hertz
    nanoseconds = getattr(MT41K256M16, time)
    assert seconds * 1e9 >= nanoseconds - 1e-6
    assert (seconds - 2 / settings.chip_hertz) * 1e9 < nanoseconds


def test_latencies_are_those_of_the_phy() -> None:
    assert (SETTINGS.read_phase, SETTINGS.write_phase) == (0, 1)
    assert (SETTINGS.read_latency, SETTINGS.write_latency) == (13, 3)
    assert SETTINGS.refresh_cycles / SETTINGS.hertz < 64e-3 / 8192


def test_a_phy_with_another_latency_is_refused() -> None:
    core = importlib.import_module("slipstick_rtl.dram.ddr3_core")
    given = core._phy_settings(SETTINGS)
    given.read_latency += 1
    with pytest.raises(ValueError, match="read_latency of LiteDRAM's ECP5DDRPHY must be 13"):
        core._check(given, SETTINGS)


def test_mode_registers_are_those_of_litedram() -> None:
    """LiteDRAM's ``init.py`` has these for CL 6, CWL 5, 60 ohms and 34 ohms."""
    assert mode_registers(MT41K256M16, 150_000_000) == (0x320, 0x6, 0x200, 0)


def test_a_long_write_recovery_is_refused() -> None:
    with pytest.raises(ValueError, match="t_wr must be within 8 cycles of the chip, not 12"):
        mode_registers(MT41K256M16, 800_000_000)


@pytest.mark.parametrize("hertz", [30_000_000, 120_000_000])
def test_other_clocks_are_refused(hertz: int) -> None:
    with pytest.raises(ValueError, match=r"hertz must be within 40\.\.100 million, not"):
        Ddr3Settings(chip=MT41K256M16, hertz=hertz)


def test_another_width_is_refused() -> None:
    wide = replace(MT41K256M16, data_bits=32)
    with pytest.raises(ValueError, match="word_bits must be 128, not 256"):
        Ddr3Port(settings=Ddr3Settings(chip=wide, hertz=75_000_000), depth=32)


@pytest.mark.parametrize("make", [ddr3_verilog, ddr3_phy_verilog])
def test_verilog_has_no_assignment_twice(make: Any) -> None:
    lines = re.findall(r"^assign .*$", make(SETTINGS), re.MULTILINE)
    assert lines and len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("oscillator_hz", "hertz"),
    [(100_000_000, 75_000_000), (100_000_000, 100_000_000), (48_000_000, 48_000_000)],
)
def test_a_pll_makes_the_clocks(oscillator_hz: int, hertz: int) -> None:
    settings = Ddr3Settings(chip=MT41K256M16, hertz=hertz)
    clock = Ecp5Ddr3Clock(oscillator_hz=oscillator_hz, settings=settings)
    given = dict[str, int]()

    class Platform:
        """Keeps what it is asked for."""

        def add_clock_constraint(self, signal: Signal, hertz: int) -> None:
            given[signal.name] = hertz

    clock.elaborate(Platform())
    chip = settings.chip_hertz
    assert given == {"ddr3_fast": chip, "ddr3_half": chip // 2, "ddr3_slow": chip // 6}
    pll = clock._pll
    assert oscillator_hz / pll.input_divider * pll.feedback_divider == chip
    assert not pll.has_second


def test_ecpix5_has_its_pins() -> None:
    """And each has a buffer of its own, in which nothing is inverted."""
    boards = importlib.import_module("amaranth_boards.ecpix5")
    platform = boards.ECPIX585Platform()
    m = Module()
    m.domains.sync = ClockDomain("sync", reset_less=True)
    m.domains += ClockDomain(DDR3_DOMAIN)
    oscillator = platform.request("clk100", 0, dir="-")
    m.submodules.buffer = buffer = io.Buffer(io.Direction.Input, oscillator)
    m.submodules.memory = memory = Ddr3Memory(settings=SETTINGS)
    m.submodules.pins = pins = Ecp5Ddr3Pins(oscillator_hz=100_000_000, settings=SETTINGS)
    m.d.comb += [ClockSignal().eq(buffer.i), pins.oscillator.eq(buffer.i)]
    connect(m, memory.chip, pins.chip)
    plan = platform.build(m, do_build=False)
    sites = dict(re.findall(r'LOCATE COMP "(.+?)" SITE "(\w+)"', str(plan.files["top.lpf"])))
    chosen = {
        "ddr3_0__a__io[14]": "H1",
        "ddr3_0__ba__io[2]": "N4",
        "ddr3_0__ras__io": "T3",
        "ddr3_0__clk__p": "H3",
        "ddr3_0__dqs__p[1]": "V1",
        "ddr3_0__dq__io[15]": "W2",
        "ddr3_0__dm__io[1]": "U1",
        "ddr3_0__odt__io": "P3",
    }
    assert chosen.items() <= sites.items()
    assert sum(name.startswith("ddr3_0") for name in sites) == 44
    # beside those of the data and their strobes, which the PHY has
    assert len(re.findall(r"cell \\OB ", str(plan.files["top.il"]))) == 44 - 16 - 2
    names = {f"{SETTINGS.name}.v", f"{SETTINGS.phy_name}.v"}
    assert names <= plan.files.keys()


class Crossing(wiring.Component):
    """A queue between two clocks, called as those of the memory are."""

    i: Signal
    o: Signal

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += ClockDomain("other")
        queue = AsyncFIFO(width=8, depth=32, w_domain="sync", r_domain="other")
        m.submodules[self._name] = queue
        m.d.comb += [
            queue.w_data.eq(self.i),
            queue.w_en.eq(1),
            queue.r_en.eq(1),
            self.o.eq(queue.r_data),
        ]
        return m


@pytest.mark.parametrize(("name", "passes"), [("words_crossing", True), ("words", False)])
def test_the_builds_script_leaves_crossings_alone(name: str, passes: bool, tmp_path: Path) -> None:
    """Yosys fails where two clocks are said to meet in no memory."""
    (tmp_path / "design.il").write_text(convert_to_rtlil(Crossing(name), "top"))
    script = f"read_rtlil design.il; {FREE_COLLISIONS}; synth_ecp5 -top top"
    done = subprocess.run([YOSYS.find(), "-q", "-p", script], cwd=tmp_path, capture_output=True)
    assert (done.returncode == 0) is passes, done.stderr.decode()
