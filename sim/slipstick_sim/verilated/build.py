"""Compiles a core into a cached shared library: Yosys, Verilator, the C++ compiler."""

import dataclasses
import importlib.resources
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import slipstick_rtl
from amaranth.lib import wiring
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_rtl.dram.chips import Ddr3Chip
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES
from slipstick_rtl.phy.core_behind_phy import CoreBehindPhy
from slipstick_rtl.phy.interface import make_phy
from slipstick_rtl.phy.registry import find_wire
from slipstick_rtl.phy.spi_protocol import MINIMUM_SCK_CYCLES
from slipstick_rtl.phy.uart_rates import MINIMUM_DIVISOR

from .. import toolchain
from ..dram.core_with_dram import CoreWithDram
from .ethernet_board import LEASE_CYCLES, EthernetBoard
from .notice import compiling
from .objects import compile_model, compiler_recipe, runtime_objects

LIBRARY = "core.so"
_HARNESS = "harness.cpp"
_LINE = "line.h"
_ACTIVITY = "activity.h"
_NOMINAL_BAUD = 1_000_000  # only the cycles of a bit count

# Merging conditional assignments takes nine tenths of Verilator's time and gains nothing.
_VERILATOR_OPTIONS = (
    "-O3 -fno-merge-cond --x-assign fast --x-initial fast --no-assert --no-timing"
    " --output-split 10000 -Wno-fatal -Wno-lint"
).split()
_OPTIMISATION = "SLIPSTICK_OPTIMISATION"
_RUNTIME = ("verilated", "verilated_threads")
_SAIF = "saif"
_VCD = "vcd"
_TRACE_RUNTIMES = {_SAIF: ("verilated_saif_c",), _VCD: ("verilated_vcd_c",)}


@dataclass(frozen=True)
class Line:
    """Describes the line between a core and its harness.

    Parameters
    ----------
    name : str
        Of the file in ``lines``.
    defines : mapping of int by str
        That the file asks for.
    activity : str
        What is recorded of the core's signals: ``none``, ``saif`` or ``vcd``.
    """

    name: str = "stream"
    defines: Mapping[str, int] = field(default_factory=dict)
    activity: str = "none"

    @property
    def options(self) -> list[str]:
        """For the compiler."""
        return [f"-D{name}={value}" for name, value in self.defines.items()]


def accelerator_library(
    configuration: Configuration,
    directory: Path | None = None,
    timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    label: str = "",
) -> Path:
    """The library of the core with this configuration, built unless it is there already.

    Elaborating a large core takes as long as its compilation, so the library is looked up by the
    text of the gateware's sources first.

    Parameters
    ----------
    configuration : Configuration
    directory : Path, optional
        Where libraries are kept; ``toolchain.cache_directory()`` by default.
    timeout_cycles : int
        After which the link forgets half a frame; the fewer, the less there is to simulate.
    label : str
        Name of the hardware in the lines that tell of a compilation; by default the array's shape.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    """

    def build() -> Path:
        core, others = _core(configuration, timeout_cycles)
        return build_library(
            core, name="accelerator", directory=directory, line=line, others=others
        )

    line = Line("stream", _defines(configuration))
    key = _sources_key(configuration, line, f"timeout {timeout_cycles}")
    return _find_or_build(key, directory, build, compiling(configuration, label))


def paced_library(
    configuration: Configuration, directory: Path | None = None, label: str = ""
) -> Path:
    """The library of the core with this configuration, whose streams have the timing of a wire.

    Parameters
    ----------
    configuration, directory, label
        As for ``accelerator_library``.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    """

    def build() -> Path:
        core, others = _core(configuration, DEFAULT_TIMEOUT_CYCLES)
        return build_library(core, name="paced", directory=directory, line=line, others=others)

    line = Line("paced", _defines(configuration))
    key = _sources_key(configuration, line)
    return _find_or_build(key, directory, build, compiling(configuration, label))


def _core(configuration: Configuration, timeout_cycles: int) -> tuple[wiring.Component, str]:
    """The core, with its DRAM chip if it has one, and the Verilog that goes beside it."""
    if not configuration.dram:
        return Accelerator(configuration=configuration, timeout_cycles=timeout_cycles), ""
    core = CoreWithDram(configuration=configuration, timeout_cycles=timeout_cycles)
    return core, core.verilog


def _defines(configuration: Configuration) -> dict[str, int]:
    chip = configuration.dram_chip
    if chip is None:
        return {}
    if not isinstance(chip, Ddr3Chip):
        return {"HAS_DRAM": 1}
    return {"HAS_DRAM": 1, "DDR3_HZ": configuration.ddr3_hz, "CORE_HZ": configuration.clock_hz}


def accelerator_rtlil(configuration: Configuration, name: str) -> str:
    """The core with this configuration, its reset a port, as RTLIL with the top ``name``."""
    return toolchain.convert_to_rtlil(Accelerator(configuration=configuration), name)


def activity_library(rtlil: str, name: str, directory: Path | None = None) -> Path:
    """A library that can record how often each signal of a design changes; it is much slower.

    Parameters
    ----------
    rtlil : str
        Of a core, as ``convert_to_rtlil`` writes it; its reset stays low, and its registers begin
        with their initial values.
    name : str
        Of its top module.
    directory : Path, optional
        As for ``accelerator_library``.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    """
    return _library_of(rtlil, name, directory, Line(activity=_SAIF))


def waveform_library(rtlil: str, name: str, directory: Path | None = None) -> Path:
    """As ``activity_library``, but every value of a signal is recorded, in the VCD format."""
    return _library_of(rtlil, name, directory, Line(activity=_VCD))


def serial_library(
    configuration: Configuration,
    divisor: int = MINIMUM_DIVISOR,
    directory: Path | None = None,
    timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    label: str = "",
) -> Path:
    """The library of a board: the core with this configuration behind the pins of its UART.

    Parameters
    ----------
    configuration, directory, timeout_cycles, label
        As for ``accelerator_library``.
    divisor : int
        Clock cycles of a bit; the fewer, the less there is to simulate.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    ValueError
        If a bit is too short.
    """

    def build() -> Path:
        # the UART's own clock: of the core, that of a DRAM counts
        hertz = divisor * _NOMINAL_BAUD
        clocked = dataclasses.replace(configuration.with_dram(""), clock_hz=hertz)
        wire = find_wire("uart")
        phy = make_phy(wire, clocked, baud=_NOMINAL_BAUD)
        core, others = _core(configuration, timeout_cycles)
        board = CoreBehindPhy(accelerator=core, wire=wire, phy=phy)
        return build_library(board, name="serial", directory=directory, line=line, others=others)

    line = Line("serial", {"SERIAL_DIVISOR": divisor, **_defines(configuration)})
    key = _sources_key(configuration, line, f"timeout {timeout_cycles}")
    return _find_or_build(key, directory, build, compiling(configuration, label))


def spi_library(
    configuration: Configuration,
    divisor: int = MINIMUM_SCK_CYCLES,
    directory: Path | None = None,
    label: str = "",
) -> Path:
    """The library of a board: the core with this configuration behind the pins of its SPI.

    Parameters
    ----------
    configuration, directory, label
        As for ``accelerator_library``.
    divisor : int
        Clock cycles of a period of SCK.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    ValueError
        If a period is too short.
    """
    if divisor < MINIMUM_SCK_CYCLES:
        raise ValueError(f"divisor must be at least {MINIMUM_SCK_CYCLES}, not {divisor}")

    def build() -> Path:
        wire = find_wire("spi")
        phy = make_phy(wire, configuration)
        core, others = _core(configuration, DEFAULT_TIMEOUT_CYCLES)
        board = CoreBehindPhy(accelerator=core, wire=wire, phy=phy)
        return build_library(board, name="spi", directory=directory, line=line, others=others)

    line = Line("spi", {"SPI_DIVISOR": divisor, **_defines(configuration)})
    key = _sources_key(configuration, line)
    return _find_or_build(key, directory, build, compiling(configuration, label))


def ethernet_library(
    configuration: Configuration,
    *,
    ip: str | None,
    mac: str,
    lease_cycles: int = LEASE_CYCLES,
    timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    directory: Path | None = None,
    label: str = "",
) -> Path:
    """The library of a board: the core with this configuration behind an Ethernet port.

    All clocks are one: LiteEth's, the core's, and that of the wire, which has a byte per cycle.

    Parameters
    ----------
    configuration, directory, label
        As for ``accelerator_library``.
    ip, mac : str
        Of the board, as the options of its wire.
    lease_cycles : int
        Of a lease; the fewer, the sooner does a silent owner lose the board.
    timeout_cycles : int
        After which the link forgets half a frame.

    Raises
    ------
    ImportError
        If LiteEth is not installed.
    ToolError
        If a tool is missing or fails.
    ValueError
        If an address is none.
    """

    def build() -> Path:
        core, others = _core(configuration, timeout_cycles)
        board = EthernetBoard(
            core=core, configuration=configuration, ip=ip, mac=mac, lease_cycles=lease_cycles
        )
        return build_library(
            board, name="ethernet", directory=directory, line=line, others=board.verilog + others
        )

    line = Line("ethernet", _defines(configuration))
    key = _sources_key(configuration, line, f"{ip} {mac} {lease_cycles} timeout {timeout_cycles}")
    return _find_or_build(key, directory, build, compiling(configuration, label))


def _find_or_build(
    key: str,
    directory: Path | None,
    build: Callable[[], Path],
    notice: AbstractContextManager[None],
) -> Path:
    """Returns the library of these sources; builds it inside the notice unless it is there."""
    folder = _folder(directory)
    alias = folder / f"sources-{key}"
    if (found := _found(alias)) is not None:
        return found
    # a process that waits for another one's compilation tells of it too
    with notice, toolchain.exclusive(alias.with_suffix(".lock")):
        if (found := _found(alias)) is not None:
            return found
        library = build()
        part = alias.with_suffix(f".{os.getpid()}")
        part.write_text(library.parent.name)
        part.replace(alias)
    return library


def _found(alias: Path) -> Path | None:
    """Returns the library that an alias names, None if there is none, or a damaged one."""
    known = _known(alias)
    if known is None or not toolchain.has_checksum(alias.parent / known / LIBRARY):
        return None
    return alias.parent / known / LIBRARY


def _known(alias: Path) -> str | None:
    """The folder that an alias names, None if there is none, or it names no folder."""
    try:
        name = alias.read_text("ascii")
    except (OSError, ValueError):
        return None
    return name if name and name == os.path.basename(name) and name.isprintable() else None


def build_library(
    component: wiring.Component,
    *,
    name: str = "core",
    directory: Path | None = None,
    line: Line = Line(),
    others: str = "",
) -> Path:
    """A shared library that runs a core by the functions of ``harness.cpp``.

    The model has no ``rst``: logic that hangs on an input is evaluated on its own, before and
    after the clock's edge, and every register's next state would hang on ``rst``.

    Parameters
    ----------
    component : wiring.Component
        With the ports of ``Accelerator``: byte streams ``i`` and ``o``, ``running``, and
        ``events`` of at most 8 bits; or of ``CoreBehindPhy``: pins instead of streams.
    name : str
        Of the Verilog top, and of the library's folder.
    directory : Path, optional
        Where libraries are kept, under a hash of the RTLIL, the harness, the options and the
        tools; ``toolchain.cache_directory()`` by default.
    line : Line
        The one for the component's ports.
    others : str
        Verilog of modules that the component has instances of.

    Returns
    -------
    Path
        The library. Processes that build the same one at once build it once.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    """
    rtlil = toolchain.convert_to_rtlil(component, name, resettable=False)
    return _library_of(rtlil, name, directory, line, others)


def _library_of(
    rtlil: str, name: str, directory: Path | None, line: Line, others: str = ""
) -> Path:
    key = toolchain.content_key(rtlil, others, *_recipe(line))
    target = _folder(directory) / f"{name}-{key}"
    toolchain.build_once(target, lambda part: _build(rtlil, name, part, line, others), _is_whole)
    return target / LIBRARY


def _is_whole(folder: Path) -> bool:
    """Tells whether a library is what was built: a damaged one may end this process when loaded."""
    return toolchain.has_checksum(folder / LIBRARY)


def _folder(directory: Path | None) -> Path:
    folder = (directory or toolchain.cache_directory()) / "compiled"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _sources(line: Line) -> dict[str, bytes]:
    """The hand-written C++, by the names under which it is compiled."""
    folder = importlib.resources.files(__package__ or "")
    recorder = "trace.h" if line.activity in _TRACE_RUNTIMES else "none.h"
    paths = {
        _HARNESS: folder / _HARNESS,
        _LINE: folder / "lines" / f"{line.name}.h",
        _ACTIVITY: folder / "activity" / recorder,
    }
    return {name: path.read_bytes() for name, path in paths.items()}


def _recipe(line: Line) -> list[str | bytes]:
    """Returns what a library depends on besides the gateware: all of it is in its name."""
    own = Path(__file__).read_bytes()
    options = [*_fast_options(), *line.options, line.activity]
    return [*_sources(line).values(), *options, own, *compiler_recipe()]


def _fast_options() -> list[str]:
    """Returns the options for what runs in every cycle."""
    return [os.environ.get(_OPTIMISATION) or "-O2", "-fno-stack-protector"]


def _sources_key(configuration: Configuration, line: Line, *others: str) -> str:
    root = Path(slipstick_rtl.__file__).parent
    sources: list[str | bytes] = []
    for path in sorted(root.rglob("*.py")):
        sources += [str(path.relative_to(root)), path.read_bytes()]
    return toolchain.content_key(str(configuration.to_dict()), *others, *_recipe(line), *sources)


def _build(rtlil: str, name: str, part: Path, line: Line, others: str) -> None:
    (part / f"{name}.v").write_text(toolchain.convert_to_verilog(rtlil) + others)
    for source, code in _sources(line).items():
        (part / source).write_bytes(code)
    verilate = ["verilator", "-cc", "-Mdir", ".", "--prefix", "Vtop", "--top-module", name]
    if line.activity in _TRACE_RUNTIMES:
        # names that begin with an underscore are left out otherwise
        verilate += [f"--trace-{line.activity}", "--trace-underscore"]
    with toolchain.tool_environment():
        toolchain.run_tool([*verilate, *_VERILATOR_OPTIONS, f"{name}.v"], cwd=part)
    _compile(part, line)
    for path in part.iterdir():
        if path.name != LIBRARY:
            path.unlink()
    toolchain.write_checksum(part / LIBRARY)


def _compile(part: Path, line: Line) -> None:
    """Compiles the model with its harness and links it with Verilator's own objects."""
    switches = toolchain.verilator_options(line.activity)
    objects = compile_model(part, _fast_options(), [f"-I{part}", *line.options, *switches])
    include = toolchain.verilator_root() / "include"
    names = (*_RUNTIME, *_TRACE_RUNTIMES.get(line.activity, ()))
    sources = [include / f"{name}.cpp" for name in names]
    objects += runtime_objects(part.parent, sources, [*_fast_options(), *switches])
    library = part / LIBRARY
    toolchain.run_tool(
        [toolchain.compiler(), "-shared", "-pthread", *objects, "-o", library], cwd=part
    )
