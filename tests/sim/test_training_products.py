"""The three products of training: against plain loops, and against each other as gradients."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_sim.golden.training.convolution import (
    bias_gradient,
    convolve_forward,
    input_gradient,
    weight_gradient,
)
from slipstick_sim.golden.training.depthwise import (
    depthwise_forward,
    depthwise_input_gradient,
    depthwise_weight_gradient,
)
from slipstick_sim.golden.training.geometry import Window
from slipstick_sim.golden.training.updates import merge_gradients


def codes(generator: np.random.Generator, *shape: int, corners: bool) -> np.ndarray:
    """Random codes; with corners all are of the largest magnitude, most of one sign."""
    if corners:
        signs = np.where(generator.random(shape) < 0.9, 1, -1)
        return (127 * signs).astype(np.int8)
    return generator.integers(-127, 128, shape).astype(np.int8)


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, int, int]:
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    vertical = [draw(st.integers(0, kernel[0] - 1)) for _ in range(2)]
    horizontal = [draw(st.integers(0, kernel[1] - 1)) for _ in range(2)]
    window = Window(kernel, stride, (*vertical, *horizontal))  # type: ignore[arg-type]
    height = draw(st.integers(max(1, kernel[0] - sum(vertical)), 7))
    width = draw(st.integers(max(1, kernel[1] - sum(horizontal)), 7))
    return window, height, width


def meetings(window: Window, height: int, width: int):
    """Every (row, column, tap y, tap x, pixel y, pixel x) at which a tap meets a pixel."""
    rows, columns = window.outputs(height, width)
    ranges = (range(rows), range(columns), range(window.kernel[0]), range(window.kernel[1]))
    for r, c, ky, kx in itertools.product(*ranges):
        y = r * window.stride[0] + ky - window.padding[0]
        x = c * window.stride[1] + kx - window.padding[2]
        if 0 <= y < height and 0 <= x < width:
            yield r, c, ky, kx, y, x


SIZES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))


@settings(max_examples=60, deadline=None)
@given(windows(), SIZES, st.booleans(), st.integers(0, 1 << 30))
def test_products_are_those_of_loops(
    case: tuple[Window, int, int], sizes: tuple[int, int, int], corners: bool, seed: int
) -> None:
    (window, height, width), (batch, inputs, outputs) = case, sizes
    generator = np.random.default_rng(seed)
    rows, columns = window.outputs(height, width)
    images = codes(generator, batch, height, width, inputs, corners=corners)
    weights = codes(generator, outputs, *window.kernel, inputs, corners=corners)
    errors = codes(generator, batch, rows, columns, outputs, corners=corners)
    x, w, e = (array.astype(np.int64) for array in (images, weights, errors))
    forward = np.zeros(errors.shape, np.int64)
    back, gradient = np.zeros(images.shape, np.int64), np.zeros(weights.shape, np.int64)
    for r, c, ky, kx, py, px in meetings(window, height, width):
        forward[:, r, c] += x[:, py, px] @ w[:, ky, kx].T
        back[:, py, px] += e[:, r, c] @ w[:, ky, kx]
        gradient[:, ky, kx] += e[:, r, c].T @ x[:, py, px]
    found = convolve_forward(images, weights, window)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, forward)
    found = input_gradient(errors, weights, window, height, width)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, back)
    found = weight_gradient(images, errors, window)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, gradient)
    np.testing.assert_array_equal(bias_gradient(errors), e.sum(axis=(0, 1, 2)))


@settings(max_examples=60, deadline=None)
@given(windows(), SIZES, st.booleans(), st.integers(0, 1 << 30))
def test_depthwise_products_are_those_of_loops(
    case: tuple[Window, int, int], sizes: tuple[int, int, int], corners: bool, seed: int
) -> None:
    (window, height, width), (batch, channels, _) = case, sizes
    generator = np.random.default_rng(seed)
    rows, columns = window.outputs(height, width)
    images = codes(generator, batch, height, width, channels, corners=corners)
    weights = codes(generator, 1, *window.kernel, channels, corners=corners)
    errors = codes(generator, batch, rows, columns, channels, corners=corners)
    x, w, e = (array.astype(np.int64) for array in (images, weights, errors))
    forward = np.zeros(errors.shape, np.int64)
    back, gradient = np.zeros(images.shape, np.int64), np.zeros(weights.shape, np.int64)
    for r, c, ky, kx, py, px in meetings(window, height, width):
        forward[:, r, c] += x[:, py, px] * w[0, ky, kx]
        back[:, py, px] += e[:, r, c] * w[0, ky, kx]
        gradient[0, ky, kx] += (e[:, r, c] * x[:, py, px]).sum(axis=0)
    np.testing.assert_array_equal(depthwise_forward(images, weights, window), forward)
    found = depthwise_input_gradient(errors, weights, window, height, width)
    np.testing.assert_array_equal(found, back)
    np.testing.assert_array_equal(depthwise_weight_gradient(images, errors, window), gradient)


@pytest.mark.parametrize("inputs", [1024, 1025, 5000])
def test_long_reductions_are_exact(inputs: int) -> None:
    generator = np.random.default_rng(inputs)
    for corners in (False, True):
        images = codes(generator, 2, 1, 1, inputs, corners=corners)
        weights = codes(generator, 3, 1, 1, inputs, corners=corners)
        wanted = images.reshape(2, -1).astype(np.int64) @ weights.reshape(3, -1).astype(np.int64).T
        found = convolve_forward(images, weights, Window())
        np.testing.assert_array_equal(found.reshape(2, 3), wanted)
        back = codes(generator, 2, 1, 1, inputs, corners=corners)
        of_inputs = codes(generator, inputs, 1, 1, 3, corners=corners)
        wanted = back.reshape(2, -1).astype(np.int64) @ of_inputs.reshape(-1, 3).astype(np.int64)
        found = input_gradient(back, of_inputs, Window(), 1, 1)
        np.testing.assert_array_equal(found.reshape(2, 3), wanted)


def test_gradients_of_many_pixels_are_exact_up_to_32_bits_and_raise_beyond() -> None:
    # 127 * 127 * 133,143 is the last below 2^31
    images = np.full((129, 32, 32, 1), 127, np.int8)
    errors = np.full((129, 32, 32, 1), -127, np.int8)
    most = weight_gradient(images, errors, Window())
    assert most.tolist() == [[[[-127 * 127 * 129 * 1024]]]]
    images, errors = (np.concatenate([array, array[:2]]) for array in (images, errors))
    for product in (weight_gradient, depthwise_weight_gradient):
        with pytest.raises(OverflowError, match="a weight's gradient must be within"):
            product(images, errors, Window())


@settings(max_examples=30, deadline=None)
@given(windows(), st.integers(1, 4), st.integers(0, 1 << 30))
def test_parts_of_a_batch_merge_to_the_whole(
    case: tuple[Window, int, int], parts: int, seed: int
) -> None:
    window, height, width = case
    generator = np.random.default_rng(seed)
    rows, columns = window.outputs(height, width)
    images = codes(generator, 4 * parts, height, width, 3, corners=False)
    errors = codes(generator, 4 * parts, rows, columns, 3, corners=False)
    split = zip(np.split(images, parts), np.split(errors, parts), strict=True)
    sums = [weight_gradient(x, e, window) for x, e in split]
    whole = weight_gradient(images, errors, window)
    np.testing.assert_array_equal(merge_gradients(sums), whole)
    np.testing.assert_array_equal(merge_gradients(sums[::-1]), whole)
    of_channels = depthwise_weight_gradient(images, errors, window)
    split = zip(np.split(images, parts), np.split(errors, parts), strict=True)
    sums = [depthwise_weight_gradient(x, e, window) for x, e in split]
    np.testing.assert_array_equal(merge_gradients(sums), of_channels)


def test_merged_sums_beyond_32_bits_raise() -> None:
    half = np.array([1 << 30], np.int32)
    with pytest.raises(OverflowError, match="a merged gradient"):
        merge_gradients([half, half])


@settings(max_examples=30, deadline=None)
@given(windows(), SIZES, st.integers(0, 1 << 30))
def test_gradients_are_the_derivatives(
    case: tuple[Window, int, int], sizes: tuple[int, int, int], seed: int
) -> None:
    """The product is linear in each operand, so that one difference is the derivative."""
    (window, height, width), (batch, inputs, outputs) = case, sizes
    generator = np.random.default_rng(seed)
    rows, columns = window.outputs(height, width)
    images = codes(generator, batch, height, width, inputs, corners=False)
    weights = codes(generator, outputs, *window.kernel, inputs, corners=False)
    errors = codes(generator, batch, rows, columns, outputs, corners=False)

    def objective(x: np.ndarray, w: np.ndarray) -> int:
        return int((convolve_forward(x, w, window).astype(np.int64) * errors).sum())

    start = objective(images, weights)
    back = input_gradient(errors, weights, window, height, width)
    gradient = weight_gradient(images, errors, window)
    for operand, found in ((images, back), (weights, gradient)):
        place = tuple(int(generator.integers(size)) for size in operand.shape)
        change = -1 if operand[place] > 0 else 1
        operand[place] += change
        assert change * (objective(images, weights) - start) == found[place]
        operand[place] -= change


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 1),), "at least 1"),
        (((3, 3), (0, 1)), "at least 1"),
        (((3, 3), (1, 1), (3, 0, 0, 0)), "padding must be within the kernel"),
        (((3, 3), (1, 1), (0, 0, -1, 0)), "padding must be within the kernel"),
    ],
)
def test_windows_out_of_range(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Window(*arguments)


def test_windows_larger_than_the_image() -> None:
    with pytest.raises(ValueError, match="must fit an image of 2 x 5"):
        Window((3, 3)).outputs(2, 5)
