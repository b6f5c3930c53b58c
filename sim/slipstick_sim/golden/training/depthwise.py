"""The three products of a depthwise convolution (multiplier 1), as int32 sums before rounding."""

import numpy as np

from .geometry import Window
from .rounding import exact_sum


def depthwise_forward(images: np.ndarray, weights: np.ndarray, window: Window) -> np.ndarray:
    """As ``convolution.convolve_forward``, each channel by itself.

    Parameters
    ----------
    images : array of int8, (batch, height, width, C)
    weights : array of int8, (1, kernel height, kernel width, C)
    window : Window

    Returns
    -------
    array of int32, (batch, rows, columns, C)
    """
    rows, columns = window.outputs(*images.shape[1:3])
    padded = window.pad(images)
    total = np.zeros((len(images), rows, columns, images.shape[3]), np.int32)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        total += padded[:, at_rows, at_columns].astype(np.int32) * weights[0, y, x]
    return total


def depthwise_input_gradient(
    errors: np.ndarray, weights: np.ndarray, window: Window, height: int, width: int
) -> np.ndarray:
    """As ``convolution.input_gradient``, each channel by itself.

    Parameters
    ----------
    errors : array of int8, (batch, rows, columns, C)
    weights : array of int8, (1, kernel height, kernel width, C)
    window : Window
    height, width : int
        Of the layer's input.

    Returns
    -------
    array of int32, (batch, height, width, C)
    """
    batch, rows, columns, channels = errors.shape
    top, bottom, left, right = window.padding
    shape = batch, height + top + bottom, width + left + right, channels
    padded, wide = np.zeros(shape, np.int32), errors.astype(np.int32)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        padded[:, at_rows, at_columns] += wide * weights[0, y, x]
    return np.ascontiguousarray(window.unpad(padded))


def depthwise_weight_gradient(images: np.ndarray, errors: np.ndarray, window: Window) -> np.ndarray:
    """As ``convolution.weight_gradient``, each channel by itself.

    Parameters
    ----------
    images : array of int8, (batch, height, width, C)
    errors : array of int8, (batch, rows, columns, C)
    window : Window

    Returns
    -------
    array of int32, (1, kernel height, kernel width, C)

    Raises
    ------
    OverflowError
        If a sum passes 32 bits.
    """
    _, rows, columns, channels = errors.shape
    padded, wide = window.pad(images), errors.astype(np.int32)
    total = np.empty((1, *window.kernel, channels), np.int64)
    for y, x, at_rows, at_columns in window.taps(rows, columns):
        products = padded[:, at_rows, at_columns] * wide
        total[0, y, x] = products.sum(axis=(0, 1, 2), dtype=np.int64)
    return exact_sum(total, "a weight's gradient")
