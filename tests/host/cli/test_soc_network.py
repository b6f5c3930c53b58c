"""The digits network on the Verilog that ``slipstick export`` writes, through every interface."""

import dataclasses
from pathlib import Path

import pytest
from slipstick_sim.benches.registry import load
from slipstick_sim.benches.runner import run_bench


@pytest.mark.parametrize("name", ["bench_soc_axi", "bench_soc_wishbone", "bench_soc_stream"])
@pytest.mark.thorough
def test_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "support")
    bench = dataclasses.replace(load(name), test_module="soc_network", timeout_seconds=900)
    (parameters,) = bench.parameters
    result = run_bench(bench, parameters)
    assert result.passed, result.explain()
