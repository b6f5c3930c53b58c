"""The benchmark of networks from DRAM, on the golden model of a small core."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from slipstick.benchmarks import dram as dram_benchmark
from slipstick.devices.model import ModelDevice
from slipstick.examples.digits import MODEL, load_digits
from slipstick.program import Program
from slipstick.session import InferenceSession
from small_dram_core import SMALL


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The golden model of a small core takes the place of the RTL of every target."""
    monkeypatch.chdir(tmp_path)
    target = SimpleNamespace(configuration=SMALL)
    monkeypatch.setattr(dram_benchmark, "find_target", lambda name: target)
    monkeypatch.setattr(dram_benchmark, "SimulationDevice", ModelDevice)
    images = load_digits()[0]
    monkeypatch.setattr(
        dram_benchmark, "random_batch", lambda program, count: {"image": images[:count]}
    )
    # the golden model has no cycles
    monkeypatch.setattr(InferenceSession, "last_cycles", 5000)
    return tmp_path / "reports/dram.json"


def test_a_network_is_measured(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dram_benchmark.dram_benchmark(target="small", batch=[1, 2], model=MODEL) == 0
    assert capsys.readouterr().out.count("equal to the golden model: yes") == 2
    cases = json.loads(small.read_text())["cases"]
    assert list(cases) == [f"{MODEL.stem} small batch {count}" for count in (1, 2)]
    one, two = cases.values()
    assert one["dram"] == SMALL.dram and one["target"] == "small"
    assert one["cycles"] == 5000 and two["cycles"] == 2500
    # images of a batch share the weights
    assert 0 < two["dram_bytes"] < one["dram_bytes"]
    assert 0 < two["cycles_predicted"] < one["cycles_predicted"]


def test_a_wrong_result_is_told(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels, _, _ = load_digits()
    others = iter([images[labels == 3], images[labels == 8]])

    def other(program: Program, count: int) -> dict[str, np.ndarray]:
        """What is expected is of other images than what is found."""
        return {"image": next(others)[:count]}

    monkeypatch.setattr(dram_benchmark, "random_batch", other)
    assert dram_benchmark.dram_benchmark(target="small", batch=[1], model=MODEL) == 1
    assert "equal to the golden model: no" in capsys.readouterr().out
    assert not json.loads(small.read_text())["cases"][f"{MODEL.stem} small batch 1"]["equal"]
