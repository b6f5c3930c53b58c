"""Runs the cocotb tests of a bench on its component and reads the results."""

import contextlib
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
from .drivers.streams import CLOCK_PERIOD_NS
from .model import build_model
from .registry import PARAMETERS_VARIABLE, Bench, describe

_SEED = 1
_PATIENCE = 10


@dataclass(frozen=True)
class BenchResult:
    """Holds the result of one run of a bench: one set of parameters, every test of its module."""

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
    """Returns the folder of models, logs and waveforms: ``$SLIPSTICK_BUILD``, else ``./build``."""
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
    folder = build_directory() / "benches"
    model = build_model(
        bench.name,
        rtlil,
        folder,
        waves=waves is not None,
        verilog=bench.verilog,
        others=bench.others(rtlil),
        optimisation=bench.optimisation,
    )
    with tempfile.TemporaryDirectory(prefix="run.", dir=folder) as temporary:
        directory = Path(temporary)
        _simulate(bench, parameters, model, directory, waves is not None)
        tests, failures, cycles = _read_results(directory / "results.xml")
        log = _keep_log(bench, parameters, directory / "log")
        if waves is not None and (directory / "dump.fst").exists():
            waves.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(directory / "dump.fst", waves)
    return BenchResult(
        bench=bench.name,
        parameters=parameters,
        tests=tests,
        failures=failures,
        cycles=cycles,
        seconds=time.perf_counter() - begin,
        log=log,
        waves=waves,
    )


def _keep_log(bench: Bench, parameters: Mapping[str, Any], log: Path) -> Path:
    key = toolchain.content_key(json.dumps(dict(parameters)))
    kept = build_directory() / "benches" / "logs" / f"{bench.name}-{key}.log"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(log, kept)
    return kept


def _simulate(
    bench: Bench, parameters: Mapping[str, Any], model: Path, directory: Path, waves: bool
) -> None:
    # The runner ends the process when a simulation dies; the missing results file tells of it.
    with toolchain.tool_environment(), contextlib.suppress(SystemExit, RuntimeError):
        os.environ["SIM_CMD_PREFIX"] = _limit(bench.timeout_seconds)
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


def _limit(seconds: int) -> str:
    """Returns the command before a simulation's that ends it after its limit.

    cocotb splits it at spaces and knows no quotes.
    """
    if shutil.which("prlimit") is not None:
        return f"prlimit --cpu={seconds}"
    # on the wall, where other work may have the processor
    return "" if shutil.which("timeout") is None else f"timeout {_PATIENCE * seconds}"


def _read_results(path: Path) -> tuple[int, tuple[str, ...], int]:
    """Tests run, a sentence per failure, and clock cycles, from cocotb's xUnit file."""
    if not path.exists():
        return 0, ("the simulation ended without results",), 0
    cases = ElementTree.parse(path).getroot().findall(".//testcase")
    failures = []
    nanoseconds = 0.0
    for case in cases:
        for found in case.findall("properties/property[@name='sim_time_duration']"):
            nanoseconds += float(found.get("value", 0))
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                message = found.get("message") or found.text or kind
                failures.append(f"{case.get('name')}: {message.strip()}")
    return len(cases), tuple(failures), round(nanoseconds / CLOCK_PERIOD_NS)
