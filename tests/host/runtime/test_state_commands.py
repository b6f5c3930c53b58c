"""The command line on networks that keep something from run to run: inputs are a sequence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stateful_networks as networks
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.verify.references import Definition
from slipstick.verify.tflm_reference import TflmReference

TARGET = "--target", "sim-small"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "wake.tflite"
    path.write_bytes(networks.wake_word(np.random.default_rng(3)))
    return path


@pytest.fixture
def frames(tmp_path: Path) -> np.ndarray:
    x = np.random.default_rng(4).integers(-128, 128, (12, *networks.INPUT[1:]), dtype=np.int8)
    for number, each in enumerate(x):
        np.save(tmp_path / f"{number}.npy", each)
    np.savez(tmp_path / "all.npz", x=x, y=np.zeros(len(x), np.int64))
    return x


def printed(slipstick: Any, *arguments: object) -> dict[str, Any]:
    status, out, err = slipstick(*arguments, *TARGET, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_run_takes_files_as_a_sequence(
    slipstick: Any, model: Path, frames: np.ndarray, tmp_path: Path
) -> None:
    (wanted,) = TflmReference(model).run(frames)
    scores = (wanted.ravel() / 256).tolist()
    paths = [tmp_path / f"{number}.npy" for number in range(len(frames))]
    for inputs in (paths, [tmp_path / "all.npz"]):
        made = printed(slipstick, "run", model, *inputs, "--device", "model")
        assert [entry["values"][0] for entry in made["outputs"]] == scores
        assert made["state_bytes"] > 0


def test_eval_runs_a_sequence(slipstick: Any, model: Path, frames: np.ndarray, tmp_path: Path):
    made = printed(slipstick, "eval", model, "--inputs", tmp_path / "all.npz")
    assert made["count"] == len(frames)


def test_compile_tells_what_is_kept(slipstick: Any, model: Path) -> None:
    made = printed(slipstick, "compile", model)
    kept = sum(each.initial.size for each in load_tflite_bytes(model.read_bytes()).variables)
    assert made["state_bytes"] == kept > made["resident_bytes"] > 0
    status, out, _ = slipstick("compile", model, *TARGET)
    told = f"{kept} bytes are kept from run to run, {made['resident_bytes']} of them on the device"
    assert status == 0 and told in " ".join(out.split())


def test_verify_compares_a_sequence_with_its_variables(slipstick: Any, model: Path) -> None:
    made = printed(slipstick, "verify", model, "--no-rtl")
    assert (made["total_mismatches"], made["count"]) == (0, 32)
    variables = [entry for entry in made["layers"] if entry["operator"] == "variable"]
    assert [entry["layer"] for entry in variables] == ["first", "mixed", "block0", "block1", "tail"]
    assert all(entry["golden_vs_reference"]["inputs"] == 32 for entry in variables)


def test_verify_sees_a_state_that_is_lost(
    slipstick: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference that forgets after every 16 runs differs, in the variables first."""
    ordinary = TflmReference.run_layers

    def forgetful(self: TflmReference, *inputs: np.ndarray) -> dict[str, np.ndarray]:
        self.reset_state()
        return ordinary(self, *inputs)

    monkeypatch.setattr(TflmReference, "run_layers", forgetful)
    status, out, _ = slipstick("verify", model, "--no-rtl", *TARGET, "--json")
    made = json.loads(out)
    lost = {entry["layer"] for entry in made["layers"] if entry["mismatches"]}
    assert status == 1 and {"first", "mixed"} <= lost


def test_verify_by_other_semantics_keeps_state(slipstick: Any, model: Path) -> None:
    made = printed(slipstick, "verify", model, "--no-rtl", "--semantics", "onnx", "--limit", 20)
    assert (made["total_mismatches"], made["count"]) == (0, 20)


def test_bench_measures_one_run(slipstick: Any, model: Path) -> None:
    made = printed(slipstick, "bench", model)
    assert made["cycles"] > 0


def test_definition_goes_on_and_is_reset(model: Path, frames: np.ndarray) -> None:
    definition = Definition(load_tflite_bytes(model.read_bytes()))
    together = definition.run_layers(frames)["output"]
    definition.reset_state()
    parts = [definition.run_layers(part)["output"] for part in (frames[:5], frames[5:])]
    np.testing.assert_array_equal(np.concatenate(parts), together)
