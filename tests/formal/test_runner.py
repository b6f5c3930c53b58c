"""The runner itself: what does not hold is not proved, and is told so that one can find it."""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_sim import tools
from slipstick_sim.formal.registry import Proof
from slipstick_sim.formal.runner import ProofResult, run_proof
from slipstick_sim.toolchain import ToolError


class Counter(wiring.Component):
    """Counts 0 to 5 when told to; says that it stays under ``bound``."""

    up: Signal
    probe: Signal

    def __init__(self, *, bound: int, contradict: bool = False) -> None:
        self._bound = bound
        self._contradict = contradict
        super().__init__({"up": In(1), "probe": In(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(4)
        with m.If(self.up):
            m.d.sync += count.eq(count + 1)
        with m.If(self.up & (count == 5)):
            m.d.sync += count.eq(0)
        m.d.comb += Assert(count < self._bound, f"it reached {self._bound}")
        if self._contradict:
            m.d.comb += [Assume(self.up, "up"), Assume(~self.up, "not up")]
        return m


class NamedTwice(wiring.Component):
    """Holds a counter that has the name of a signal beside it; asserts that they are one."""

    up: Signal
    probe: Signal

    def __init__(self) -> None:
        super().__init__({"up": In(1), "probe": In(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.count = counter = Counter(bound=6)
        count = Signal(4)
        m.d.comb += counter.up.eq(self.up)
        with m.If(self.up):
            m.d.sync += count.eq(Mux(count == 5, 0, count + 1))
        m.d.comb += Assert(count == self.probe, "another signal")
        return m


def prove(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    bound: int,
    contradict: bool = False,
    depth: int = 8,
    probes: dict[str, str] | None = None,
    timeout_seconds: int = 300,
) -> ProofResult:
    monkeypatch.setenv("SLIPSTICK_BUILD", str(folder))
    return run_proof(
        Proof(
            name="counter",
            component=lambda: Counter(bound=bound, contradict=contradict),
            depth=depth,
            probes=probes or {},
            timeout_seconds=timeout_seconds,
        )
    )


def test_what_holds_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = prove(tmp_path, monkeypatch, bound=6, depth=2)
    assert result.passed
    assert not list((tmp_path / "formal").iterdir())


def test_what_fails_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = prove(tmp_path, monkeypatch, bound=5)
    assert result.status == "FAIL"
    assert result.failed == ("it reached 5",)
    assert result.folder == tmp_path / "formal" / "counter"
    assert result.counterexample is not None
    assert result.counterexample.read_text().startswith("$")
    assert "proof counter: FAIL: it reached 5" in result.explain()
    assert str(result.counterexample) in result.explain()


def test_what_no_induction_shows_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # true, but from the unreachable 6 the counter can stand still and then reach 8
    result = prove(tmp_path, monkeypatch, bound=8, depth=7)
    assert result.status == "UNKNOWN"
    assert not result.passed
    assert result.counterexample is not None
    assert result.counterexample.name == "trace_induct.vcd"


def solver(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another z3, a shell's script."""
    program = folder / "bin" / "z3"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("Z3", str(program))


def test_a_solver_that_waits_for_its_turn_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tools.Z3.find()
    solver(tmp_path, monkeypatch, f'[ "$1" = --version ] || sleep 6\nexec {real} "$@"')
    assert prove(tmp_path, monkeypatch, bound=6, depth=2, timeout_seconds=5).passed


def test_a_solver_that_finds_no_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver(tmp_path, monkeypatch, '[ "$1" = --version ] || while :; do :; done')
    result = prove(tmp_path, monkeypatch, bound=6, depth=2, timeout_seconds=5)
    assert (result.status, result.passed) == ("TIMEOUT", False)


def test_contradictory_assumptions_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError, match="proof counter.*(?s:.*)Assumptions are unsatisfiable"):
        prove(tmp_path, monkeypatch, bound=6, contradict=True)


def test_a_probe_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="no_such_signal"):
        prove(tmp_path, monkeypatch, bound=6, probes={"probe": "no_such_signal"})


def test_a_probe_of_an_instance_that_is_named_as_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTICK_BUILD", str(tmp_path))
    proof = Proof(
        name="named_twice", component=NamedTwice, depth=2, probes={"probe": "count.count"}
    )
    assert run_proof(proof).passed


def test_a_probe_must_be_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="a probe of counter must be an input.*not 'prob'"):
        prove(tmp_path, monkeypatch, bound=6, probes={"prob": "count"})


def test_solver_must_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("Z3", raising=False)
    monkeypatch.setattr(tools.Package, "find", lambda package: None)
    with pytest.raises(ToolError, match="z3-solver is not installed: pip install z3-solver"):
        prove(tmp_path, monkeypatch, bound=6)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "two words", "a proof's name must be an identifier, not 'two words'"),
        ("depth", 0, "depth must be at least 1, not 0"),
        ("timeout_seconds", -1, "timeout_seconds must be at least 1, not -1"),
    ],
)
def test_a_proof_is_checked(field: str, value: object, message: str) -> None:
    fields: dict = {"name": "counter", "component": Counter, "depth": 2}
    with pytest.raises(ValueError, match=message):
        Proof(**{**fields, field: value})
