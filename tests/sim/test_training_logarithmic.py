"""Training on a logarithmic array: against plain loops over the array's products."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_float
from slipstick_sim.golden.training import logarithmic_depthwise as depthwise
from slipstick_sim.golden.training.compiled import add_table_products
from slipstick_sim.golden.training.geometry import Window
from slipstick_sim.golden.training.logarithmic import (
    MASTER_PLACES,
    LogarithmicProducts,
    codes_of_wide,
    weights_of_masters,
    wide_codes,
)

FORMATS = [Lns(3, 4), Lns(4, 3)]
WINDOWS = [Window((3, 3), (1, 1), (1, 1, 1, 1)), Window((2, 3), (2, 1), (0, 1, 1, 0)), Window()]
HEIGHT, WIDTH = 5, 6


def codes(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Zeros and largest codes among them."""
    found = generator.integers(-127, 128, shape)
    corners = generator.choice([-127, 0, 1, 127], shape)
    return np.where(generator.random(shape) < 0.3, corners, found).astype(np.int8)


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7, 1023, 1024, 1026, 2051])
def test_products_from_a_table_are_added(lanes: int) -> None:
    """Lanes go by four, and by 1,024 before 32 bits could wrap; large products are among them."""
    generator = np.random.default_rng(lanes)
    table = generator.integers(-(1 << 20), 1 << 20, (256, 256), np.int32)
    table[255], table[0] = (1 << 21) - 1, 0
    by_lane = generator.integers(0, 256, (lanes, 5), np.uint8)
    weights = generator.choice(np.array([0, 7, 255], np.uint8), (lanes, 3), p=[0.1, 0.1, 0.8])
    total = generator.integers(-9, 10, (3, 5))
    products = table[weights.T[:, :, None], by_lane[None]].astype(np.int64)
    wanted = total + products.sum(axis=1)
    add_table_products(by_lane, weights, table, total)
    assert np.array_equal(total, wanted)


def meetings(window: Window) -> Iterator[tuple[int, int, int, int, int, int]]:
    rows, columns = window.outputs(HEIGHT, WIDTH)
    for r, c, ky, kx in np.ndindex(rows, columns, *window.kernel):
        y = r * window.stride[0] + ky - window.padding[0]
        x = c * window.stride[1] + kx - window.padding[2]
        if 0 <= y < HEIGHT and 0 <= x < WIDTH:
            yield r, c, ky, kx, y, x


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_products_are_those_of_loops(lns: Lns, window: Window) -> None:
    generator = np.random.default_rng(5)
    do, multiply = LogarithmicProducts(lns), LogarithmicProducts(lns).array.multiply
    rows, columns = window.outputs(HEIGHT, WIDTH)
    images, weights = codes(generator, 2, HEIGHT, WIDTH, 3), codes(generator, 4, *window.kernel, 3)
    errors = codes(generator, 2, rows, columns, 4)
    forward = np.zeros(errors.shape, np.int64)
    back, gradient = np.zeros(images.shape, np.int64), np.zeros(weights.shape, np.int64)
    for r, c, ky, kx, y, x in meetings(window):
        pixel, error = images[:, None, y, x], errors[:, r, c, :, None]
        forward[:, r, c] += multiply(pixel, weights[None, :, ky, kx]).sum(axis=2)
        back[:, y, x] += multiply(error, weights[None, :, ky, kx]).sum(axis=1)
        gradient[:, ky, kx] += multiply(pixel, error).sum(axis=0)
    np.testing.assert_array_equal(do.forward(images, weights, window), forward)
    found = do.input_gradient(errors, weights, window, HEIGHT, WIDTH)
    np.testing.assert_array_equal(found, back)
    np.testing.assert_array_equal(do.weight_gradient(images, errors, window), gradient)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_depthwise_products_are_those_of_loops(lns: Lns, window: Window) -> None:
    generator, do = np.random.default_rng(6), LogarithmicProducts(lns)
    multiply = do.array.multiply
    rows, columns = window.outputs(HEIGHT, WIDTH)
    images, weights = codes(generator, 2, HEIGHT, WIDTH, 3), codes(generator, 1, *window.kernel, 3)
    errors = codes(generator, 2, rows, columns, 3)
    forward = np.zeros(errors.shape, np.int64)
    back, gradient = np.zeros(images.shape, np.int64), np.zeros(weights.shape, np.int64)
    for r, c, ky, kx, y, x in meetings(window):
        forward[:, r, c] += multiply(images[:, y, x], weights[0, ky, kx])
        back[:, y, x] += multiply(errors[:, r, c], weights[0, ky, kx])
        gradient[0, ky, kx] += multiply(images[:, y, x], errors[:, r, c]).sum(axis=0)
    found = depthwise.logarithmic_depthwise_forward(do, images, weights, window)
    np.testing.assert_array_equal(found, forward)
    found = depthwise.logarithmic_depthwise_input_gradient(
        do, errors, weights, window, HEIGHT, WIDTH
    )
    np.testing.assert_array_equal(found, back)
    found = depthwise.logarithmic_depthwise_weight_gradient(do, images, errors, window)
    np.testing.assert_array_equal(found, gradient)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_sums_beyond_32_bits_raise(lns: Lns) -> None:
    do = LogarithmicProducts(lns)
    # more than the 1,024 products that are summed in 32 bits
    images = np.full((3, 1, 1, 1500), 127, np.int8)
    weights = np.full((1, 1, 1, 1500), 127, np.int8)
    exact = 1500 * int(do.array.products[127, 127])
    assert (do.forward(images, weights, Window()) == exact).all()
    images = np.full((1, 1, 1, 3000), 127, np.int8)
    with pytest.raises(OverflowError, match="must be within"):
        do.forward(images, np.full((1, 1, 1, 3000), -127, np.int8), Window())


@settings(deadline=None)
@given(st.sampled_from(FORMATS), st.integers(-(1 << 31) + 1, (1 << 31) - 1), st.integers(-20, 20))
def test_rounding_is_to_the_nearest_logarithm(lns: Lns, value: int, exponent: int) -> None:
    do = LogarithmicProducts(lns)
    target = do.next_exponent(exponent, abs(value))
    (code,) = do.round(np.array([value], np.int32), exponent, target).tolist()
    if value == 0:
        assert code == 0
        return
    logarithm = (np.log2(abs(value)) + exponent - target) * (1 << lns.fraction_bits)
    assert code * value > 0 and abs(code) > 127 - (1 << lns.fraction_bits) - 1
    assert abs(min(127, logarithm) - abs(code)) < 0.65
    (positive,) = do.round(np.array([value], np.int32), exponent, target, relu=True).tolist()
    assert positive == max(0, code)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_linear_numbers_and_their_sums(lns: Lns) -> None:
    do = LogarithmicProducts(lns)
    every = np.arange(-127, 128).astype(np.int8)
    linear = do.linear(every) * 2.0**-do.array.antilog_places
    exact = np.sign(every) * np.exp2(np.abs(every.astype(int)) / (1 << lns.fraction_bits))
    np.testing.assert_allclose(linear[every != 0], exact[every != 0], rtol=0.02)
    assert linear[127] == 0
    total, exponent = do.aligned_sum([(every, 3), (every, -2), (every, -9)])
    exact = do.linear(every).astype(np.int64) * ((1 << 5) + 1)
    np.testing.assert_array_equal(total, exact)
    assert exponent == -2 - do.array.antilog_places


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_errors_of_logits_follow_the_softmax(lns: Lns) -> None:
    do, generator = LogarithmicProducts(lns), np.random.default_rng(3)
    exponent = 2 - do.octaves
    logits = codes(generator, 40, 10)
    labels = generator.integers(0, 10, 40)
    errors, unit, following = do.loss_errors(logits, exponent, labels)
    real = do.linear(logits) * 2.0 ** (exponent - do.array.antilog_places)
    exact = np.exp(real - real.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    exact[np.arange(40), labels] -= 1
    found = do.linear(errors) * 2.0 ** (unit - do.array.antilog_places)
    assert unit == following
    assert np.abs(found - exact).max() < 0.1
    assert np.abs(found.sum(axis=1)).max() < 0.15
    again, kept, _ = do.loss_errors(logits, exponent, labels, target=unit + 1)
    assert kept == unit + 1
    larger = do.linear(again) * 2.0 ** (kept - do.array.antilog_places)
    assert np.abs(larger - found).max() < 0.2


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_multiplied_updates(lns: Lns) -> None:
    do = LogarithmicProducts(lns)
    octave = 1 << (lns.fraction_bits + MASTER_PLACES)
    middle = 64 << MASTER_PLACES
    masters = np.array([middle, middle, -middle, 0, middle, middle], np.int32)
    gradient = np.array([1000, -1000, 1000, 1000, 0, 250], np.int32)
    norms = np.full(6, do.lowest_norm, np.int32)
    norms[5] = do._logarithms(np.array([1000]), lns.fraction_bits + 3)[0]
    new, kept = do.update_multiplied(masters, norms, gradient, 2, 0)
    step = octave >> 2
    # the first step of each is the largest; that of a quarter of the norm is a quarter
    assert new[:5].tolist() == [middle - step, middle + step, -middle - step, 0, middle]
    assert abs((middle - new[5]) - step / 4) <= 2
    assert kept[4] == do.lowest_norm and kept[5] == norms[5]
    _, decayed = do.update_multiplied(masters, kept, gradient // 1000, 2, 5)
    assert (decayed[:4] == kept[:4] - 5).all()
    # weights keep their signs and stay within the codes
    least = np.array([1 << MASTER_PLACES, -(127 << MASTER_PLACES)], np.int32)
    new, _ = do.update_multiplied(least, norms[:2], np.array([5, 5], np.int32), 0, 0)
    assert weights_of_masters(new).tolist() == [1, -127]


def test_codes_of_wide_ones() -> None:
    generator = np.random.default_rng(8)
    wide = Lns(6, 8)
    real = generator.normal(size=2000) * np.exp2(generator.integers(-12, 3, 2000))
    masters = from_float(wide, real)
    for lns in FORMATS:
        exponent = 1 - (1 << lns.integer_bits)
        found = codes_of_wide(masters, wide, lns, exponent)
        logarithm = (np.log2(np.abs(to_float(wide, masters))) - exponent) * 2**lns.fraction_bits
        wanted = np.clip(np.floor(logarithm + 0.5), 0, 127) * np.sign(real)
        np.testing.assert_array_equal(found, wanted)
    values = np.array([0, 1, -3, (1 << 31) - 1], np.int32)
    np.testing.assert_array_equal(wide_codes(wide, values, -7), from_float(wide, values * 2.0**-7))
