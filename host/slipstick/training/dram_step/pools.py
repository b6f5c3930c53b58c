"""Writes maxima of windows, and masks of them: 1 at the first pixel that is the maximum.

Maps compute for each tap of the window, in the order of rows::

    equal = clamp(x + 1 - y, 0, 1)                     1 where the pixel is the maximum
    mask = clamp(equal - found, 0, 1)                  1 if none before it was
    found = clamp(found + equal, 0, 1)

and less than 1 stands in place of x + 1 - y where y is not above 0, if a ReLU is behind the pool's
input. On the way back an error goes to the pixels of its window whose mask is above 0.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration

from ...compiler.ir.operations import View
from ...compiler.mapping.activation_layout import round_up
from ...errors import CapacityError, UnsupportedError
from ...program.steps import Placement
from ..device.convolutions import Lattice, nearest
from .copies import lattices
from .maps import MapWriter, Program, Steps

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]

_NEGATED, _COMPARED = 1, 2
"""Bits of ``use_table``: even taps are negated, odd ones are what is taken from x."""

_BELOW_ALL = -256
"""With any code it is below 0."""


@dataclass(frozen=True)
class PoolProgram:
    """A program, and where its tensors lie.

    Parameters
    ----------
    program : Program
    image, maxima, masks : Placement
        Masks are as large as the image; those of pixels in no window are not written.
    bytes : int
        Of the activation memory, that it touches.
    """

    program: Program
    image: Placement
    maxima: Placement
    masks: Placement
    bytes: int


def check_pool(name: str, window: "Window") -> None:
    """Refuses windows that are not side by side.

    Raises
    ------
    UnsupportedError
        It names the layer.
    """
    if any(window.padding) or window.kernel != window.stride:
        raise UnsupportedError(
            f"layer {name!r}: a pool that is trained from DRAM must have windows side by side,"
            f" without padding, not {window.kernel} with stride {window.stride} and padding"
            f" {window.padding}"
        )


def pool_program(
    shape: Shape, window: "Window", configuration: Configuration, *, positive: bool
) -> PoolProgram:
    """Writes maxima and masks of an image.

    Parameters
    ----------
    shape : (height, width, channels)
    window : Window
        As ``check_pool`` wants it.
    configuration : Configuration
        With ``training``.
    positive : bool
        A ReLU is behind the input: masks are 0 where the maximum is not above 0.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    return _PoolWriter(shape, window, configuration).write(positive)


class _PoolWriter:
    def __init__(self, shape: Shape, window: "Window", configuration: Configuration) -> None:
        self._window = window
        height, width, channels = shape
        rows, columns = window.outputs(height, width)
        pixel = round_up(channels, configuration.lanes)
        self._view = View(rows, columns, channels)
        self._image = Placement(0, width * pixel, pixel, height, width, channels)
        size, dense = self._image.bytes, rows * columns * pixel
        self._masks = Placement(size, width * pixel, pixel, height, width, channels)
        # maxima lie as far apart as the windows: a map reads both with equal steps
        row_step, column_step = self._window_steps
        self._maxima = Placement(2 * size, row_step, column_step, rows, columns, channels)
        self._equal = self._maxima.end, columns * pixel, pixel
        self._found = self._maxima.end + dense, columns * pixel, pixel
        self._end = end = self._found[0] + dense
        if end > configuration.activation_bytes:
            raise CapacityError(
                f"a pool's tensors must fit activation_bytes ({configuration.activation_bytes}),"
                f" not {end} bytes"
            )
        self._maps = MapWriter(configuration, (rows, columns, channels))
        nothing = np.zeros(1, np.int32)
        self._codes = self._maps.finish(nearest(nothing, 0, -127))
        self._flags = {**self._maps.finish(nearest(nothing, 0, 0)), "maximum": 1}

    @property
    def _window_steps(self) -> tuple[int, int]:
        """Bytes from window to window of the image, down and across."""
        stride_y, stride_x = self._window.stride
        return stride_y * self._image.row_pitch, stride_x * self._image.pixel_pitch

    def write(self, positive: bool) -> PoolProgram:
        """The program and its places."""
        self._maps.add(
            (self._image.address, *self._window_steps),
            (self._maxima.address, *self._window_steps),
            taps_y=self._window.kernel[0],
            taps_x=self._window.kernel[1],
            tap_step_y=self._image.row_pitch,
            tap_step_x=self._image.pixel_pitch,
            take_maximum=1,
            **self._codes,
        )
        codes = np.arange(-128, 128)
        compared = np.where((codes <= 0) & positive, _BELOW_ALL, 1 - codes)
        self._maps.load_table(-codes, compared)
        taps = lattices(self._window)
        for number, tap in enumerate(taps):
            self._add_mask(number, tap, last=number == len(taps) - 1)
        places = self._image, self._maxima, self._masks
        return PoolProgram(self._maps.program(), *places, self._end)

    def _add_mask(self, number: int, tap: Lattice, *, last: bool) -> None:
        """The masks of a tap."""
        first = tap.within(self._image, self._view).address
        mask = self._masks.address + first - self._image.address, *self._window_steps
        self._compare(first, mask if number == 0 else self._equal)
        if number == 0:
            if not last:
                self._compare(first, self._found)
            return
        apart = self._equal[0] - self._found[0]
        self._maps.add(self._found, mask, use_table=_NEGATED, tap_step_x=apart, **self._flags)
        if not last:
            self._maps.add(self._found, self._found, tap_step_x=apart, **self._flags)

    def _compare(self, first: int, result: Steps) -> None:
        """1 where pixels are the maximum; the first one's address is given."""
        self._maps.add(
            (first, *self._window_steps),
            result,
            use_table=_COMPARED,
            tap_step_x=self._maxima.address - first,
            **self._flags,
        )
