"""The three products of a convolution, as int32 sums before any rounding.

Activations, weights and errors are int8 (-127..127), NHWC and OHWI. A layer that is fully connected
is a convolution of images of one pixel. Sums are exact; one that passes 32 bits raises.
"""

import numpy as np

from ..arithmetic import EXACT_LANES
from .geometry import Window
from .rounding import exact_sum


def exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Matrix product of whole numbers of 8 bits, by BLAS where it is exact.

    Parameters
    ----------
    a : array of float32, (m, k)
    b : array of float32, (k, n)

    Returns
    -------
    array (m, n)
        float32 if k is at most ``EXACT_LANES``, else float64; whole numbers either way.
    """
    reduction = a.shape[1]
    if reduction <= EXACT_LANES:
        return a @ b
    total = np.zeros((a.shape[0], b.shape[1]), np.float64)
    for first in range(0, reduction, EXACT_LANES):
        part = slice(first, first + EXACT_LANES)
        total += a[:, part] @ b[part]
    return total


def convolve_forward(images: np.ndarray, weights: np.ndarray, window: Window) -> np.ndarray:
    """sum of image[y * stride + ky - top, x * stride + kx - left, i] * weight[o, ky, kx, i].

    Parameters
    ----------
    images : array of int8, (batch, height, width, I)
    weights : array of int8, (O, kernel height, kernel width, I)
    window : Window

    Returns
    -------
    array of int32, (batch, rows, columns, O)

    Raises
    ------
    OverflowError
        If a sum passes 32 bits.
    """
    rows, columns = window.outputs(*images.shape[1:3])
    padded, batch = window.pad(images), len(images)
    factor = np.ascontiguousarray(weights.reshape(len(weights), -1).T, np.float32)
    results = np.empty((batch, rows, columns, len(weights)), np.int32)
    for piece in window.pieces(batch, rows, columns):
        product = exact_product(window.matrix(padded[piece], rows, columns), factor)
        results[piece] = _whole(product).reshape(results[piece].shape)
    return results


def input_gradient(
    errors: np.ndarray, weights: np.ndarray, window: Window, height: int, width: int
) -> np.ndarray:
    """The transposed convolution: sum of error[r, c, o] * weight[o, ky, kx, i] that met a pixel.

    Parameters
    ----------
    errors : array of int8, (batch, rows, columns, O)
    weights : array of int8, (O, kernel height, kernel width, I)
    window : Window
        The layer's.
    height, width : int
        Of the layer's input.

    Returns
    -------
    array of int32, (batch, height, width, I)

    Raises
    ------
    OverflowError
        If a sum passes 32 bits.
    """
    batch, rows, columns, _ = errors.shape
    top, bottom, left, right = window.padding
    shape = height + top + bottom, width + left + right, weights.shape[3]
    factor = weights.reshape(len(weights), -1).astype(np.float32)
    # a pixel meets each weight of an output channel at most once
    products = len(weights) * window.kernel[0] * window.kernel[1]
    numbers = np.float32 if products <= EXACT_LANES else np.float64
    results = np.empty((batch, height, width, weights.shape[3]), np.int32)
    for piece in window.pieces(batch, rows, columns):
        flat = errors[piece].reshape(-1, len(weights)).astype(np.float32)
        padded = np.zeros((len(errors[piece]), *shape), numbers)
        window.scatter(exact_product(flat, factor), padded, rows, columns)
        results[piece] = _whole(window.unpad(padded))
    return results


def weight_gradient(images: np.ndarray, errors: np.ndarray, window: Window) -> np.ndarray:
    """A convolution of the images whose kernel is the error map, summed over the batch.

    gradient[o, ky, kx, i] = sum over batch, r, c of
    image[r * stride + ky - top, c * stride + kx - left, i] * error[r, c, o]

    There is no rounding: sums of the parts of a batch add up to the sum of the whole, in any order.

    Parameters
    ----------
    images : array of int8, (batch, height, width, I)
    errors : array of int8, (batch, rows, columns, O)
    window : Window

    Returns
    -------
    array of int32, (O, kernel height, kernel width, I)

    Raises
    ------
    OverflowError
        If a sum passes 32 bits, which takes more than 133,143 products.
    """
    batch, rows, columns, outputs = errors.shape
    padded, channels = window.pad(images), images.shape[3]
    total = np.zeros((window.kernel[0] * window.kernel[1] * channels, outputs), np.float64)
    for piece in window.pieces(batch, rows, columns):
        matrix = window.matrix(padded[piece], rows, columns)
        total += exact_product(matrix.T, errors[piece].reshape(-1, outputs).astype(np.float32))
    by_output = np.ascontiguousarray(total.T).reshape(outputs, *window.kernel, channels)
    return exact_sum(by_output, "a weight's gradient")


def bias_gradient(errors: np.ndarray) -> np.ndarray:
    """Errors summed over the batch and all pixels.

    Parameters
    ----------
    errors : array of int8, (batch, rows, columns, O)

    Returns
    -------
    array of int32, (O,)
    """
    return exact_sum(errors.sum(axis=(0, 1, 2), dtype=np.int64), "a bias' gradient")


def _whole(values: np.ndarray) -> np.ndarray:
    # sums that a float32 holds cannot pass 32 bits
    return values.astype(np.int32) if values.dtype == np.float32 else exact_sum(values)
