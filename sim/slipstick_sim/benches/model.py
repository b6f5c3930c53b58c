"""Builds the executable of a bench: Verilog, Verilator with cocotb's main, the C++ compiler."""

import inspect
from collections.abc import Callable
from pathlib import Path

from cocotb_tools import config
from slipstick_rtl.fpga.yosys_script import synthesis_script
from slipstick_rtl.primitives.multiplier18 import is_ecp5

from .. import toolchain
from ..verilated.objects import compile_model, compiler_recipe, runtime_objects
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
    recipe = [Path(__file__).read_bytes(), *compiler_recipe(), f"{waves} {optimisation}"]
    key = toolchain.content_key(rtlil, *recipe, _source(verilog), others)
    directory = folder / f"{name}-{key}"

    def build(part: Path) -> None:
        (part / f"{name}.v").write_text(verilog(rtlil, name) + others)
        (part / "ports.vlt").write_text(
            f'`verilator_config\npublic_flat_rw -module "{name}" -var "*"\n'
        )
        _compile(name, part, folder, waves, optimisation)
        for path in part.iterdir():
            if path.suffix in {".o", ".cpp", ".d", ".h"}:
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


def _compile(name: str, part: Path, folder: Path, waves: bool, optimisation: str) -> None:
    verilate = ["verilator", "-cc", "-Mdir", ".", "--prefix", "Vtop", "--top-module", name]
    verilate += ["--vpi", "--timescale", "1ns/1ps", "-Wno-fatal", "-Wno-lint"]
    if waves:
        verilate.append("--trace-fst")
    with toolchain.tool_environment():
        toolchain.run_tool([*verilate, "ports.vlt", f"{name}.v"], cwd=part)
    main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
    switches = toolchain.verilator_options("fst" if waves else "")
    objects = compile_model(part, [optimisation], [f"-I{part}", *switches], [main])
    objects += _runtime(folder, waves, switches)
    libraries = [f"-L{config.libs_dir}", f"-Wl,-rpath,{config.libs_dir}", "-lcocotbvpi_verilator"]
    linked = [toolchain.compiler(), *objects, *libraries, "-pthread", "-o", name]
    toolchain.run_tool(linked, cwd=part)


def _runtime(folder: Path, waves: bool, switches: list[str]) -> list[Path]:
    names, options, headers = _RUNTIME, [OPTIMISATION, *switches], list[Path]()
    if waves:
        # stand-ins for zlib and LZ4, whose headers are not everywhere
        stand_ins = Path(__file__).parent / "fst"
        names, headers = (*names, "verilated_fst_c"), sorted(stand_ins.glob("*.h"))
        options.append(f"-I{stand_ins}")
    include = toolchain.verilator_root() / "include"
    sources = [include / f"{name}.cpp" for name in names]
    return runtime_objects(folder, sources, options, headers)
