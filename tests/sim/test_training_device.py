"""A training step's products on the compiled RTL."""

import numpy as np
from device_products import check_products
from slipstick.devices.simulation import SimulationDevice
from slipstick.targets import find_target
from slipstick.training.device.products import DeviceProducts
from slipstick.training.device.verify import verify_training
from slipstick.training.networks import digits_cnn


def test_products_and_a_training_on_the_rtl() -> None:
    device = SimulationDevice(find_target("sim-training").configuration)
    try:
        generator = np.random.default_rng(5)
        for case in range(8):
            check_products(DeviceProducts(device), generator, depthwise=case % 4 == 0)
        found = verify_training(digits_cnn(), device, steps=2, batch=4, rate_shift=5, seed=1)
    finally:
        device.close()
    assert found.comparison.elements > 10_000 and found.mismatches == 0, found.comparison.first
