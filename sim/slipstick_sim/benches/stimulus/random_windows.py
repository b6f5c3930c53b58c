"""Random CONVOLVE instructions over windows: all but the depthwise ones."""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration

from ...golden.arithmetic import operand_range
from .random_image import Image
from .random_numbers import Draw, drawing

_LONGEST_PITCH = 40
"""Longest pitch of an input row, in words of the activation memory."""

LARGEST_OUTPUT = 64
"""Groups of pixels: what the smallest accumulators hold."""


@dataclass(frozen=True, kw_only=True)
class _Kernel:
    """A kernel: its taps, and their place in tiles."""

    diagonal: bool
    channels: int
    kernel_y: int
    kernel_x: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    align_tap: int

    @property
    def run(self) -> int:
        """Lanes of a kernel row."""
        return self.kernel_x * self.channels

    @property
    def lanes(self) -> int:
        """Counts the lanes of the whole reduction."""
        return self.kernel_y * self.run


def random_windows(
    generator: np.random.Generator, configuration: Configuration
) -> dict[str, int] | None:
    """Field values, the address of the weights left open; None if what was drawn does not fit."""
    draw, rows = drawing(generator), configuration.rows
    kernel = _draw_kernel(draw, configuration)
    height, width = draw(1, 9), draw(1, 9)
    row_pitch = _row_pitch(kernel, width, configuration)
    pairs = configuration.takes_pairs and not kernel.diagonal and kernel.lanes % rows == rows // 2
    if row_pitch is None or (kernel.lanes % rows and not pairs):
        return None
    top, left = draw(0, kernel.kernel_y), draw(0, kernel.kernel_x)
    out_rows, groups = (1, 1) if draw(0, 2) == 0 else (draw(1, 6), draw(1, 6))
    if pairs:
        groups = 2 * draw(1, 3)
        if kernel.stride_x * kernel.channels % configuration.banks != rows // 2:
            return None
    base = draw(0, 1024) // rows * rows
    outside = base + height * row_pitch > configuration.activation_bytes
    if outside or out_rows * groups > LARGEST_OUTPUT:
        return None
    image = Image(
        base=base,
        height=height,
        width=width,
        row_pitch=row_pitch,
        pixel_pitch=kernel.channels,
        top=top,
        left=left,
    )
    shape = {"rows": out_rows, "groups": groups, "pairs": int(pairs), "depthwise": 0}
    reduction = _reduction(kernel, image, configuration)
    return reduction | shape | _flags(draw, kernel, pairs, configuration)


def _draw_kernel(draw: Draw, configuration: Configuration) -> _Kernel:
    rows = configuration.rows
    kernel_y, kernel_x, stride_y, stride_x = draw(1, 4), draw(1, 4), draw(1, 3), draw(1, 3)
    diagonal = draw(0, 4) == 0
    dilation_y = draw(1, 2)
    channels = min(rows, configuration.columns) if diagonal else draw(1, 2 * rows)
    if configuration.aligned:
        channels = -(-channels // rows) * rows
    elif configuration.takes_pairs and not diagonal and draw(0, 2) == 0:
        # what suits pairs
        channels, kernel_y, kernel_x, stride_x = rows // 2, 2 * draw(0, 1) + 1, 3, 1
    # a diagonal of more rows than columns has several taps a tile
    whole_taps = channels % rows == 0
    return _Kernel(
        diagonal=diagonal,
        channels=channels,
        kernel_y=kernel_y,
        kernel_x=kernel_x,
        stride_y=stride_y,
        stride_x=stride_x,
        dilation_y=dilation_y,
        align_tap=int(whole_taps and (diagonal or draw(0, 1))),
        dilation_x=draw(1, 2) if whole_taps else 1,
    )


def _row_pitch(kernel: _Kernel, width: int, configuration: Configuration) -> int | None:
    """Bytes from an input row to the next, so that a kernel's rows join; None if they are many."""
    rows = configuration.rows
    pitch = width * kernel.channels
    joins = not kernel.align_tap and kernel.kernel_y > 1
    while joins and (kernel.dilation_y * pitch - kernel.run) % configuration.banks:
        pitch += rows if configuration.aligned else 1
        if pitch > _LONGEST_PITCH * rows:
            return None
    return pitch


def _reduction(kernel: _Kernel, image: Image, configuration: Configuration) -> dict[str, int]:
    """The fields that say which lanes are summed, and where they lie."""
    return image.fields(kernel.stride_x) | {
        "opcode": 1,
        "diagonal": int(kernel.diagonal),
        "reduction_tiles": -(-kernel.lanes // configuration.rows),
        "channels": kernel.channels,
        "kernel_x": kernel.kernel_x,
        "tap_step_x": kernel.dilation_x * image.pixel_pitch,
        "tap_step_y": kernel.dilation_y * image.row_pitch,
        "dilation_x": kernel.dilation_x,
        "dilation_y": kernel.dilation_y,
        "stride_y": kernel.stride_y,
        "row_step": kernel.stride_y * image.row_pitch,
    }


def _flags(
    draw: Draw, kernel: _Kernel, pairs: bool, configuration: Configuration
) -> dict[str, int]:
    """The fields that may be had or not."""
    whole_rows = kernel.run % configuration.rows == 0
    ninth = configuration.ninth_bits and configuration.format.takes_parameter_codes
    ninth = ninth and not pairs and not kernel.diagonal
    return {
        "align_tap": 0 if pairs else kernel.align_tap,
        "align_row": int(not pairs and whole_rows and draw(0, 1)),
        "padding_value": draw(*operand_range(configuration)),
        "accumulate": 0 if pairs else draw(0, 1),
        "from_ninth": int(ninth and draw(0, 3) == 0),
        "whole_words": int(kernel.channels % configuration.weight_rows == 0 and draw(0, 1)),
    }
