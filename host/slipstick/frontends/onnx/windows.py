"""Windows that slide over pictures: their geometry out of ONNX's attributes."""

import math
from dataclasses import dataclass
from typing import Any

from ..files import MAXIMUM_ACTIVATION
from ..tflite.windows import MAXIMUM_STEP
from .operator import Operator
from .values import Shape


@dataclass(frozen=True)
class Windows:
    """Two dimensions each; a missing height is 1.

    Parameters
    ----------
    kernel, stride, dilation : (y, x)
    padding : (top, bottom, left, right)
        With what the last windows need, where their number was rounded up.
    declared : (top, bottom, left, right)
        What the file asks for.
    sizes : tuple of int
        Of the output, as many as the file has.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    declared: tuple[int, int, int, int]
    sizes: Shape

    def attributes(self) -> dict[str, Any]:
        """Those that convolutions and pools share."""
        return {"stride": self.stride, "padding": self.padding, "activation": "none"}


def windows(operator: Operator, shape: Shape, kernel: Shape | None) -> Windows:
    """The windows of a node over an input.

    Parameters
    ----------
    operator : Operator
    shape : tuple of int
        The input's, N x C x sizes.
    kernel : tuple of int or None
        As the weights have it; None: the attribute says it.
    """
    sizes = shape[2:]
    rank = len(sizes)
    if rank not in (1, 2):
        operator.refuse(f"the input must have 3 or 4 dimensions, not shape {shape}")
    told = operator.integers("kernel_shape", kernel)
    if kernel is not None and told != kernel:
        operator.reject(f"kernel_shape must be that of the weights, {kernel}, not {told}")
    steps = []
    for name, values in (
        ("kernel_shape", told),
        ("strides", operator.integers("strides", (1,) * rank)),
        ("dilations", operator.integers("dilations", (1,) * rank)),
    ):
        if len(values) != rank or not all(1 <= value <= MAXIMUM_STEP for value in values):
            operator.refuse(f"{name} must be {rank} numbers of 1..{MAXIMUM_STEP}, not {values}")
        steps.append(values)
    extents = tuple((size - 1) * step + 1 for size, step in zip(steps[0], steps[2], strict=True))
    pads = _pads(operator, sizes, extents, steps[1])
    up = operator.integer("ceil_mode", 0)
    ends, results = [], []
    for axis, (size, extent, step) in enumerate(zip(sizes, extents, steps[1], strict=True)):
        before, after = pads[axis], pads[rank + axis]
        room = size + before + after - extent
        if room < 0:
            operator.reject(
                f"a window of {extent} must fit into {size} and padding {before, after}"
            )
        count = (-(-room // step) if up else room // step) + 1
        # a window that would start behind the input does not count
        if up and (count - 1) * step >= size + before:
            count -= 1
        results.append(count)
        ends.append(max(after, (count - 1) * step + extent - size - before))
    padded = [a + b + c for a, b, c in zip(sizes, pads, ends, strict=False)]
    if shape[1] * math.prod(padded) > MAXIMUM_ACTIVATION:
        operator.refuse(f"the padded input must have at most {MAXIMUM_ACTIVATION} elements")
    lows, highs = _two(pads[:rank], 0), _two(tuple(ends), 0)
    declared = _two(pads[rank:], 0)
    return Windows(
        _two(steps[0], 1),
        _two(steps[1], 1),
        _two(steps[2], 1),
        (lows[0], highs[0], lows[1], highs[1]),
        (lows[0], declared[0], lows[1], declared[1]),
        tuple(results),
    )


def _two(values: Shape, missing: int) -> tuple[int, int]:
    return (values[0], values[1]) if len(values) == 2 else (missing, values[0])


def _pads(operator: Operator, sizes: Shape, extents: Shape, strides: Shape) -> Shape:
    """All paddings before, then all behind."""
    rank = len(sizes)
    automatic = operator.text("auto_pad", "NOTSET")
    operator.require("auto_pad", automatic, ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if automatic == "NOTSET":
        pads = operator.integers("pads", (0,) * (2 * rank))
        if len(pads) != 2 * rank or not all(0 <= value <= MAXIMUM_STEP for value in pads):
            operator.refuse(f"pads must be {2 * rank} numbers of 0..{MAXIMUM_STEP}, not {pads}")
        return pads
    if automatic == "VALID":
        return (0,) * (2 * rank)
    small, large = [], []
    for size, extent, step in zip(sizes, extents, strides, strict=True):
        total = max((-(-size // step) - 1) * step + extent - size, 0)
        small.append(total // 2)
        large.append(total - total // 2)
    return (*small, *large) if automatic == "SAME_UPPER" else (*large, *small)
