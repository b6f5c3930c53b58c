"""Random layers whose products are compared, for tests of training on devices."""

import numpy as np
from slipstick.training.device.products import DeviceProducts
from slipstick_sim.golden import training as golden


def random_codes(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Any codes."""
    return generator.integers(-127, 128, shape).astype(np.int8)


def check_products(
    products: DeviceProducts, generator: np.random.Generator, *, depthwise: bool
) -> None:
    """Compares the three products of a random layer."""
    draw = generator.integers
    kernel = (int(draw(1, 5)), int(draw(1, 5)))
    top, bottom, left, right = (int(draw(0, kernel[side // 2])) for side in range(4))
    window = golden.Window(kernel, (int(draw(1, 3)), int(draw(1, 3))), (top, bottom, left, right))
    height, width = int(draw(kernel[0], 12)), int(draw(kernel[1], 12))
    inputs = int(draw(1, 20))
    outputs = inputs if depthwise else int(draw(1, 20))
    images = random_codes(generator, int(draw(1, 4)), height, width, inputs)
    weights = random_codes(generator, 1 if depthwise else outputs, *kernel, inputs)
    bias = draw(-2000, 2000, outputs).astype(np.int32)
    relu, shift = bool(draw(0, 2)), int(draw(0, 14))
    forward, back, gradient = (
        (golden.depthwise_forward, golden.depthwise_input_gradient)
        + (golden.depthwise_weight_gradient,)
        if depthwise
        else (golden.convolve_forward, golden.input_gradient, golden.weight_gradient)
    )

    sums = golden.add_bias(forward(images, weights, window), bias)
    found = products.forward(
        images, weights, bias, window, depthwise=depthwise, shift=shift, relu=relu
    )
    np.testing.assert_array_equal(found, golden.finish_forward(sums, shift, relu))
    largest = products.largest()
    assert largest.bit_length() == golden.largest_forward(sums, relu).bit_length()

    errors = random_codes(generator, *found.shape)
    mask = np.maximum(random_codes(generator, *images.shape), 0) if draw(0, 2) else None
    sums = back(errors, weights, window, height, width)
    sums = sums if mask is None else golden.relu_gradient(sums, mask)
    found = products.input_gradient(
        errors, weights, window, depthwise=depthwise, size=(height, width), shift=shift, mask=mask
    )
    np.testing.assert_array_equal(found, golden.finish_errors(sums, shift))
    assert products.largest().bit_length() == golden.largest_error(sums).bit_length()

    found = products.weight_gradient(images, errors, window, depthwise=depthwise)
    np.testing.assert_array_equal(found, gradient(images, errors, window))
