"""Boards: their clocks, their lights, and what they put around the core."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import IOPort
from amaranth.lib import io
from amaranth.sim import Simulator
from echo_core import Echo
from slipstick_rtl.config import Configuration
from slipstick_rtl.dram.chips import find_chip
from slipstick_rtl.fpga.ecp5 import clock as clock_ecp5
from slipstick_rtl.fpga.ecp5.clock import Ecp5Pll
from slipstick_rtl.fpga.ecp5.cores import TINY
from slipstick_rtl.fpga.gowin.clock import GW1NR_9, GW2AR_18, OUTPUT_DIVIDERS, pll_finder
from slipstick_rtl.fpga.ice40 import clock as clock_ice40
from slipstick_rtl.fpga.ice40.clock import Ice40Pll
from slipstick_rtl.toplevel.board import Light
from slipstick_rtl.toplevel.design import write_board_design
from slipstick_rtl.toplevel.lights import Glow, StateLights
from slipstick_rtl.toplevel.registry import all_boards, find_board
from slipstick_sim.toolchain import convert_to_rtlil

MHZ = 1_000_000


@pytest.mark.parametrize(
    ("input_mhz", "output_mhz", "expected"),
    [
        (25, 100, Ecp5Pll(1, 4, 6)),
        (48, 96, Ecp5Pll(1, 2, 6)),
        (48, 108, Ecp5Pll(4, 9, 6)),
        (100, 100, Ecp5Pll(1, 1, 6)),
        (12, 48, Ecp5Pll(1, 4, 12)),
    ],
)
def test_the_pll_of_an_ecp5(input_mhz: int, output_mhz: int, expected: Ecp5Pll) -> None:
    pll = clock_ecp5.find_pll(input_mhz * MHZ, output_mhz * MHZ)
    assert pll == expected
    detector = input_mhz / pll.input_divider
    assert detector >= 10
    assert detector * pll.feedback_divider == output_mhz
    assert 400 <= output_mhz * pll.output_divider <= 800


@pytest.mark.parametrize(
    ("input_mhz", "output_mhz", "oscillator_mhz"),
    [(25, 130, 650), (25, 127.5, 637.5), (48, 130, 780), (12, 45, 540)],
)
def test_an_ecp5s_second_output_makes_what_the_first_cannot(
    input_mhz: int, output_mhz: float, oscillator_mhz: float
) -> None:
    pll = clock_ecp5.find_pll(input_mhz * MHZ, round(output_mhz * MHZ))
    detector = input_mhz / pll.input_divider
    assert detector >= 10 and pll.feedback_divider == 1
    assert detector * pll.output_divider == oscillator_mhz and 400 <= oscillator_mhz <= 800
    assert oscillator_mhz / pll.second_divider == output_mhz


@pytest.mark.parametrize("pll", [Ecp5Pll(1, 5, 5), Ecp5Pll(1, 1, 26, 5)])
def test_an_ecp5s_second_output_drives_the_core_and_the_first_the_feedback(pll: Ecp5Pll) -> None:
    clock = clock_ecp5.Ecp5Clock(
        port=io.SingleEndedPort(IOPort(1, name="pin"), direction="i"), pll=pll
    )
    text = convert_to_rtlil(clock, "clock")
    found = dict(re.findall(r"connect \\(CLKOP|CLKOS|CLKFB) (\S+)", text))
    assert ("CLKOS" in found) == (pll.second_divider > 0)
    assert found["CLKOP"] == found["CLKFB"]
    assert found.get("CLKOS", found["CLKOP"]) == "\\clock"
    dividers = dict(re.findall(r"parameter .*\\(CLKO[PS]_DIV) (\d+)", text))
    assert dividers.get("CLKOS_DIV", "0") == str(pll.second_divider)


@pytest.mark.parametrize("pll", [Ecp5Pll(1, 4, 6, late=True), Ecp5Pll(1, 1, 26, 5, late=True)])
def test_an_ecp5s_late_clock_comes_five_eighths_of_a_cycle_later(pll: Ecp5Pll) -> None:
    clock = clock_ecp5.Ecp5Clock(
        port=io.SingleEndedPort(IOPort(1, name="pin"), direction="i"), pll=pll
    )
    text = convert_to_rtlil(clock, "clock")
    assert re.search(r"connect \\CLKOS2 \\late", text)
    found = {
        name: int(value)
        for name, value in re.findall(r"parameter .*\\(CLKO\w+_(?:DIV|[CF]PHASE)) (\d+)", text)
    }
    letter = "S" if pll.second_divider else "P"
    divider = found["CLKOS2_DIV"]
    assert divider == found[f"CLKO{letter}_DIV"]
    # in eighths of the oscillator's cycles
    late = 8 * found["CLKOS2_CPHASE"] + found["CLKOS2_FPHASE"]
    own = 8 * found[f"CLKO{letter}_CPHASE"] + found[f"CLKO{letter}_FPHASE"]
    assert (late - own) / (8 * divider) == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("input_mhz", "output_mhz", "expected"),
    [
        # as the vendor's tool has them
        (12, 30, Ice40Pll(0, 79, 5, 1, 30_000_000)),
        (12, 48, Ice40Pll(0, 63, 4, 1, 48_000_000)),
        (100, 25, Ice40Pll(0, 7, 5, 5, 25_000_000)),
    ],
)
def test_the_pll_of_an_ice40(input_mhz: int, output_mhz: int, expected: Ice40Pll) -> None:
    pll = clock_ice40.find_pll(input_mhz * MHZ, output_mhz * MHZ)
    assert pll == expected
    assert input_mhz / (pll.divr + 1) * (pll.divf + 1) / 2**pll.divq == output_mhz


@pytest.mark.parametrize("limits", [GW1NR_9, GW2AR_18], ids=lambda limits: limits.device)
@pytest.mark.parametrize("output_mhz", [27, 40.5, 54, 60, 81, 99, 108])
def test_the_pll_of_a_gowin(limits: Any, output_mhz: float) -> None:
    output_hz = round(output_mhz * MHZ)
    pll = pll_finder(limits)(27 * MHZ, output_hz)
    detector = 27 * MHZ / pll.input_divider
    assert detector * pll.feedback_divider == output_hz
    assert limits.detector_hz[0] <= detector <= limits.detector_hz[1]
    assert pll.output_divider in OUTPUT_DIVIDERS
    low, high = limits.oscillator_hz
    assert low <= output_hz * pll.output_divider <= high
    assert pll.device == limits.device and pll.input_hz == 27 * MHZ


@pytest.mark.parametrize(
    ("find_pll", "input_mhz", "output_mhz", "message"),
    [
        (
            clock_ecp5.find_pll,
            25,
            101,
            "makes of 25 MHz, not 101 MHz: the nearest are 100 and 101.786 MHz",
        ),
        (clock_ecp5.find_pll, 25, 500, "clock from an ECP5's PLL must be within 3.125..400 MHz"),
        (clock_ecp5.find_pll, 5, 100, "oscillator of an ECP5's PLL must be within 8..400 MHz"),
        (clock_ice40.find_pll, 12, 12, "clock from an iCE40's PLL must be within 16..275 MHz"),
        (clock_ice40.find_pll, 200, 50, "oscillator of an iCE40's PLL .* not 200 MHz"),
        (clock_ice40.find_pll, 12, 20, "not 20 MHz: the nearest are 19.875 and 20.25 MHz"),
        (pll_finder(GW1NR_9), 27, 700, "a GW1NR-9C's PLL must be within 3.125..600 MHz"),
        (pll_finder(GW2AR_18), 2, 50, "oscillator of a GW2AR-18C's PLL .* not 2 MHz"),
        (pll_finder(GW2AR_18), 27, 55.5, "PLL of GW2AR-18C makes of 27 MHz, not 55.5 MHz"),
    ],
)
def test_clocks_that_a_pll_cannot_make_are_refused(
    find_pll: Callable[[int, int], Any], input_mhz: int, output_mhz: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        find_pll(input_mhz * MHZ, round(output_mhz * MHZ))


def test_a_glow_ends_with_the_second_tick_after_its_strobe() -> None:
    dut = Glow()
    seen = []

    async def bench(ctx: Any) -> None:
        for strobe, tick in zip("0110000010000", "0010100001010", strict=True):
            ctx.set(dut.i, int(strobe))
            ctx.set(dut.tick, int(tick))
            seen.append(ctx.get(dut.o))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    # the tick that comes together with a strobe does not count
    assert seen == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]


def test_lights_show_each_state_alone() -> None:
    dut = StateLights(clock_hz=64)
    inputs = {
        "busy": dut.running,
        "received": dut.receiving,
        "sent": dut.sending,
        "fault": dut.line_error,
    }
    alive = []

    async def bench(ctx: Any) -> None:
        for name, output in inputs.items():
            ctx.set(getattr(dut, name), 1)
            await ctx.tick()
            ctx.set(getattr(dut, name), 0)
            await ctx.tick()
            await ctx.delay(1e-9)
            assert [ctx.get(other) for other in inputs.values()] == [
                other is output for other in inputs.values()
            ]
            await ctx.tick().repeat(3)
            assert ctx.get(output)  # for a sixteenth of a second
            await ctx.tick().repeat(6)
        for _ in range(256):
            alive.append(ctx.get(dut.alive))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    changes = sum(before != after for before, after in zip(alive, alive[1:], strict=False))
    assert changes == 4  # two seconds or so each
    with pytest.raises(ValueError, match="clock_hz must be at least 2, not 1"):
        StateLights(clock_hz=1)


def test_a_light_shows_known_states() -> None:
    with pytest.raises(ValueError, match=r"states must be some of running, .* not \('happy',\)"):
        Light(states=("happy",))
    with pytest.raises(ValueError, match=r"not \(\)"):
        Light(states=())


# names and sites of pins that the schematics of the boards give
PINS = {
    "ulx3s-12f": ("clk25_0__io", "G2", "uart_0__tx__io", "L4"),
    "ulx3s-25f": ("clk25_0__io", "G2", "uart_0__rx__io", "M1"),
    "ulx3s-45f": ("clk25_0__io", "G2", "led_7__io", "H3"),
    "ulx3s-85f": ("clk25_0__io", "G2", "button_pwr_0__io", "D6"),
    "orangecrab-85f": ("clk_0__io", "A9", "uart_0__rx__io", "N17"),
    "colorlight-5a75b": ("clk25_0__io", "P6", "uart_0__tx__io", "P11"),
    "ecpix5-45f": ("clk100_0__io", "K23", "uart_0__rx__io", "R26"),
    "ecpix5-85f": ("clk100_0__io", "K23", "rst_0__io", "AB1"),
    "butterstick": ("clk30_0__io", "B12", "usb_0__clk__io", "B6"),
    "icesugar-pro": ("clk25_0__io", "P6", "uart_0__tx__io", "B9"),
    "icebreaker": ("clk12_0__io", "35", "uart_0__tx__io", "9"),
    "tang-nano-9k": ("clk27_0__io", "52", "uart_0__tx__io", "17"),
    "tang-nano-20k": ("clk27_0__io", "4", "uart_0__tx__io", "69"),
}


@pytest.fixture
def no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipstick_rtl.toplevel.board_top.Accelerator", Echo)
    monkeypatch.setattr("slipstick_rtl.toplevel.design.describe", lambda accelerator: {})


def sites(constraints: str) -> dict[str, str]:
    """The sites of ports, from any of the three formats."""
    form = r'(?:LOCATE COMP|IO_LOC|set_io) "?([\w\[\]]+)"? (?:SITE )?"?(\w+)"?'
    return dict(re.findall(form, constraints))


@pytest.mark.usefixtures("no_core")
@pytest.mark.parametrize("name", all_boards())
def test_every_board_has_its_pins(name: str, tmp_path: Path) -> None:
    board = find_board(name)
    clock_hz = board.configuration.clock_hz
    link = "uart" if "uart" in board.links else board.links[0]
    configuration = Configuration(clock_hz=clock_hz)
    text = write_board_design(name, configuration, link, clock_hz / MHZ * 1.05, tmp_path)
    clock, clock_site, pin, site = PINS[name]
    assert sites(text)[clock] == clock_site
    assert sites(text)[pin] == site
    design = (tmp_path / "design.il").read_text()
    plls = 2 if name == "butterstick" else 1
    assert len(re.findall(r"cell \\(EHXPLLL|SB_PLL40_PAD|rPLL) ", design)) == plls
    assert sum(f"cell \\{pll} " in design for pll in ("EHXPLLL", "SB_PLL40_PAD", "rPLL")) == 1
    assert "module \\slipstick.core" in design


@pytest.mark.usefixtures("no_core")
@pytest.mark.parametrize(
    ("name", "link", "pins"),
    [
        ("ulx3s-85f", "spi", {"spi_link_0__sck__io": "B11", "spi_link_0__miso__io": "A11"}),
        ("ulx3s-25f", "usb", {"usb_0__d_p__io": "D15", "usb_0__pullup__io": "B12"}),
        ("orangecrab-85f", "spi", {"spi_link_0__sck__io": "R17", "spi_link_0__mosi__io": "N16"}),
        ("orangecrab-85f", "usb", {"usb_0__d_n__io": "M2"}),
        ("ecpix5-85f", "spi", {"spi_link_0__chip_select_n__io": "T25"}),
        ("ecpix5-45f", "usb-hs", {"ulpi_0__clk__io": "H24", "ulpi_0__data__io[7]": "H25"}),
        ("ecpix5-85f", "rgmii", {"rgmii_0__rx_clk__io": "E11", "rgmii_0__tx_data__io[3]": "A8"}),
        ("colorlight-5a75b", "rgmii", {"rgmii_0__rx_clk__io": "M1", "rgmii_0__rst_n__io": "P5"}),
        ("ulx3s-12f", "rmii", {"rmii_0__ref_clk__io": "G3", "rmii_0__rx_data__io[1]": "C4"}),
        ("icebreaker", "spi", {"spi_link_0__sck__io": "45"}),
    ],
)
def test_boards_have_other_layers(
    name: str, link: str, pins: dict[str, str], tmp_path: Path
) -> None:
    clock_hz = find_board(name).configuration.clock_hz
    configuration = Configuration(clock_hz=clock_hz)
    text = write_board_design(name, configuration, link, clock_hz / MHZ * 1.05, tmp_path)
    assert pins.items() <= sites(text).items()
    assert not any("uart" in port for port in sites(text))


@pytest.mark.parametrize(
    ("name", "pins"),
    [
        ("ulx3s-12f", {"sdram_0__clk__io": "F19", "sdram_0__dqm__io[1]": "E20"}),
        pytest.param(
            "icesugar-pro",
            {"sdram_0__clk__io": "R15", "sdram_0__a__io[12]": "T14"},
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "colorlight-5a75b",
            {"sdram_0__clk__io": "C6", "sdram_0__dq__io[31]": "E11"},
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_dram_has_its_pins_and_a_register_at_each(
    name: str, pins: dict[str, str], tmp_path: Path
) -> None:
    board = find_board(name)
    configuration = replace(TINY, clock_hz=board.configuration.clock_hz, dram=board.dram)
    text = write_board_design(name, configuration, "uart", 100.0, tmp_path)
    assert pins.items() <= sites(text).items()
    design = (tmp_path / "design.il").read_text()
    given, taken = ("OFS1P3DX", "IFS1P3DX")
    bits = sum(port.startswith("sdram_0__dq__io") for port in sites(text))
    assert bits == find_chip(board.dram).data_bits
    others = sum(port.startswith("sdram_0__") for port in sites(text)) - 1 - bits
    # each pin has one more for its enable; so has the clock, whose own is another kind
    assert len(re.findall(rf"cell \\{given} ", design)) == 2 * (bits + others) + 1
    assert len(re.findall(rf"cell \\{taken} ", design)) == bits
    assert re.search(r"connect \\CLKOS2 ", design)
    (source,) = (tmp_path / "sources").iterdir()
    assert source.name == f"litedram_{board.dram.lower()}_{configuration.clock_hz}.v"


def test_ddr3_has_its_pins_clocks_and_phy(tmp_path: Path) -> None:
    configuration = replace(TINY, clock_hz=100 * MHZ, dram="MT41K256M16")
    text = write_board_design("ecpix5-85f", configuration, "uart", 105.0, tmp_path)
    pins = {"ddr3_0__a__io[14]": "H1", "ddr3_0__dq__io[15]": "W2", "ddr3_0__clk__p": "H3"}
    assert pins.items() <= sites(text).items()
    constrained = re.findall(r'FREQUENCY NET "(\S+)" ([\d.]+) HZ', text)
    clocks = {name.rpartition(".")[2]: float(hertz) for name, hertz in constrained}
    assert clocks["ddr3_fast"] == 150 * MHZ and clocks["ddr3_half"] == 75 * MHZ
    names = {source.name for source in (tmp_path / "sources").iterdir()}
    assert names == {"litedram_mt41k256m16_75000000.v", "litedram_mt41k256m16_75000000_phy.v"}


@pytest.mark.parametrize(
    ("name", "dram", "message"),
    [
        ("colorlight-5a75b", "MT48LC16M16", "dram must be M12L16161A or empty on colorlight"),
        ("ecpix5-85f", "MT48LC16M16", "dram must be MT41K256M16 or empty on ecpix5-85f"),
        ("icebreaker", "MT48LC16M16", "dram must be empty on icebreaker, not MT48LC16M16"),
    ],
)
def test_dram_that_a_board_does_not_have_is_refused(
    name: str, dram: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write_board_design(name, Configuration(dram=dram), "uart", 100.0, tmp_path)


@pytest.mark.usefixtures("no_core")
def test_a_layer_without_pins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="link must be one of uart here, not usb"):
        write_board_design("tang-nano-9k", Configuration(), "usb", 100.0, tmp_path)


def test_an_unknown_board_is_refused() -> None:
    with pytest.raises(ValueError, match="board must be one of butterstick, .* not 'arty'"):
        find_board("arty")
