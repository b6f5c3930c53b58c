"""The benchmark of training steps, on the golden model of a small core."""

import dataclasses

import pytest
from slipstick.benchmarks.training_step import (
    measure_dram_step,
    measure_step,
    multiplications,
)
from slipstick.devices.model import ModelDevice
from slipstick.devices.wire_models import find_wire_model
from slipstick.targets import find_target
from slipstick.training.networks import digits_cnn, resnet8
from slipstick_rtl.link.protocol import DeviceStatus


class _CountingModel(ModelDevice):
    """A golden model that tells some cycles per run."""

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        return dataclasses.replace(super().wait(timeout_seconds), cycles=1000)


def test_multiplications() -> None:
    """Three products per layer, but two of the first one: 37 M of ResNet-8."""
    assert multiplications(resnet8()) == pytest.approx(37.2e6, rel=0.01)


def test_a_step_is_measured() -> None:
    device = _CountingModel(find_target("sim-training").configuration)
    wire = find_wire_model("rgmii")
    found = measure_step(device, digits_cnn(), 4, wire)
    assert found["mismatches"] == 0 and found["compared"] > 10_000
    assert found["cycles_per_image"] == pytest.approx(sum(found["cycles"].values()))
    assert all(cycles > 0 for cycles in found["cycles"].values())
    assert found["bytes_up_per_image"] > 0 and found["exchanges_per_image"] > 0
    assert 0 < found["images_per_second"] < found["core_images_per_second"]


@pytest.mark.parametrize("on_device", [False, True])
def test_a_step_from_dram_is_measured(on_device: bool) -> None:
    small = find_target("sim-training").configuration
    device = _CountingModel(dataclasses.replace(small, dram="MT48LC16M16"))
    found = measure_dram_step(device, digits_cnn(), 4, on_device=on_device)
    assert found["updates_on_device"] == 2 * on_device
    assert found["mismatches"] == 0 and found["compared"] > 5_000
    assert found["cycles_per_image"] == sum(found["cycles"].values()) == 500
    assert 0 < found["bytes_up"] < found["first_bytes_up"] and found["bytes_down"] > 0
