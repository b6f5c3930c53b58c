"""No block uses a word that is read while it is written: synthesis may make it anything."""

import pytest
from amaranth.lib import wiring
from slipstick_sim import toolchain
from slipstick_sim.benches.registry import Bench, load
from slipstick_sim.benches.runner import run_bench

OLD_WORDS, NEW_WORDS = "TRANSPARENCY_MASK 1'0", "TRANSPARENCY_MASK 1'1"


@pytest.mark.parametrize(
    "bench",
    [
        pytest.param(load("bench_core"), marks=pytest.mark.thorough, id="bench_core"),
        pytest.param(load("bench_link"), id="bench_link"),
    ],
)
def test_a_bench_passes_with_new_words_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory answers such a read with the new word; all other tests have the old one."""
    convert = toolchain.convert_to_rtlil

    def convert_with_new_words(component: wiring.Component, name: str) -> str:
        text = convert(component, name)
        assert OLD_WORDS in text and NEW_WORDS not in text
        return text.replace(OLD_WORDS, NEW_WORDS)

    monkeypatch.setattr(toolchain, "convert_to_rtlil", convert_with_new_words)
    result = run_bench(bench, bench.parameters[-1])
    assert result.passed, result.explain()
