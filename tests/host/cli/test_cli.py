"""The command line: its JSON, its exit statuses, one sentence for whatever is wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from shared_data import shared
from slipstick import console
from slipstick.cli import verify
from slipstick.examples.digits import MODEL, load_digits
from slipstick.targets import TARGETS
from slipstick.verify import references
from slipstick.verify.tflm_reference import TflmReference
from slipstick_sim.toolchain import ToolError
from slipstick_sim.verilated import build as compiled_build

TARGET = "sim-small"
COUNT = 20


class Outcome:
    """Holds what a command left behind."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> dict:
        assert self.status in (0, 1), self.err
        assert self.out.count("\n") == 1 and not said(self.err)
        return json.loads(self.out)


def said(errors: str) -> str:
    """Returns the standard error without the lines that say that a simulation is compiled."""
    return re.sub(
        r"^slipstick: (compiling|compiled) the simulation of .*\n", "", errors, flags=re.M
    )


@pytest.fixture
def slipstick(slipstick):
    return lambda *arguments: Outcome(*slipstick(*arguments))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs, good ones and bad ones."""
    folder = tmp_path_factory.mktemp("files")
    images, labels = (array[:COUNT] for array in load_digits()[2:])
    np.savez(folder / "digits.npz", x=images, y=labels)
    np.save(folder / "x.npy", images)
    np.save(folder / "y.npy", labels)
    np.save(folder / "few.npy", labels[:-1])
    np.save(folder / "high.npy", labels + 10)
    np.save(folder / "nan.npy", np.full((1, 8, 8, 1), np.nan, np.float32))
    np.save(folder / "shape.npy", np.zeros((2, 9, 9, 1), np.int8))
    np.save(folder / "type.npy", np.zeros((2, 8, 8, 1), np.int64))
    np.save(folder / "pickle.npy", np.array([{}]), allow_pickle=True)
    (folder / "images").mkdir()
    for index in range(3):
        pixels = (images[index, ..., 0].astype(np.int16) + 128).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{index}.png")
    (folder / "empty").mkdir()
    (folder / "junk.tflite").write_bytes(b"hello world, no network")
    (folder / "cut.tflite").write_bytes(MODEL.read_bytes()[:5000])
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:300])
    (folder / "junk.slip").write_bytes(b"SLIP, but no program")
    return folder


def test_compile(slipstick, tmp_path: Path) -> None:
    path = tmp_path / "digits.slip"
    result = slipstick("compile", MODEL, "--target", TARGET, "-o", path, "--json").json
    assert result["program_bytes"] == path.stat().st_size
    assert result["macs"] == sum(layer["macs"] for layer in result["layers"]) > 0
    cycles = sum(layer["predicted_cycles"] for layer in result["layers"])
    assert result["predicted_cycles"] == cycles > 0
    assert {layer["where"] for layer in result["layers"]} == {"device", "host"}
    outcome = slipstick("compile", MODEL, "--target", TARGET)
    assert outcome.status == 0 and not outcome.err
    for word in ("conv2d_0", "softmax", "host", "of peak", "MHz", "two places each"):
        assert word in " ".join(outcome.out.split())
    assert result["double_buffered"]
    single = slipstick("compile", MODEL, "--target", TARGET, "--no-double-buffer")
    assert "inputs and outputs have one place each" in " ".join(single.out.split())


def test_run(slipstick, files: Path) -> None:
    arguments = ("run", MODEL, "--device", "model", "--target", TARGET)
    result = slipstick(*arguments, "-i", files / "x.npy", "--top", 3, "--limit", 4, "--json").json
    assert len(result["outputs"]) == 4 and result["cycles"] > 0
    assert result["cycles_are"] == "predicted"
    for entry in result["outputs"]:
        assert entry["shape"] == [10] and len(entry["values"]) == 10 and len(entry["top"]) == 3
        scores = [item["score"] for item in entry["top"]]
        assert scores == sorted(entry["values"], reverse=True)[:3]
    folder = slipstick(*arguments, "-i", files / "images", "--json").json["outputs"]
    assert [entry["input"] for entry in folder] == ["0.png", "1.png", "2.png"]
    assert [entry["values"] for entry in folder] == [
        entry["values"] for entry in result["outputs"][:3]
    ]
    several = [files / "images" / f"{index}.png" for index in range(2)]
    text = slipstick(*arguments, "--input", *several)
    assert text.status == 0 and "1.png" in text.out and "cycles" in text.out
    text = slipstick(*arguments, "-i", files / "x.npy", "--top", 10, "--limit", 1)
    assert sorted(re.findall(r"(\d): \d", text.out)) == list("0123456789")


def test_eval(slipstick, files: Path) -> None:
    arguments = ("eval", MODEL, "--device", f"model:{TARGET}", "--json")
    result = slipstick(*arguments, "--inputs", files / "digits.npz").json
    assert result["count"] == COUNT and result["inferences_per_second"] > 0
    assert result["accuracy"] == result["correct"] / COUNT >= 0.9
    labels = ("--inputs", files / "x.npy", "--labels", files / "y.npy")
    assert slipstick(*arguments, *labels).json["correct"] == result["correct"]
    assert slipstick(*arguments, *labels, "--limit", 5).json["count"] == 5
    assert "are right" in slipstick(*arguments[:-1], *labels).out


def test_verify_against_the_reference(slipstick, files: Path) -> None:
    arguments = ("verify", MODEL, "--target", TARGET, "--no-rtl", "--json")
    for inputs in ((), ("--inputs", files / "x.npy", "--limit", 5)):
        outcome = slipstick(*arguments, *inputs)
        assert outcome.status == 0
        assert outcome.json["total_mismatches"] == 0
        # the ten layers, and the network's output by the ordinary program
        assert len(outcome.json["layers"]) == 11
        for layer in outcome.json["layers"]:
            assert layer["mismatches"] == 0
            assert layer["golden_vs_reference"] == {
                "inputs": outcome.json["count"],
                "mismatches": 0,
            }
            assert layer["rtl_vs_golden"] is None


def test_verify_finds_a_wrong_layer(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    class Skewed(TflmReference):
        def run_layers(self, *inputs: np.ndarray) -> dict[str, np.ndarray]:
            layers = super().run_layers(*inputs)
            layers["stem"] = layers["stem"] ^ 1
            return layers

    monkeypatch.setattr(references, "TflmReference", Skewed)
    outcome = slipstick("verify", MODEL, "--target", TARGET, "--no-rtl", "--limit", 1, "--json")
    assert outcome.status == 1
    wrong = [layer for layer in outcome.json["layers"] if layer["mismatches"]]
    assert [layer["layer"] for layer in wrong] == ["conv2d_0"]
    assert outcome.json["total_mismatches"] == wrong[0]["mismatches"] == 8 * 8 * 16
    assert slipstick("verify", MODEL, "--target", TARGET, "--no-rtl", "--limit", 1).status == 1


def test_targets(slipstick) -> None:
    result = slipstick("targets", "--json").json
    assert [entry["target"] for entry in result["targets"]] == list(TARGETS)
    assert all(len(entry["fingerprint"]) == 16 for entry in result["targets"])
    text = slipstick("targets").out
    assert all(name in text for name in TARGETS)
    assert all(target.description in text for target in TARGETS.values())


def test_help_and_version(slipstick) -> None:
    assert "compile" in slipstick("--help").out
    assert slipstick("--version").out.startswith("slipstick 0.")


MODEL_OPTIONS = ("--device", "model", "--target", TARGET)

BAD = {
    "not TFLite": (("compile", "junk.tflite"), "junk.tflite must be a TFLite file"),
    "truncated": (("compile", "cut.tflite"), "cut"),
    "no model": (("compile", "none.tflite"), "none.tflite must be a file, but is not there"),
    "model is a folder": (("compile", "empty"), "empty must be a file, but is a folder"),
    "unknown target": (("compile", MODEL, "-t", "tiny"), "target must be one of .* not 'tiny'"),
    "bad shape": (("compile", MODEL, "-t", "1x5x4"), "rows must be a power of two.* not 5"),
    "no folder": (("compile", MODEL, "-o", "no/x.slip"), "no/x.slip: cannot be written"),
    "damaged program": (("run", "junk.slip", "-i", "x.npy", "-d", "model"), "junk.slip"),
    "other hardware": (
        ("run", "good.slip", "-i", "x.npy", "-d", "model:1x4x4"),
        "hardware .*1x4x4",
    ),
    "no inputs": (("run", MODEL, *MODEL_OPTIONS), "inputs must be at least one file"),
    "NaN": (("run", MODEL, "-i", "nan.npy", *MODEL_OPTIONS), "must hold finite numbers.* nan"),
    "shape": (
        ("run", MODEL, "-i", "shape.npy", *MODEL_OPTIONS),
        r"\(8, 8, 1\).* not \(2, 9, 9, 1\)",
    ),
    "type": (("run", MODEL, "-i", "type.npy", *MODEL_OPTIONS), "int8 or .* not int64"),
    "pickle": (("run", MODEL, "-i", "pickle.npy", *MODEL_OPTIONS), "pickled objects are refused"),
    "cut array": (("run", MODEL, "-i", "cut.npy", *MODEL_OPTIONS), "must be 1280 bytes"),
    "empty folder": (("run", MODEL, "-i", "empty", *MODEL_OPTIONS), "must hold images"),
    "no such input": (("run", MODEL, "-i", "none.npy", *MODEL_OPTIONS), "none.npy is not there"),
    "unknown device": (("run", MODEL, "-i", "x.npy", "-d", "abacus"), "device must be one of"),
    "top": (("run", MODEL, "-i", "x.npy", "--top", 0), "--top must be at least 1, not 0"),
    "limit": (("eval", MODEL, "-i", "x.npy", "-n", -1), "--limit must be at least 1, not -1"),
    "not a number": (("eval", MODEL, "-i", "x.npy", "-n", "few"), "'--limit'"),
    "no labels": (("eval", MODEL, "-i", "x.npy", *MODEL_OPTIONS), "come without labels"),
    "few labels": (("eval", MODEL, "-i", "x.npy", "-l", "few.npy", *MODEL_OPTIONS), "not 19"),
    "high labels": (("eval", MODEL, "-i", "x.npy", "-l", "high.npy"), "below the network's 10"),
    "seed": (("verify", MODEL, "--seed", -1), "--seed must be at least 0, not -1"),
    "many": (("verify", MODEL, "-n", 10**20), "inputs must be at most 4194304, not 10{20}"),
    "verify a program": (("verify", "good.slip"), "compiled program already"),
    "unknown command": (("frobnicate",), "No such command 'frobnicate'"),
    "missing argument": (("compile",), "Missing argument"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(
    slipstick, files: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(files)
    arguments, message = BAD[case]
    if "good.slip" in arguments:
        assert slipstick("compile", MODEL, "-t", TARGET, "-o", "good.slip").status == 0
    for extra in ((), ("--json",)):
        outcome = slipstick(*arguments, *extra)
        assert outcome.status == 2, outcome.err
        assert not outcome.out
        assert outcome.err.startswith("slipstick: ") and outcome.err.count("\n") == 1
        if case not in ("unknown command", "missing argument") or not extra:
            assert re.search(message, outcome.err), outcome.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnist-8.onnx", "opset must be within 10"),
        ("resnet8_cifar10_fp32.onnx", "must be quantised, and is float"),
    ],
)
@pytest.mark.borrows
def test_foreign_networks(slipstick, name: str, message: str) -> None:
    path = shared(f"models/{name}")
    outcome = slipstick("compile", path)
    assert outcome.status == 2 and message in outcome.err


@pytest.mark.parametrize(
    "command", [("run", "--input", "x.npy", "--limit", "1"), ("verify", "--limit", "1"), ("bench",)]
)
def test_a_first_run_says_that_it_compiles(
    slipstick, files: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Into a pipe too: the standard error is none of a terminal here."""

    def build(*arguments: object, **options: object) -> Path:
        raise ToolError("no compiler")

    monkeypatch.chdir(files)
    monkeypatch.setattr(compiled_build, "_found", lambda alias: None)
    monkeypatch.setattr(compiled_build, "build_library", build)
    name, *options = command
    outcome = slipstick(name, MODEL, "--target", "1x4x4", *options, "--json")
    told, failed = outcome.err.splitlines()
    assert outcome.status == 2 and failed.endswith("the simulation of 1x4x4: no compiler")
    assert told == (
        "slipstick: compiling the simulation of 1x4x4, about 20 s if two cores are free ..."
    )


def test_single_layers_on_the_rtl(slipstick) -> None:
    outcome = slipstick(
        "verify", MODEL, "--target", TARGET, "--limit", "2", "--json",
        "--rtl-layer", "conv2d_0", "--rtl-layer", "fully_connected_8",
    )  # fmt: skip
    layers = json.loads(outcome.out)["layers"]
    shown = [layer["layer"] for layer in layers if layer["rtl_vs_golden"]]
    assert outcome.status == 0 and shown == ["conv2d_0", "fully_connected_8"]
    outcome = slipstick("verify", MODEL, "--rtl-layer", "conv2d_9")
    assert outcome.status == 2 and "layer 'conv2d_9' is unknown: there are" in outcome.err


@pytest.mark.thorough
@pytest.mark.borrows
def test_a_network_too_large_is_cut(slipstick) -> None:
    path = shared("models/tf2_mobilenet_v2_1.0_224_ptq.tflite")
    outcome = slipstick("compile", path)
    assert outcome.status == 0 and "300,775,552 MACs" in outcome.out


def test_interrupts_end_with_130(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "Verifier", interrupt)
    outcome = slipstick("verify", MODEL)
    assert outcome.status == 130 and "Traceback" not in outcome.err


def test_a_full_memory_is_one_sentence(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*arguments: object, **options: object) -> None:
        raise MemoryError("no room for 9 GiB")

    monkeypatch.setattr(verify, "Verifier", exhaust)
    outcome = slipstick("verify", MODEL)
    assert outcome.status == 2
    assert outcome.err == "slipstick: memory must hold what was asked for: no room for 9 GiB\n"


def test_runs_as_a_module(files: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "slipstick", "targets", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["targets"] and not done.stderr
    bad = [*command[:-2], "run", str(MODEL), "-d", "model", "-i", str(files / "nan.npy")]
    done = subprocess.run(bad, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m slipstick targets --json | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_progress_is_silent_where_there_is_no_terminal(capsys) -> None:
    with console.progress("work", 3) as advance, console.waiting("more"):
        advance(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.borrows
def test_resnet8_equals_the_reference(slipstick) -> None:
    model = shared("models/ic01_resnet8_int8.tflite")
    data = shared("data/cifar10/ic01_cifar10_200.npz")
    arguments = ("verify", model, "--inputs", data, "--limit", 8, "--no-rtl", "--json")
    result = slipstick(*arguments).json
    assert result["total_mismatches"] == 0 and result["count"] == 8
    accuracy = slipstick("eval", model, "--inputs", data, "--device", "model", "--json").json
    assert (accuracy["accuracy"], accuracy["count"]) == (0.865, 200)


class TestCompiledRtl:
    """The commands that simulate, on a small core: it is built once."""

    TARGET = "1x4x4"

    def test_verify(self, slipstick, files: Path) -> None:
        inputs = ("--inputs", files / "x.npy", "--limit", 4, "--layer-limit", 2)
        outcome = slipstick("verify", MODEL, "--target", self.TARGET, *inputs, "--json")
        result = outcome.json
        assert outcome.status == 0 and result["total_mismatches"] == 0
        *layers, output = result["layers"]
        assert output["rtl_vs_golden"] == {"inputs": 4, "mismatches": 0}
        assert all(layer["rtl_vs_golden"] == {"inputs": 2, "mismatches": 0} for layer in layers)

    def test_bench(self, slipstick) -> None:
        result = slipstick("bench", MODEL, "--target", self.TARGET, "--json").json
        assert result["cycles"] == sum(layer["cycles"] for layer in result["layers"])
        assert abs(result["prediction_error"]) < 0.03
        peak = result["cycles"] * 4 * 4
        assert result["utilisation"] == result["macs"] / peak > 0.8
        assert result["fmax_mhz"] is None and result["clock_is"] == "configured"
        assert result["inferences_per_second"] == 100e6 / result["cycles"]
        text = slipstick("bench", MODEL, "--target", self.TARGET).out
        assert "of peak" in text and "RTL simulated" in text

    def test_run_and_eval(self, slipstick, files: Path) -> None:
        device = ("--device", f"sim:{self.TARGET}")
        images = ("-i", files / "x.npy", "-n", 3, "--json")
        result = slipstick("run", MODEL, *device, *images).json
        golden = slipstick("run", MODEL, "--device", f"model:{self.TARGET}", *images).json
        assert result["outputs"] == golden["outputs"]
        assert result["cycles_are"] == "measured" and result["cycles"] > 0
        labels = ("-i", files / "digits.npz", "-n", 5, "--json")
        assert slipstick("eval", MODEL, *device, *labels).json["accuracy"] == 1.0
