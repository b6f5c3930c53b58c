"""Windows of convolutions and pools, and the matrices of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .compiled import gather, scatter

PIECE_PIXELS = 1024
"""Output pixels worked on at a time: their windows stay in the second-level cache, and a float32
holds every sum over so many products of int8 (see ``golden.arithmetic.EXACT_LANES``)."""


@dataclass(frozen=True)
class Window:
    """A window that moves over an image.

    Parameters
    ----------
    kernel : (height, width)
    stride : (y, x)
    padding : (top, bottom, left, right)
        Pixels of 0; maxima leave them out.

    Raises
    ------
    ValueError
        If a size or stride is below 1, or a padding below 0 or not smaller than the kernel.
    """

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        if min(*self.kernel, *self.stride) < 1:
            raise ValueError(f"kernel and stride must be at least 1: {self.kernel}, {self.stride}")
        sides = (self.kernel[0],) * 2 + (self.kernel[1],) * 2
        if any(not 0 <= pad < side for pad, side in zip(self.padding, sides, strict=True)):
            raise ValueError(f"padding must be within the kernel {self.kernel}: {self.padding}")

    def outputs(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of output.

        Raises
        ------
        ValueError
            If the window is larger than the padded image.
        """
        top, bottom, left, right = self.padding
        rows = (height + top + bottom - self.kernel[0]) // self.stride[0] + 1
        columns = (width + left + right - self.kernel[1]) // self.stride[1] + 1
        if min(rows, columns) < 1:
            raise ValueError(f"a window of {self.kernel} must fit an image of {height} x {width}")
        return rows, columns

    def pad(self, images: np.ndarray, value: float = 0) -> np.ndarray:
        """Images (batch, height, width, channels) with their padding."""
        top, bottom, left, right = self.padding
        if not any(self.padding):
            return images
        batch, height, width, channels = images.shape
        shape = batch, height + top + bottom, width + left + right, channels
        padded = np.full(shape, value, images.dtype)
        padded[:, top : top + height, left : left + width] = images
        return padded

    def unpad(self, images: np.ndarray) -> np.ndarray:
        """Padded images without their padding."""
        top, bottom, left, right = self.padding
        height, width = images.shape[1:3]
        return images[:, top : height - bottom, left : width - right]

    def taps(self, rows: int, columns: int) -> Iterator[tuple[int, int, slice, slice]]:
        """Each tap's place in the kernel, and where in a padded image its pixels are."""
        for y in range(self.kernel[0]):
            for x in range(self.kernel[1]):
                yield (
                    y,
                    x,
                    slice(y, y + (rows - 1) * self.stride[0] + 1, self.stride[0]),
                    slice(x, x + (columns - 1) * self.stride[1] + 1, self.stride[1]),
                )

    def matrix(self, padded: np.ndarray, rows: int, columns: int) -> np.ndarray:
        """Windows of padded images as rows of a float32 matrix ("im2col").

        Returns
        -------
        array of float32, (batch x rows x columns, kernel height x width x channels)
        """
        batch, height, width, channels = padded.shape
        shape = batch, rows, columns, self.kernel[0], self.kernel[1] * channels
        result = np.empty(shape, np.float32)
        flat = np.ascontiguousarray(padded).reshape(batch, height, width * channels)
        gather(flat, result, *self.stride, channels)
        return result.reshape(batch * rows * columns, -1)

    def scatter(self, matrix: np.ndarray, padded: np.ndarray, rows: int, columns: int) -> None:
        """Adds windows to where in padded images they are from: the transpose of ``matrix``.

        Parameters
        ----------
        matrix : array, (batch x rows x columns, kernel height x width x channels)
        padded : array, (batch, padded height, padded width, channels)
            Contiguous; added to in place.
        """
        batch, height, width, channels = padded.shape
        shape = batch, rows, columns, self.kernel[0], self.kernel[1] * channels
        flat = padded.view()
        # the view must share memory
        flat.shape = batch, height, width * channels
        scatter(matrix.reshape(shape), flat, *self.stride, channels)

    def pieces(self, batch: int, rows: int, columns: int) -> Iterator[slice]:
        """Images whose windows are worked on together."""
        step = max(1, PIECE_PIXELS // (rows * columns))
        for first in range(0, batch, step):
            yield slice(first, min(batch, first + step))
