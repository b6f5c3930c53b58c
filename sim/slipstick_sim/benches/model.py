"""Builds the executable of a bench: Verilog, Verilator with cocotb's main, the C++ compiler."""

import importlib.resources
import inspect
from collections.abc import Callable
from pathlib import Path

from cocotb_tools.runner import get_runner
from slipstick_rtl.fpga.yosys_script import synthesis_script
from slipstick_rtl.primitives.multiplier18 import is_ecp5

from .. import toolchain
from .registry import OPTIMISATION, plain_verilog

_RUNTIME = ("verilated", "verilated_dpi", "verilated_vpi", "verilated_threads")


def build_model(
    name: str,
    rtlil: str,
    folder: Path,
    *,
    waves: bool = False,
    verilog: Callable[[str, str], str] = plain_verilog,
    others: str = "",
    optimisation: str = OPTIMISATION,
) -> Path:
    """Returns the folder of a component's executable model; builds it unless it is there already.

    Tests see the ports of the top and nothing below it: cocotb's default, every signal, takes
    several times as long to compile.

    Parameters
    ----------
    name : str
        Of the top module and of the executable.
    rtlil : str
        The component. The model is kept until this text, this module or a tool changes.
    folder : Path
        Where models are kept.
    waves : bool
        Whether the model can write a waveform.
    verilog : callable
        Makes Verilog from the RTLIL and the name.
    others : str
        Verilog of modules that the component has instances of.
    optimisation : str
        Option of the C++ compiler.

    Raises
    ------
    ToolError
        If the model cannot be built; the message has the end of the log.
    """
    recipe = Path(__file__).read_bytes()
    writer, options = _source(verilog), f"{waves} {optimisation}"
    directory = folder / f"{name}-{toolchain.content_key(rtlil, recipe, options, writer, others)}"

    def build(part: Path) -> None:
        (part / f"{name}.v").write_text(verilog(rtlil, name) + others)
        (part / "ports.vlt").write_text(
            f'`verilator_config\npublic_flat_rw -module "{name}" -var "*"\n'
        )
        _compile(name, part, _build_runtime(folder, waves), waves, optimisation)
        for path in part.iterdir():
            if path.suffix in {".o", ".a", ".cpp", ".d", ".gch", ".h"}:
                path.unlink()

    toolchain.build_once(directory, build)
    return directory


def _source(function: Callable[..., object]) -> bytes:
    """Returns the text of the packages that make Verilog: if it changes, so does the model."""
    if function is plain_verilog:
        return b""
    folders = [Path(inspect.getfile(part)).parent for part in (function, synthesis_script, is_ecp5)]
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return b"".join(path.read_bytes() for path in files)


def _compile(name: str, directory: Path, runtime: Path, waves: bool, optimisation: str) -> None:
    objects = " ".join(str(path) for path in sorted(runtime.glob("*.o")))
    arguments = ["--no-public-flat-rw", "-Wno-fatal", "-Wno-lint", "-LDFLAGS", objects]
    if waves:
        arguments += ["--trace-fst", "-LDFLAGS", f"-L{runtime}"]
    log = directory / "build.log"
    # The objects that every model shares are linked from ``runtime``, not compiled again.
    variables = {"VM_GLOBAL_FAST": "", "OPT_FAST": optimisation}
    try:
        with toolchain.tool_environment(variables):
            get_runner("verilator").build(
                sources=[directory / "ports.vlt", directory / f"{name}.v"],
                hdl_toplevel=name,
                build_dir=directory,
                build_args=arguments,
                timescale=("1ns", "1ps"),
                waves=waves,
                log_file=log,
            )
    except (RuntimeError, SystemExit) as error:
        text = log.read_text(errors="replace") if log.exists() else ""
        raise toolchain.ToolError(
            f"Verilator cannot build {name}: {error}\n{toolchain.last_lines(text)}"
        ) from error


def _build_runtime(folder: Path, waves: bool) -> Path:
    """Builds Verilator's own objects, the larger part of a small model's compile time."""
    compiler = toolchain.compiler()
    recipe = Path(__file__).read_bytes()
    directory = folder / f"runtime-{toolchain.content_key(recipe, str(waves), compiler)}"

    def build(part: Path) -> None:
        options = [OPTIMISATION, *toolchain.verilator_options("fst" if waves else "")]
        sources: list[str] = list(_RUNTIME)
        if waves:
            sources.append("verilated_fst_c")
            options.append(f"-I{part}")
            _write_compression(part)
        for name in sources:
            source = toolchain.verilator_root() / "include" / f"{name}.cpp"
            toolchain.run_tool(
                [compiler, *options, "-c", source, "-o", part / f"{name}.o"],
            )

    toolchain.build_once(directory, build)
    return directory


def _write_compression(directory: Path) -> None:
    """Writes stand-ins for zlib and LZ4: headers that do the work, and empty libraries to link."""
    for header in ("zlib.h", "lz4.h"):
        source = importlib.resources.files(__package__ or "") / "fst" / header
        (directory / header).write_text(source.read_text())
    for library in ("z", "lz4"):
        toolchain.run_tool(["ar", "rcs", directory / f"lib{library}.a"])
