"""Every cocotb bench, with each of its sets of parameters."""

from collections.abc import Mapping
from typing import Any

import pytest
from slipstick_sim.benches.registry import Bench, all_benches, describe
from slipstick_sim.benches.runner import run_bench


def _run(bench: Bench, parameters: Mapping[str, Any]) -> Any:
    marks = [pytest.mark.thorough] if parameters in bench.thorough else []
    name = f"{bench.name}: {describe(parameters)}"
    return pytest.param(bench, parameters, id=name, marks=marks)


RUNS = [_run(bench, each) for bench in all_benches() for each in bench.all_parameters]


@pytest.mark.parametrize(("bench", "parameters"), RUNS)
def test_bench(bench: Bench, parameters: Mapping[str, Any]) -> None:
    result = run_bench(bench, parameters)
    assert result.passed, result.explain()
