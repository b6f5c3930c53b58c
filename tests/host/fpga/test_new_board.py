"""A new board is one file: an imaginary one gets a target, a bitstream and a place in the lists."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pretended_tools import PACKING, PLACEMENT, SYNTHESIS, pretend
from slipstick.fpga import build as flow
from slipstick.fpga.programmer import program
from slipstick.targets import Target, targets_of
from slipstick_rtl import boards
from slipstick_rtl.toplevel.registry import all_boards, find_board

BOARD = '''"""An imaginary board."""

from ..fpga.gowin.cores import GW1N
from ..fpga.parts import ECP5_25F, Part
from ..toplevel.board import Board, Light, Programmer, Variant, WirePins, clocked


def _platform():
    from amaranth.build import Attrs, Clock, Pins, Resource
    from amaranth.vendor import LatticeECP5Platform

    class Imaginary(LatticeECP5Platform):
        device, package, speed = "LFE5U-25F", "BG381", "6"
        default_clk = "clk50"
        resources = [
            Resource("clk50", 0, Pins("G2", dir="i"), Clock(50e6), Attrs(IO_TYPE="LVCMOS33")),
            Resource("led", 0, Pins("B2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
        ]
        connectors = []

    return Imaginary()


BOARDS = (
    Board(
        name="imaginary",
        description="a board of this test alone",
        part=Part("LFE5U-25F", "CABGA381", 6, *ECP5_25F),
        platform=_platform,
        oscillator_hz=50_000_000,
        configuration=clocked(GW1N, 50_000_000),
        variants=(
            Variant(suffix="slow", description="half", configuration=clocked(GW1N, 25_000_000)),
        ),
        wires=(
            WirePins(wire="uart", pins={"rx": "M1", "tx": "L4"}, attributes={"PULLMODE": "UP"}),
        ),
        lights=(Light(states=("alive",)),),
        programmer=Programmer(board="imaginary_loader"),
    ),
)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the board's one file."""
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards" / "imaginary.py").write_text(BOARD)
    return tmp_path / "boards"


@pytest.fixture
def targets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Target]]:
    """The targets of the board, which this process knows for a while."""
    monkeypatch.setattr(boards, "__path__", [*boards.__path__, str(folder)])
    all_boards.cache_clear()
    yield targets_of(find_board("imaginary"))
    all_boards.cache_clear()
    del sys.modules[f"{boards.__name__}.imaginary"]


def test_an_imaginary_board_is_built(
    targets: list[Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateware, plan of place and route, bitstream and loader, all from the one file."""
    assert [target.name for target in targets] == ["imaginary", "imaginary-slow"]
    monkeypatch.chdir(tmp_path)
    tools = {"YOSYS": SYNTHESIS, "NEXTPNR_ECP5": PLACEMENT, "ECPPACK": PACKING}
    pretend(tmp_path / "tools", monkeypatch, **tools)
    made = tmp_path / "build" / "bitstreams" / "imaginary"
    done = flow.build(targets[0])
    assert done.bitstream == made / "slipstick.bit"
    called = (made / "seed_1" / "place_and_route.log").read_text()
    assert "--25k --package CABGA381 --speed 6" in called and "--freq 52.5" in called
    pins = (made / "pins.lpf").read_text()
    assert 'LOCATE COMP "uart_0__tx__io" SITE "L4"' in pins and "PULLMODE=UP" in pins
    design = (made / "design.il").read_text()
    assert "cell \\EHXPLLL " in design and "\\slipstick.core.compact" in design
    assert json.loads((made / "design.json").read_text())["board"] == "imaginary"
    loader = tmp_path / "loader"
    loader.write_text(f"#!{sys.executable}\nimport sys\nprint(*sys.argv[1:])\n")
    loader.chmod(0o755)
    monkeypatch.setenv("OPENFPGALOADER", str(loader))
    assert "--board imaginary_loader --write-sram" in program(targets[0]).read_text()


def test_an_imaginary_board_is_listed(folder: Path) -> None:
    """The command line of a process that found the file has the targets, their part and clock."""
    code = (
        f"from slipstick_rtl import boards; boards.__path__.append({str(folder)!r});"
        "from slipstick.cli import app; import sys;"
        "assert 'amaranth' not in sys.modules;"
        "app(['targets', '--json'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = {entry["target"]: entry for entry in json.loads(ran.stdout)["targets"]}
    assert listed["imaginary"]["part"] == "LFE5U-25F"
    assert listed["imaginary-slow"]["clock_hz"] == 25_000_000


def test_a_board_is_described_once(
    folder: Path, targets: list[Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "twin.py").write_text(BOARD)
    all_boards.cache_clear()
    with pytest.raises(ValueError, match="board 'imaginary' must be described once"):
        all_boards()
    del sys.modules[f"{boards.__name__}.twin"]
