"""Random depthwise CONVOLVE instructions."""

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import KEPT_COLUMNS

from ...golden.arithmetic import operand_range
from .random_image import Image
from .random_numbers import Draw, drawing
from .random_windows import LARGEST_OUTPUT

_FIXED = dict.fromkeys(("diagonal", "align_tap", "align_row", "accumulate", "pairs"), 0)


def random_depthwise(
    generator: np.random.Generator, configuration: Configuration
) -> dict[str, int] | None:
    """Field values, the address of the weights left open; None if what was drawn does not fit.

    Its channels may be a tile of several; a kernel row is an odd number of input rows further.
    """
    draw, columns = drawing(generator), configuration.columns
    padding = configuration.kept_padding
    skip, dilation_y, stride_x = draw(1, 3), 2 * draw(0, 1) + 1, draw(1, 3)
    kept_rows = int(skip == 2 and draw(0, 3) > 0)
    height, width, channel_tiles = draw(1, 9), draw(1, 9), draw(1, 4)
    pixel_pitch = channel_tiles * columns
    row_pitch = width * pixel_pitch
    backwards = kept_rows and draw(0, 1)
    # the next row of the kernel lies C bytes further, modulo B
    wanted = columns * pow(-dilation_y if backwards else dilation_y, -1, configuration.banks)
    row_pitch += (wanted - row_pitch) % configuration.banks
    out_rows, groups = draw(1, 7), draw(1, 8)
    stride_y = dilation_y if skip == 1 and out_rows > 1 else draw(1, 3)
    top, left = draw(0, 3), draw(0, 3)
    base = draw(0, 1024)
    end = base + height * row_pitch
    if end > configuration.activation_bytes or out_rows * groups > LARGEST_OUTPUT:
        return None
    base += draw(0, channel_tiles - 1) * columns
    # two halves of the image at once
    halves = columns // 2 % configuration.weight_rows == 0 and not draw(0, 2)
    apart = columns // 2 + draw(0, 3) * configuration.banks if halves else 0
    if end + apart > configuration.activation_bytes:
        return None
    joined = int(skip == 1 and not halves and draw(0, 2) > 0)
    if joined:
        left = max(left, 1)
        groups = max(groups, -(-(width + left) // stride_x) - 1)
    if out_rows * groups > LARGEST_OUTPUT or (kept_rows and (groups - 1) * skip + 3 > KEPT_COLUMNS):
        return None
    place = {"base": base, "height": height, "width": width, "left": left}
    if kept_rows:
        pitches = (-row_pitch if backwards else row_pitch), pixel_pitch
        image, rows = _kept(draw, place, dilation_y, pitches)
    else:
        image = Image(**place, row_pitch=row_pitch, pixel_pitch=pixel_pitch, top=top)
        rows = _stepping(dilation_y, row_pitch, stride_y)
    return (
        _FIXED
        | image.fields(stride_x)
        | rows
        | {
            "opcode": 1,
            "reduction_tiles": 1,
            "channels": columns // 2 if halves else columns,
            "kernel_x": 1 + halves,
            "tap_step_x": apart,
            "dilation_x": stride_x * draw(0, 4) if halves else 0,
            "dilation_y": dilation_y,
            "rows": out_rows,
            "groups": groups,
            "padding_value": padding if kept_rows else draw(*operand_range(configuration)),
            "depthwise": 1,
            "skip": skip,
            "kept_rows": kept_rows,
            "joined": joined,
            "whole_words": draw(0, 1),
        }
    )


def _stepping(dilation_y: int, row_pitch: int, stride_y: int) -> dict[str, int]:
    """The fields that lead from row to row."""
    return {
        "tap_step_y": dilation_y * row_pitch,
        "row_step": stride_y * row_pitch,
        "stride_y": stride_y,
    }


def _kept(
    draw: Draw, place: dict[str, int], dilation_y: int, pitches: tuple[int, int]
) -> tuple[Image, dict[str, int]]:
    """With ``kept_rows``: the image, upside down if its row pitch is negative, and the fields of
    its rows."""
    row_pitch, pixel_pitch = pitches
    # the row above the first one that is read is padding
    top = draw(1 - dilation_y, 2)
    if row_pitch < 0:
        place = place | {"base": place["base"] - (place["height"] - 1) * row_pitch}
    rows = _stepping(dilation_y, row_pitch, 2 * dilation_y)
    rows["row_step"] %= 1 << 24
    return Image(**place, row_pitch=row_pitch, pixel_pitch=pixel_pitch, top=top), rows
