"""A training step on the compiled RTL: product by product over the link, and from DRAM.

The simulated chip of DRAM checks its timing.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from device_products import check_products
from slipstick.devices.simulation import SimulationDevice
from slipstick.targets import find_target
from slipstick.training.device.products import DeviceProducts
from slipstick.training.device.verify import Verification, verify_training
from slipstick.training.dram_step.verify import verify_dram_training
from slipstick.training.networks import digits_cnn


@pytest.fixture(scope="module")
def device() -> Iterator[SimulationDevice]:
    opened = SimulationDevice(find_target("sim-training-sdram").configuration)
    yield opened
    opened.close()


def check(found: Verification, least: int) -> None:
    assert found.comparison.elements > least
    assert found.comparison.mismatches == 0, found.comparison.by_layer
    assert found.parameters.mismatches == 0, found.parameters.by_layer


def test_products_and_a_training(device: SimulationDevice) -> None:
    generator = np.random.default_rng(5)
    for case in range(8):
        check_products(DeviceProducts(device), generator, depthwise=case % 4 == 0)
    found = verify_training(digits_cnn(), device, steps=2, batch=4, rate_shift=5, seed=1)
    check(found, 10_000)


def test_steps_from_dram(device: SimulationDevice) -> None:
    """Activations, errors, gradients, ranges and weights equal those of the golden functions."""
    found = verify_dram_training(digits_cnn(), device, steps=4, batch=4, rate_shift=5, seed=1)
    check(found, 25_000)


def test_updates_on_the_device(device: SimulationDevice) -> None:
    """Weights that never left the DRAM equal those of the golden functions."""
    found = verify_dram_training(
        digits_cnn(), device, steps=5, batch=4, rate_shift=4, seed=2, on_device=True
    )
    check(found, 20_000)
    assert found.updated == 4
