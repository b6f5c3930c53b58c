"""Tables of README and pages repeat what the code and the reports say."""

import json
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from slipstick.cli import app
from slipstick.devices.link.errors import CODES
from slipstick.studies.price_list.layouts import layouts
from slipstick.studies.price_list.list import PriceReport
from slipstick.studies.price_list.page import price_page
from slipstick.studies.price_list.table import accuracies
from slipstick.studies.price_list.table import rows as price_rows
from slipstick.targets import TARGETS, Target
from slipstick_rtl import isa
from slipstick_rtl.link.protocol import Space
from slipstick_sim import tools

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = {
    "ULX3S 12F": "ulx3s-12f",
    "ULX3S 25F": "ulx3s-25f",
    "ULX3S 45F": "ulx3s-45f",
    "ULX3S 85F": "ulx3s-85f",
    "ECPIX-5 45F": "ecpix5-45f",
    "ECPIX-5 85F": "ecpix5-85f",
    "iCESugar-Pro (25F)": "icesugar-pro",
    "Colorlight 5A-75B (25F)": "colorlight-5a75b",
    "iCEBreaker (iCE40UP5K)": "icebreaker",
    "Tang Nano 9K (GW1NR-9C)": "tang-nano-9k",
    "Tang Nano 20K (GW2AR-18C)": "tang-nano-20k",
    "ULX3S 12F, SDRAM": "ulx3s-12f-sdram",
    "Colorlight 5A-75B (25F), SDRAM": "colorlight-5a75b-sdram",
    "iCESugar-Pro (25F), SDRAM": "icesugar-pro-sdram",
    "ULX3S 45F, SDRAM": "ulx3s-45f-sdram",
    "ULX3S 85F, SDRAM": "ulx3s-85f-sdram",
    "ECPIX-5 85F, 16 lanes": "ecpix5-85f-16-lanes",
    "ULX3S 85F, 16 lanes": "ulx3s-85f-16-lanes",
    "ULX3S 85F, lns5": "ulx3s-85f-lns5",
    "ECPIX-5 85F, DDR3": "ecpix5-85f-ddr3",
    "ECPIX-5 85F, DDR3, training": "ecpix5-85f-training-ddr3",
    "ECPIX-5 85F, Ethernet": "ecpix5-85f-ethernet",
    "ECPIX-5 85F, USB high speed": "ecpix5-85f-ethernet",
    "ButterStick, USB high speed": "butterstick",
    "OrangeCrab 85F, USB full speed": "orangecrab-85f",
    "ULX3S 12F, USB full speed": "ulx3s-12f",
    "ECPIX-5 45F, Ethernet": "ecpix5-45f-ethernet",
    "ULX3S 85F, Ethernet": "ulx3s-85f-ethernet",
    "Colorlight 5A-75B (25F), Ethernet": "colorlight-5a75b",
}
"""Targets by what README and figures call them."""
LINKS = {
    "ECPIX-5 85F, Ethernet": "rgmii",
    "ECPIX-5 85F, USB high speed": "usb-hs",
    "ButterStick, USB high speed": "usb-hs",
    "OrangeCrab 85F, USB full speed": "usb",
    "ULX3S 12F, USB full speed": "usb",
    "ECPIX-5 45F, Ethernet": "rgmii",
    "ULX3S 85F, Ethernet": "rmii",
    "Colorlight 5A-75B (25F), Ethernet": "rgmii",
}
"""Of rows whose report is that of another wire than the UART."""
_SIXTEEN = ("ecpix5-85f", "ulx3s-85f")
"""Boards whose targets with sixteen lanes are routed."""


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first line begins with this, without its two first lines."""
    lines = (ROOT / page).read_text().splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith(heading)]
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@cache
def report(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "reports" / f"{name}.json").read_text())


def shape(target: Target) -> str:
    compact = "" if target.configuration.traits.overlaps_streams else ", compact"
    return f"{target.configuration.shape}{compact}"


def rounded(number: float) -> str:
    """With one decimal, as by hand: 54.25 is 54.3."""
    return str(Decimal(str(number)).quantize(Decimal("0.1"), ROUND_HALF_UP))


def test_end_to_end() -> None:
    """figures.md repeats the report, which is of today's hardware."""
    cases = report("end_to_end")["cases"].values()
    expected = [
        [
            f"{entry['name']}, {entry['target']}, {entry['wire']}",
            f"{entry['inferences_per_second']:,.1f}",
            f"{entry['core_inferences_per_second']:,.1f}",
            f"{100 * entry['share_of_core']:.1f} %",
            f"{100 * entry['share_of_wire']:.1f} %",
            f"{entry['bytes_up_per_image']:,.0f}",
            str(entry["round_trips"]),
            str(entry["images"]),
        ]
        for entry in cases
    ]
    assert rows("docs/reference/figures.md", "| network, board, wire |") == expected
    for entry in cases:
        assert entry["fingerprint"] == TARGETS[entry["target"]].configuration.fingerprint
        assert entry["equal_images"] == entry["images"]


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "| board, whole design"), ("docs/reference/figures.md", "| board | array")],
)
def test_builds(page: str, heading: str) -> None:
    found = rows(page, heading)
    for name, array, clocks, lut, dsp, bram in found:
        target = TARGETS[NAMES[name]]
        link = f"-{LINKS[name]}" if name in LINKS else ""
        built = report(f"build-{target.name}{link}")
        needed, reached = clocks.split(", ")
        assert (needed, reached) == (f"{built['clock_mhz']:g}", f"{built['fmax_mhz']:.1f}"), name
        assert (lut, bram) == (f"{built['lut']:,}", str(built["bram"])), name
        assert re.split(r"\D", dsp)[0] == str(built["dsp"]), name
        assert built["fingerprint"] == target.configuration.fingerprint, name
        assert array == shape(target), name
    if page != "README.md":
        assert {name for name, *_ in found} == set(NAMES)


def test_tools() -> None:
    """docs/how-to/boards.md: the variable of each tool that can be named."""
    known = {value.variable for value in vars(tools).values() if isinstance(value, tools.Tool)}
    named = {
        name
        for cell, _ in rows("docs/how-to/boards.md", "| variables | tools")
        for name in re.findall("`([A-Z0-9_]+)`", cell)
    }
    assert known == named


def test_networks() -> None:
    """README repeats figures.md; rates are the bitstream's clock divided by the cycles."""
    clock = report("build-ulx3s-85f")["clock_mhz"]
    ours = rows("README.md", "| `ulx3s-85f`, 512")
    figures = rows("docs/reference/figures.md", "| network | cycles, RTL")
    assert [row[1:] for row in ours] == [row[1:] for row in figures]
    for name, cycles, *_, rate in figures:
        assert float(rate.replace(",", "")) == round(clock * 1e6 / int(cycles.replace(",", ""))), (
            name
        )
    for page in ("README.md", "docs/reference/figures.md"):
        assert f"core alone, inferences per second at {clock:g} MHz" in (ROOT / page).read_text()


def test_sixteen_lanes() -> None:
    """Cycles are the report's; rates are the clock that each board's build was made for."""
    cases = report("bench_16_lanes")["cases"]
    found = rows("docs/reference/figures.md", "| network, sixteen lanes")
    assert len(found) == len(cases)
    for row, case in zip(found, cases.values(), strict=True):
        clocks = [report(f"build-{name}-16-lanes")["clock_mhz"] for name in _SIXTEEN]
        expected = [
            f"{case['cycles']:,}",
            f"{case['predicted_cycles']:,}",
            f"{case['utilisation'] * 100:.1f} %",
            *(f"{round(clock * 1e6 / case['cycles']):,}" for clock in clocks),
        ]
        assert row[1:] == expected, row[0]
        assert not case["mismatches"], row[0]
    for name in _SIXTEEN:
        built = report(f"build-{name}-16-lanes")
        assert {case["fingerprint"] for case in cases.values()} == {built["fingerprint"]}


def test_logarithms_on_a_board() -> None:
    """Areas and clocks are of the builds, the cycles of lns5 those of its report."""
    found = rows("docs/reference/figures.md", "| target | elements, DSP")
    for name, elements, cells, clock, cycles, _, rate in found:
        target = TARGETS[name.split("`")[1]]
        built = report(f"build-{target.name}")
        assert elements == f"{target.configuration.macs_per_cycle}, {built['dsp']}", name
        assert cells == f"{built['lut']:,}", name
        assert clock == f"{built['clock_mhz']:g}, {rounded(built['fmax_mhz'])}", name
        assert rate == f"{round(built['clock_mhz'] * 1e6 / int(cycles.replace(',', ''))):,}", name
    case = report("bench_lns5")["cases"]["ResNet-8"]
    expected = [f"{case['cycles']:,}", f"{case['predicted_cycles']:,}"]
    assert found[-1][4:6] == expected and not case["mismatches"]
    assert case["fingerprint"] == TARGETS["ulx3s-85f-lns5"].configuration.fingerprint


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("README.md", "| format | LUT4s per proc"),
        ("docs/reference/figures.md", "| format | LUT4s per el"),
    ],
)
def test_formats(page: str, heading: str) -> None:
    """Areas of elements from the price list, accuracies from the study."""
    prices = report("price_list")["measurements"]
    networks = {entry["network"]: entry for entry in report("lns_accuracy")["networks"]}
    for name, luts, resnet, mnist in rows(page, heading):
        lns = re.search(r"1\+\d\+\d", name)
        kind = f"lns{lns[0]}" if lns else "int8 lut"
        assert re.findall(r"[\d.]+", luts)[0] == rounded(prices[f"element {kind}"]["lut"]), name
        for network, cell, places in (("ResNet-8", resnet, 1), ("MNIST CNN", mnist, 2)):
            entry = networks[network]
            formats = {each["format"]: each["accuracy_percent"] for each in entry["formats"]}
            percent = formats[kind] if lns else entry["int8_percent"]
            assert cell == f"{percent:.{places}f} %", name


def test_price_list() -> None:
    """The page is the one that ``make price-list`` writes out of the reports."""
    found = price_rows(
        PriceReport(ROOT / "reports" / "price_list.json"), accuracies(ROOT / "reports")
    )
    place = ROOT / "docs" / "reference" / "price-list.md"
    plot = ROOT / "docs" / "images" / "price-list.png"
    text = price_page(found, layouts(ROOT / "reports"), place, plot)
    assert place.read_text() == text, "run make price-list"


def test_link() -> None:
    """docs/reference/link.md: error codes and memories."""
    page = "docs/reference/link.md"
    assert rows(page, "| code |") == [[f"`{code}`", text] for code, text in CODES.items()]
    spaces = [row[0] for row in rows(page, "| space |")]
    assert sorted(spaces) == sorted(space.name for space in Space)


def test_largest_kernel_and_stride() -> None:
    """README and command-line.md name the limits of the instruction's fields."""
    widest, largest = (
        (1 << isa.MATRIX_FIELDS[name].width) - 1 for name in ("kernel_x", "stride_x")
    )
    assert (
        f"a kernel is at most {widest} columns wide and a stride at most {largest}"
        in (ROOT / "README.md").read_text()
    )
    assert (
        f"{widest} columns wide on the device, and a stride or dilation {largest}"
        in (ROOT / "docs" / "how-to" / "command-line.md").read_text()
    )


def _commands() -> dict[str, set[str]]:
    """The options of every command, and of ``study X`` by both words."""
    found = dict[str, set[str]]()

    def add(command: Any, words: tuple[str, ...]) -> None:
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        found[" ".join(words)] = options | {"--help", "-h"}
        if hasattr(command, "list_commands"):
            for name in command.list_commands(None):
                add(command.get_command(None, name), (*words, name))

    add(typer.main.get_command(app), ())
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    """Every ``slipstick COMMAND --option`` of the pages is one."""
    known = _commands()
    text = page.read_text().replace("\\\n", " ")
    for call in re.findall(r"(?:^ *|`|bin/|\()slipstick ([a-z-][^`\n#|]*)", text, re.MULTILINE):
        words = call.split()
        if words[0] == "slipstick_0":  # an instance in Verilog
            continue
        name = " ".join(words[:2]) if words[0] == "study" and len(words) > 1 else words[0]
        if name.startswith("-"):
            name = ""
        name = name if name in known else words[0]
        assert name in known, call
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", call):
            assert option in known[name], call
