"""``slipstick verify-training``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from slipstick.training.device import products

Command = Callable[..., tuple[int, str, str]]
MODEL = ("--device", "model:sim-training")


def test_figures_and_report(slipstick: Command, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ("--steps", 2, "--batch", 4, "--json", "--report", report)
    status, output, _ = slipstick("verify-training", *MODEL, *options)
    figures = json.loads(output)
    assert status == 0
    assert (figures["network"], figures["steps"], figures["images"]) == ("digits-cnn", 2, 8)
    assert figures["mismatches"] == 0 and figures["elements"] > 10_000
    assert len(figures["products"]) == 8 and figures["first_mismatch"] is None
    assert json.loads(report.read_text())["elements"] == figures["elements"]


def test_steps_from_dram(slipstick: Command) -> None:
    options = ("--device", "model:sim-training-sdram", "--steps", 3, "--batch", 4, "--json")
    status, output, _ = slipstick("verify-training", *options)
    figures = json.loads(output)
    assert status == 0 and figures["mismatches"] == 0
    assert {"steps from DRAM", "error of conv1 by conv2"} <= set(figures["products"])
    assert figures["updates_on_device"] == 2
    status, output, _ = slipstick("verify-training", *options, "--update", "host")
    by_host = json.loads(output)
    assert status == 0 and by_host["mismatches"] == by_host["updates_on_device"] == 0
    # sums of gradients come to the host, and are compared
    assert by_host["elements"] > figures["elements"]
    # shifts of the present step are not known before: it runs product by product
    status, output, _ = slipstick("verify-training", *options, "--range", "present")
    figures = json.loads(output)
    assert status == 0 and "steps from DRAM" not in figures["products"]


def test_table(slipstick: Command) -> None:
    status, output, _ = slipstick("verify-training", *MODEL, "--steps", 1, "--range", "present")
    assert status == 0
    assert "conv1 weight gradient" in output and "0 mismatches" in output


def test_a_wrong_device_ends_with_1(slipstick: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    right = products.DeviceProducts.input_gradient

    def wrong(*arguments: object, **options: object) -> object:
        return right(*arguments, **options) + 1  # pyright: ignore

    monkeypatch.setattr(products.DeviceProducts, "input_gradient", wrong)
    status, output, _ = slipstick("verify-training", *MODEL, "--steps", 1, "--json")
    figures = json.loads(output)
    assert status == 1
    assert figures["first_mismatch"] == "dense input gradient" and figures["mismatches"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lenet", *MODEL), "NETWORK must be one of digits-cnn, "),
        ((*MODEL, "--batch", 6), "--batch must be a power of two, not 6"),
        ((*MODEL, "--steps", 0), "--steps must be at least 1, not 0"),
        ((*MODEL, "--rate-shift", 30), "--rate-shift must be within 0..24, not 30"),
        (("--device", "model:sim-small"), "training = 1"),
    ],
)
def test_bad_input(slipstick: Command, arguments: tuple[object, ...], message: str) -> None:
    status, _, errors = slipstick("verify-training", *arguments)
    assert status == 2
    assert message in errors and "Traceback" not in errors
