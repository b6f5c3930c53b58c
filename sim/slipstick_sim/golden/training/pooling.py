"""Pools and their gradients."""

import numpy as np

from .geometry import Window


def average_shift(window: Window) -> int:
    """Places that an average's exponent is below its input's: ceil(log2(pixels of the window)).

    An average here is the sum of a window divided by 2^this. Where the window's pixels are no power
    of two, the network's next layer has the missing factor in its weights.
    """
    return (window.kernel[0] * window.kernel[1] - 1).bit_length()


def sum_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Sums of windows: a depthwise convolution whose weights are 1. Padding counts as 0.

    Parameters
    ----------
    images : array of int8, (batch, height, width, C)
    window : Window
        All of the image for a global average.

    Returns
    -------
    array of int32, (batch, rows, columns, C)
        In units of the input's exponent less ``average_shift``; to be rounded as a convolution's.
    """
    rows, columns = window.outputs(*images.shape[1:3])
    padded = window.pad(images)
    total = np.zeros((len(images), rows, columns, images.shape[3]), np.int32)
    for _, _, at_rows, at_columns in window.taps(rows, columns):
        total += padded[:, at_rows, at_columns]
    return total


def sum_pool_gradient(errors: np.ndarray, window: Window, height: int, width: int) -> np.ndarray:
    """Errors, each at all pixels of its window; what windows share gets the sum.

    Parameters
    ----------
    errors : array of int8, (batch, rows, columns, C)
    window : Window
    height, width : int
        Of the input.

    Returns
    -------
    array of int32, (batch, height, width, C)
        In units of the errors' exponent less ``average_shift``. Bytes if windows do not overlap.
    """
    batch, rows, columns, channels = errors.shape
    top, bottom, left, right = window.padding
    padded = np.zeros((batch, height + top + bottom, width + left + right, channels), np.int32)
    for _, _, at_rows, at_columns in window.taps(rows, columns):
        padded[:, at_rows, at_columns] += errors
    return np.ascontiguousarray(window.unpad(padded))


def max_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Maxima of windows, in the input's exponent. Padding is no pixel.

    Parameters
    ----------
    images : array of int8, (batch, height, width, C)
    window : Window

    Returns
    -------
    array of int8, (batch, rows, columns, C)
    """
    rows, columns = window.outputs(*images.shape[1:3])
    padded = window.pad(images, _lowest(images))
    total: np.ndarray | None = None
    for _, _, at_rows, at_columns in window.taps(rows, columns):
        values = padded[:, at_rows, at_columns]
        total = values.copy() if total is None else np.maximum(total, values, out=total)
    assert total is not None
    return total


def max_pool_gradient(
    errors: np.ndarray, images: np.ndarray, maxima: np.ndarray, window: Window
) -> np.ndarray:
    """Errors at the first pixel of each window, by rows, that is the maximum.

    Nothing but the input and the output needs to be kept.

    Parameters
    ----------
    errors : array of int8, (batch, rows, columns, C)
    images : array of int8, (batch, height, width, C)
    maxima : array of int8, (batch, rows, columns, C)
        As ``max_pool`` gave them.
    window : Window

    Returns
    -------
    array of int32, (batch, height, width, C)
        In the errors' exponent. Bytes if windows do not overlap.
    """
    _, rows, columns, _ = errors.shape
    padded = window.pad(images, _lowest(images))
    numbers = errors.dtype if errors.dtype == np.float32 else np.int32
    result = np.zeros(padded.shape, numbers)
    left = np.ones(errors.shape, bool)
    for _, _, at_rows, at_columns in window.taps(rows, columns):
        here = left & (padded[:, at_rows, at_columns] == maxima)
        result[:, at_rows, at_columns] += np.where(here, errors, errors.dtype.type(0))
        left &= ~here
    return np.ascontiguousarray(window.unpad(result))


def _lowest(images: np.ndarray) -> float:
    # below every code; float32 images are those of the twin that trains in float32
    return -np.inf if images.dtype == np.float32 else -128
