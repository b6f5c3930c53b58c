"""Training steps from DRAM on the compiled RTL, with a chip that checks its timing."""

import dataclasses

from slipstick.devices.simulation import SimulationDevice
from slipstick.targets import find_target
from slipstick.training.dram_step.verify import verify_dram_training
from slipstick.training.networks import digits_cnn


def test_steps_from_dram_on_the_rtl() -> None:
    """Activations, errors, gradients, ranges and weights equal those of the golden functions."""
    configuration = dataclasses.replace(
        find_target("sim-training").configuration, dram="MT48LC16M16"
    )
    device = SimulationDevice(configuration)
    try:
        found = verify_dram_training(digits_cnn(), device, steps=4, batch=4, rate_shift=5, seed=1)
    finally:
        device.close()
    assert found.comparison.elements > 25_000
    assert found.comparison.mismatches == 0, found.comparison.by_layer
    assert found.parameters.mismatches == 0, found.parameters.by_layer
