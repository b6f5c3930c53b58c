"""A training step's products on a device, against the golden functions."""

import dataclasses

import numpy as np
import pytest
from device_products import check_products, random_codes
from slipstick.devices.model import ModelDevice
from slipstick.errors import CapacityError
from slipstick.targets import find_target
from slipstick.training.device import convolutions
from slipstick.training.device.comparison import ComparedArithmetic
from slipstick.training.device.products import DeviceProducts
from slipstick.training.device.verify import verify_training
from slipstick.training.int8 import Int8Arithmetic, Range
from slipstick.training.network import initial_parameters
from slipstick.training.networks import digits_cnn
from slipstick.training.trainer import Trainer
from slipstick_rtl.config import Configuration
from slipstick_sim.golden import training as golden
from training_networks import small_network, small_pictures

SMALL = Configuration(
    rows=8, columns=8, lanes=8, activation_bytes=1 << 15, weight_bytes=1 << 16, training=1
)
SHAPES = {
    "8x8": SMALL,
    "16x8, ninth bits": dataclasses.replace(
        SMALL, rows=16, weight_rows=4, ninth_bits=1, halved_tables=1, weight_bytes=1 << 17
    ),
    "2x8x16, few accumulators": dataclasses.replace(
        SMALL, pixels=2, columns=16, lanes=4, accumulator_depth=64, weight_bytes=1 << 17
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_products_equal_the_golden_functions(shape: str) -> None:
    """Random kernels, strides, paddings, batches and shifts; the largest magnitudes too."""
    products = DeviceProducts(ModelDevice(SHAPES[shape], check_hazards=True))
    generator = np.random.default_rng(1)
    for case in range(25):
        check_products(products, generator, depthwise=case % 4 == 0)


@pytest.mark.parametrize("size", [(8, 8), (7, 9)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3), (3, 2)])
def test_strides_cost_no_zeros(stride: tuple[int, int], size: tuple[int, int]) -> None:
    """An input gradient takes each tap of each pixel once; a weight gradient each error."""
    window = golden.Window((3, 3), stride, (1, 1, 1, 1))
    errors = (*window.outputs(*size), 4)
    taken = 0
    for part in convolutions.backward(errors, 5, window, False, size):
        ((geometry, taps),) = part.reductions
        rows, columns, _ = geometry.output
        if np.zeros(window.kernel)[taps].size:
            taken += rows * columns * geometry.kernel[0] * geometry.kernel[1]
    along = [
        sum((place + 1 - tap) % step == 0 for place in range(side) for tap in range(3))
        for side, step in zip(size, stride, strict=True)
    ]
    assert taken == along[0] * along[1]
    made = np.zeros((3, 5, 3), int)
    for row in convolutions.gradient_rows((*size, 5), errors, window, False):
        for part in row.parts:
            for geometry, _ in part.reductions:
                assert geometry.dilation == (stride[0], 1)
                rows, columns, _ = geometry.output
                made[row.row][part.lattice.pixels((0, rows), (0, columns))] += 1
    assert np.all(made == 1)


def test_a_map_wider_than_a_kernel_may_be() -> None:
    """Errors of 40 columns are a kernel in two parts."""
    products = DeviceProducts(ModelDevice(SMALL))
    generator, window = np.random.default_rng(2), golden.Window((3, 3), (1, 1), (1, 1, 1, 1))
    images, errors = random_codes(generator, 2, 4, 40, 3), random_codes(generator, 2, 4, 40, 5)
    for depthwise, kernel in ((False, errors), (True, errors[..., :3])):
        found = products.weight_gradient(images, kernel, window, depthwise=depthwise)
        wanted = (golden.depthwise_weight_gradient if depthwise else golden.weight_gradient)(
            images, kernel, window
        )
        np.testing.assert_array_equal(found, wanted)


def test_largest_is_forgotten_when_it_was_read() -> None:
    products = DeviceProducts(ModelDevice(SMALL))
    one = np.full((1, 1, 1, 1), 1, np.int8)
    window = golden.Window()
    products.forward(one, one, np.array([1 << 20]), window, depthwise=False, shift=3, relu=True)
    assert products.largest().bit_length() == 21
    assert products.largest() == 0


@pytest.mark.parametrize("source", Range)
def test_training_on_a_device_has_the_same_bits(source: Range) -> None:
    network, data = small_network(), small_pictures(48)
    compared = ComparedArithmetic(DeviceProducts(ModelDevice(SMALL)), source=source)
    ours = Trainer(network, compared, initial_parameters(network, 1))
    golden_one = Trainer(network, Int8Arithmetic(source=source), initial_parameters(network, 1))
    for step in range(3):
        some = slice(16 * step, 16 * step + 16)
        ours.step(data.images[some], data.labels[some], 4)
        golden_one.step(data.images[some], data.labels[some], 4)
    assert compared.comparison.elements > 100_000
    assert compared.comparison.mismatches == 0, compared.comparison.first
    wanted = golden_one.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])


class _Wrong(DeviceProducts):
    """A device that adds 1 to one gradient."""

    def weight_gradient(self, *arguments, **options):
        found = super().weight_gradient(*arguments, **options)
        found.flat[3] += 1
        return found


def test_a_wrong_device_is_found() -> None:
    network, data = digits_cnn(), small_pictures(8)
    compared = ComparedArithmetic(_Wrong(ModelDevice(SMALL)))
    trainer = Trainer(network, compared, initial_parameters(network, 1))
    pictures = data.images[:, :8, :8, :1]
    trainer.step(pictures, data.labels, 4)
    assert compared.comparison.mismatches == 3
    assert compared.comparison.first == "dense weight gradient"


def test_a_device_for_inference_is_refused() -> None:
    with pytest.raises(CapacityError, match="training = 1"):
        DeviceProducts(ModelDevice(dataclasses.replace(SMALL, training=0)))


def test_a_layer_that_does_not_fit_is_refused() -> None:
    device = ModelDevice(dataclasses.replace(SMALL, activation_bytes=1 << 10))
    with pytest.raises(CapacityError, match=r"activation_bytes \(1024\)"):
        DeviceProducts(device).weight_gradient(
            np.zeros((1, 16, 16, 8), np.int8),
            np.zeros((1, 16, 16, 8), np.int8),
            golden.Window(),
            depthwise=False,
        )


def test_verification_counts_what_it_compares() -> None:
    configuration = find_target("sim-training").configuration
    found = verify_training(
        digits_cnn(), ModelDevice(configuration), steps=2, batch=4, rate_shift=5, seed=3
    )
    assert (found.steps, found.images, len(found.losses)) == (2, 8, 2)
    assert found.mismatches == 0
    assert found.parameters.elements > 1900 and found.comparison.elements > 10_000
