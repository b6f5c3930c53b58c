"""Runs a proof: component to RTLIL, SymbiYosys with z3, and what came of it."""

import itertools
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .. import toolchain, tools
from ..benches.runner import build_directory
from .registry import Proof

_SOLVER = "z3"
_PATIENCE = 30
"""Multiple of its limit that a proof may last on a machine that does other work as well."""

_LIMITED = ("sh", "-c", 'ulimit -t "$0" && exec "$@"')
"""Runs a command each of whose processes is killed after so many seconds of processor time."""

_KILLED = "Unexpected EOF response from solver"
_TASK, _RUN = "proof.sby", "run"
_DESIGN = "core"
"""The instance of the proof's component under the top that ``convert_to_rtlil`` adds."""


@dataclass(frozen=True)
class ProofResult:
    """Holds the result of one proof.

    ``status`` is SymbiYosys's: PASS; FAIL (the counterexample starts in the initial state);
    UNKNOWN (the induction fails, so its counterexample may start in an unreachable state);
    TIMEOUT (the solver was killed, as it is when it has used its processor time). ``failed`` holds
    the messages of the assertions that the counterexample breaks.
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
        """Describes what failed and where to look, for a person."""
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
    path, command = _path(), _command()
    folder = build_directory() / "formal"
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{proof.name}.", dir=folder))
    try:
        component = proof.component()
        text = toolchain.convert_to_rtlil(component, proof.name, resettable=False)
        _check_probes(proof, component)
        (work / f"{proof.name}.il").write_text(text)
        (work / _TASK).write_text(_configuration(proof, text))
        status, log = _run(command, work, path, proof.timeout_seconds)
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


def _path() -> str:
    """PATH on which Yosys' driver of solvers finds z3."""
    solver = Path(tools.Z3.find())
    if solver.name != _SOLVER:
        raise toolchain.ToolError(
            f"{tools.Z3.variable} must name a program that is called z3, not {solver}"
        )
    return os.pathsep.join([str(solver.parent), os.environ.get("PATH", os.defpath)])


def _command() -> list[str]:
    """The command of SymbiYosys, told to call the parts of Yosys that came with it."""
    program = Path(tools.SYMBIYOSYS.find())
    prefix = program.name.removesuffix(tools.SYMBIYOSYS.name)
    parts = {
        name: str(program.with_name(f"{prefix}yosys-{name}")) for name in ("smtbmc", "witness")
    }
    parts["yosys"] = tools.YOSYS.find()
    options = [(f"--{name}", part) for name, part in parts.items()]
    return [str(program), *itertools.chain(*options)]


def _check_probes(proof: Proof, component: wiring.Component) -> None:
    inputs = [name for name, member in component.signature.members.items() if member.flow is In]
    for name in proof.probes:
        if name not in inputs:
            raise ValueError(
                f"a probe of {proof.name} must be an input of its component"
                f" ({', '.join(inputs)}), not {name!r}"
            )


def _flat_name(path: str, module: str, text: str) -> str:
    """Finds the name of a probe's signal when its design, of this RTLIL, has been flattened.

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
    lines += [f"timeout {_PATIENCE * proof.timeout_seconds}"]
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


def _run(command: list[str], work: Path, path: str, seconds: int) -> tuple[str, str]:
    """SymbiYosys's verdict and log."""
    done = subprocess.run(
        [*_LIMITED, str(seconds), *command, "-d", _RUN, _TASK],
        cwd=work,
        env={**os.environ, "PATH": path},
        text=True,
        capture_output=True,
        check=False,
    )
    log = done.stdout + done.stderr
    file = work / _RUN / "status"
    status = file.read_text().split()[0] if file.exists() else "ERROR"
    return "TIMEOUT" if status == "ERROR" and _KILLED in log else status, log


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
