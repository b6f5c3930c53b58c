"""The three products of a depthwise convolution on a logarithmic array."""

import numpy as np

from .geometry import Window
from .logarithmic import LogarithmicProducts
from .rounding import exact_sum


def logarithmic_depthwise_forward(
    do: LogarithmicProducts, images: np.ndarray, weights: np.ndarray, window: Window
) -> np.ndarray:
    """As ``depthwise.depthwise_forward`` of codes; int32."""
    rows, columns = window.outputs(*images.shape[1:3])
    padded = window.pad(images)
    total = np.zeros((len(images), rows, columns, images.shape[3]), np.int64)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        total += do.multiply(padded[:, at_rows, at_columns], weights[0, y, x])
    return exact_sum(total)


def logarithmic_depthwise_input_gradient(
    do: LogarithmicProducts,
    errors: np.ndarray,
    weights: np.ndarray,
    window: Window,
    height: int,
    width: int,
) -> np.ndarray:
    """As ``depthwise.depthwise_input_gradient`` of codes; int32."""
    batch, rows, columns, channels = errors.shape
    top, bottom, left, right = window.padding
    padded = np.zeros((batch, height + top + bottom, width + left + right, channels), np.int64)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        padded[:, at_rows, at_columns] += do.multiply(errors, weights[0, y, x])
    return exact_sum(window.unpad(padded))


def logarithmic_depthwise_weight_gradient(
    do: LogarithmicProducts, images: np.ndarray, errors: np.ndarray, window: Window
) -> np.ndarray:
    """As ``depthwise.depthwise_weight_gradient`` of codes; int32."""
    _, rows, columns, channels = errors.shape
    padded = window.pad(images)
    total = np.empty((1, *window.kernel, channels), np.int64)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        products = do.multiply(padded[:, at_rows, at_columns], errors)
        total[0, y, x] = products.sum(axis=(0, 1, 2), dtype=np.int64)
    return exact_sum(total, "a weight's gradient")
