"""Pools, residual sums and ReLU in training: against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_sim.golden.training.elementwise import aligned_sum, relu_gradient
from slipstick_sim.golden.training.geometry import Window
from slipstick_sim.golden.training.pooling import (
    average_shift,
    max_pool,
    max_pool_gradient,
    sum_pool,
    sum_pool_gradient,
)

CASES = [
    Window((2, 2), (2, 2)),
    Window((3, 3), (3, 3)),
    Window((3, 3), (2, 2), (1, 1, 1, 1)),
    Window((2, 3), (1, 2), (0, 1, 1, 0)),
    Window((8, 9)),
]


@pytest.mark.parametrize("window", CASES, ids=str)
@pytest.mark.parametrize("values", [3, 127])
def test_pools_are_those_of_loops(window: Window, values: int) -> None:
    generator = np.random.default_rng(values)
    rows, columns = window.outputs(8, 9)
    images = generator.integers(-values, values + 1, (2, 8, 9, 3)).astype(np.int8)
    errors = generator.integers(-127, 128, (2, rows, columns, 3)).astype(np.int8)
    maxima, sums = np.zeros(errors.shape, np.int64), np.zeros(errors.shape, np.int64)
    of_maxima, of_sums = np.zeros(images.shape, np.int64), np.zeros(images.shape, np.int64)
    for n, r, c, i in np.ndindex(*errors.shape):
        places = [
            (y, x)
            for y in range(r * window.stride[0], r * window.stride[0] + window.kernel[0])
            for x in range(c * window.stride[1], c * window.stride[1] + window.kernel[1])
        ]
        places = [(y - window.padding[0], x - window.padding[2]) for y, x in places]
        places = [(y, x) for y, x in places if 0 <= y < 8 and 0 <= x < 9]
        pixels = [int(images[n, y, x, i]) for y, x in places]
        maxima[n, r, c, i], sums[n, r, c, i] = max(pixels), sum(pixels)
        y, x = places[pixels.index(max(pixels))]
        of_maxima[n, y, x, i] += errors[n, r, c, i]
        for y, x in places:
            of_sums[n, y, x, i] += errors[n, r, c, i]
    found = max_pool(images, window)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, maxima)
    np.testing.assert_array_equal(max_pool_gradient(errors, images, found, window), of_maxima)
    np.testing.assert_array_equal(sum_pool(images, window), sums)
    np.testing.assert_array_equal(sum_pool_gradient(errors, window, 8, 9), of_sums)
    assert int(np.ceil(np.log2(np.prod(window.kernel)))) == average_shift(window)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-127, 127), st.integers(-30, 5)), min_size=1, max_size=6))
def test_aligned_sums_are_exact(tensors: list[tuple[int, int]]) -> None:
    total, exponent = aligned_sum([(np.array([code], np.int8), e) for code, e in tensors])
    top = max(e for _, e in tensors)
    wanted = sum(code * 2.0**e for code, e in tensors if top - e <= 15)
    assert total.dtype == np.int32
    assert float(total[0]) * 2.0**exponent == wanted
    lost = sum(abs(code) * 2.0**e for code, e in tensors if top - e > 15)
    assert lost <= 6 * 127 * 2.0 ** (top - 16)


def test_sums_of_nothing() -> None:
    with pytest.raises(ValueError, match="1 to 64, not 0"):
        aligned_sum([])


def test_errors_pass_where_the_activation_is_above_zero() -> None:
    kept = np.array([0, 1, 127, 0], np.int8)
    for dtype in (np.int8, np.int32):
        errors = np.array([5, -6, 7, -8], dtype)
        found = relu_gradient(errors, kept)
        assert found.dtype == dtype and found.tolist() == [0, -6, 7, 0]
