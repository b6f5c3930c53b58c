"""Builds a bench's component with Verilator, runs its cocotb tests, and reads the results."""

import contextlib
import importlib.resources
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner

from .. import toolchain
from .registry import PARAMETERS_VARIABLE, Bench, describe
from .streams import CLOCK_PERIOD_NS

_OPTIMISATION = "-O1"
_SEED = 1
_RUNTIME = "verilated*.o"


@dataclass(frozen=True)
class BenchResult:
    """What one run of a bench gave: one set of parameters, every test of its module."""

    bench: str
    parameters: Mapping[str, Any]
    tests: int
    failures: tuple[str, ...]
    cycles: int
    seconds: float
    log: Path
    waves: Path | None

    @property
    def passed(self) -> bool:
        """True if there were tests and none failed."""
        return self.tests > 0 and not self.failures

    def explain(self) -> str:
        """The failures and the end of the log, for a person."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        heading = f"bench {self.bench} ({describe(self.parameters)})"
        failed = "; ".join(self.failures) or "no test was run"
        return f"{heading}: {failed}\n{toolchain.last_lines(text, 60)}\nwhole log: {self.log}"


def build_directory() -> Path:
    """Where models, logs and waveforms go: ``$SLIPSTICK_BUILD``, by default ``./build``."""
    return Path(os.environ.get("SLIPSTICK_BUILD") or "build").resolve()


def run_bench(
    bench: Bench, parameters: Mapping[str, Any], *, waves: Path | None = None
) -> BenchResult:
    """Runs the tests of one bench with one set of parameters.

    Parameters
    ----------
    bench : Bench
        The bench to run.
    parameters : mapping
        Handed to ``bench.component`` and to the tests; values that JSON can carry.
    waves : Path, optional
        An FST waveform of all signals is written here.

    Raises
    ------
    ToolError
        If the model cannot be built. A test that fails is in the result.
    """
    begin = time.perf_counter()
    rtlil = toolchain.convert_to_rtlil(bench.component(**parameters), bench.name)
    model = _build_model(bench.name, rtlil, waves is not None)
    logs = build_directory() / "benches" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run.", dir=model.parent) as folder:
        directory = Path(folder)
        log = directory / "log"
        results = directory / "results.xml"
        _simulate(bench, parameters, model, directory, waves is not None)
        tests, failures, cycles = _read_results(results)
        kept_log = logs / f"{bench.name}-{toolchain.content_key(json.dumps(dict(parameters)))}.log"
        shutil.copyfile(log, kept_log)
        if waves is not None:
            waves.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(directory / "dump.fst", waves)
    return BenchResult(
        bench=bench.name,
        parameters=parameters,
        tests=tests,
        failures=failures,
        cycles=cycles,
        seconds=time.perf_counter() - begin,
        log=kept_log,
        waves=waves,
    )


def _build_model(name: str, rtlil: str, waves: bool) -> Path:
    """The folder with the executable model; kept until the RTLIL, the flags or a tool change."""
    key = toolchain.content_key(rtlil, _OPTIMISATION, str(waves))
    directory = build_directory() / "benches" / f"{name}-{key}"

    def build(part: Path) -> None:
        (part / f"{name}.v").write_text(toolchain.convert_to_verilog(rtlil))
        with _verilator_runtime(part, waves), toolchain.tool_environment():
            _compile(name, part, waves)
        for path in part.iterdir():
            if path.suffix in {".o", ".a", ".cpp", ".d", ".gch", ".h"}:
                path.unlink()

    toolchain.build_once(directory, build)
    return directory


def _compile(name: str, directory: Path, waves: bool) -> None:
    arguments = ["-Wno-fatal", "-Wno-lint", "-CFLAGS", _OPTIMISATION]
    arguments += ["-MAKEFLAGS", f"OPT_FAST={_OPTIMISATION}", "-MAKEFLAGS", "OPT_GLOBAL="]
    if waves:
        arguments += ["--trace-fst", *_compression(directory)]
    log = directory / "build.log"
    try:
        get_runner("verilator").build(
            sources=[directory / f"{name}.v"],
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


def _compression(directory: Path) -> list[str]:
    """Options that put our stand-ins for zlib and LZ4, headers and empty libraries, first."""
    for library in ("z", "lz4"):
        toolchain.run_tool(["ar", "rcs", directory / f"lib{library}.a"])
    for header in ("zlib.h", "lz4.h"):
        source = importlib.resources.files(__package__ or "") / "fst" / header
        (directory / header).write_text(source.read_text())
    return ["-CFLAGS", f"-I{directory}", "-LDFLAGS", f"-L{directory}"]


@contextlib.contextmanager
def _verilator_runtime(directory: Path, waves: bool):
    """Lends the body Verilator's own objects, the larger part of a small model's compile time."""
    key = toolchain.content_key(_OPTIMISATION, str(waves), toolchain.compiler())
    store = build_directory() / "benches" / f"runtime-{key}"
    if store.is_dir():
        for path in store.iterdir():
            shutil.copyfile(path, directory / path.name)
    yield

    def keep(part: Path) -> None:
        for path in directory.glob(_RUNTIME):
            shutil.copyfile(path, part / path.name)

    toolchain.build_once(store, keep)


def _simulate(
    bench: Bench, parameters: Mapping[str, Any], model: Path, directory: Path, waves: bool
) -> None:
    # The runner ends the process when a simulation dies; the missing results file tells of it.
    with toolchain.tool_environment(), contextlib.suppress(SystemExit, RuntimeError):
        get_runner("verilator").test(
            test_module=bench.test_module,
            hdl_toplevel=bench.name,
            hdl_toplevel_lang="verilog",
            build_dir=model,
            test_dir=directory,
            results_xml=str(directory / "results.xml"),
            log_file=directory / "log",
            seed=_SEED,
            waves=waves,
            extra_env={PARAMETERS_VARIABLE: json.dumps(dict(parameters))},
        )


def _read_results(path: Path) -> tuple[int, tuple[str, ...], int]:
    """Tests run, a sentence per failure, and clock cycles, from cocotb's xUnit file."""
    if not path.exists():
        return 0, ("the simulation ended without results",), 0
    cases = ElementTree.parse(path).getroot().findall(".//testcase")
    failures = []
    nanoseconds = 0.0
    for case in cases:
        nanoseconds += float(case.get("sim_time_ns", 0))
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                message = found.get("error_msg") or found.get("message") or kind
                failures.append(f"{case.get('name')}: {message}")
    return len(cases), tuple(failures), round(nanoseconds / CLOCK_PERIOD_NS)
