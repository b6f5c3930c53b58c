"""The benchmark of pools, on a small network and for a moment."""

import pytest
from slipstick.benchmarks.cluster import failures, workers
from slipstick.benchmarks.cluster.efficiency import pool_efficiency
from slipstick.benchmarks.cluster.failures import Failure, failing_pool
from slipstick.benchmarks.cluster.workers import worker_efficiency
from slipstick.examples.digits import MODEL
from slipstick.loading import load_program
from slipstick.targets import find_target


def test_efficiency() -> None:
    program = load_program(MODEL, find_target("sim-small").configuration)
    found = pool_efficiency(program, 2, "rmii", 20.0)
    assert found["equal"] and found["boards"] == 2 and found["retried"] == 0
    assert 0.3 < found["efficiency"] < 1.05


def test_efficiency_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="clusters need the extra 'cluster'")
    monkeypatch.setattr(workers, "_SECONDS", 0.5)
    monkeypatch.setattr(workers, "_WARMED", 32)
    found = worker_efficiency(MODEL, "sim-small", 2, "rmii", 5.0)
    assert found["equal"] and found["boards"] == 2 and found["retried"] == 0
    assert 0.1 < found["efficiency"] < 1.05 and found["busy"] <= 1.0


@pytest.mark.parametrize("failure", Failure)
def test_failures(failure: Failure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_PAUSE_SECONDS", (0.05, 0.1))
    monkeypatch.setattr(failures, "_DOWN_SECONDS", (0.05, 0.1))
    program = load_program(MODEL, find_target("sim-small").configuration)
    found = failing_pool(program, failure, 600)
    assert (found["lost"], found["doubled"], found["wrong"]) == (0, 0, 0)
    assert found["failures"] > 0 and sum(found["images_per_board"]) >= 600
