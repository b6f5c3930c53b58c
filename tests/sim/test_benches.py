"""Every cocotb bench, with each of its sets of parameters."""

from collections.abc import Mapping
from typing import Any

import pytest
from slipstick_sim.benches.registry import Bench, all_benches, describe
from slipstick_sim.benches.runner import run_bench

RUNS = [(bench, parameters) for bench in all_benches() for parameters in bench.parameters]


@pytest.mark.parametrize(
    ("bench", "parameters"), RUNS, ids=[f"{bench.name}: {describe(p)}" for bench, p in RUNS]
)
def test_bench(bench: Bench, parameters: Mapping[str, Any]) -> None:
    result = run_bench(bench, parameters)
    assert result.passed, result.explain()
