"""Operators that repeat numbers: padding, and copies along axes."""

import math

import numpy as np

from ..files import MAXIMUM_ACTIVATION, MAXIMUM_RANK
from .moves import moved
from .operator import Operator
from .values import Activation, Coded, Codes, Constant, Real, Shape, Value, shape_of

_PADS = {"constant": "pad", "reflect": "mirror_pad", "edge": "edge_pad"}
"""Pad's modes, and the graph's operators."""


def pad(operator: Operator) -> Value:
    """Pad with a constant, the border or a reflection; to opset 10 its numbers are attributes."""
    operator.require_inputs(1, 4)
    mode = operator.text("mode", "constant")
    operator.require("mode", mode, tuple(_PADS))
    value = operator.value(0)
    shape = shape_of(value)
    rank = len(shape)
    pads = operator.integers("pads", ()) if operator.opset < 11 else operator.constant_integers(1)
    filler: float | int = operator.number("value", 0.0)
    if operator.has(2):
        array = operator.constant(2)
        if array.size != 1 or not np.isfinite(array).all():
            operator.reject(
                f"{operator.what(2)} must be one finite number, not {array.size} of shape"
                f" {array.shape}"
            )
        filler = array.reshape(-1)[0].item()
    axes = tuple(range(operator.lead, rank))
    if operator.has(3):
        axes = tuple(operator.axis(axis, rank) for axis in operator.constant_integers(3))
    if len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        operator.refuse(f"pads must be {2 * len(axes)} numbers of at least 0, not {pads}")
    padding = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        padding[axis] = (pads[place], pads[len(axes) + place])
    if padding[0] != (0, 0):
        operator.refuse(f"pads of axis 0, the batch, must be 0, not {padding[0]}")
    if mode == "reflect" and any(
        max(ends) >= size for ends, size in zip(padding, shape, strict=True)
    ):
        operator.reject(f"pads must be less than the sizes {shape} that are reflected, not {pads}")
    if mode == "constant" and isinstance(value, Real) and not value.linear:
        operator.refuse(f"{operator.what(0)} must be quantised")
    output = tuple(size + sum(ends) for size, ends in zip(shape, padding, strict=True))
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        tensor = builder.tensors[activation.tensor]
        code: float | int = filler if tensor.dtype == "float32" else int(filler)
        if mode != "constant":
            code = 0
        elif isinstance(value, Codes):
            code = int(filler) - (128 if value.dtype == "uint8" else 0)
            if filler != int(filler) or not -128 <= code <= 127:
                operator.refuse(f"the value must be a code of {value.dtype}, not {filler}")
        elif tensor.quantization is not None:
            if builder.arithmetic is not None and filler:
                operator.refuse(f"the value must be 0 between logarithmic codes, not {filler}")
            scale, zero_point = tensor.quantization.scale[0], tensor.quantization.zero_point[0]
            exact = np.float32(filler) / np.float32(scale) + zero_point
            code = int(np.rint(exact))
            if code != exact or not -128 <= code <= 127:
                operator.refuse(f"the value {filler} must have a code of scale {scale:g}")
        picture = activation.layout == "picture" and rank == 4
        source = activation if picture else builder.natural(activation)
        own = [padding[axis] for axis in (0, 2, 3, 1)] if picture else padding
        laid = tuple(
            size + sum(ends)
            for size, ends in zip(builder.tensors[source.tensor].shape, own, strict=True)
        )
        made = builder.like(source.tensor, name, laid)
        attributes: dict[str, object] = {"padding": tuple(own)}
        attributes |= {"value": code} if mode == "constant" else {"mode": mode}
        builder.node(operator.name, _PADS[mode], (source.tensor,), made, attributes)
        return Activation(made, output, "picture" if picture else "natural")

    return moved(operator, value, move, output)


def expand(operator: Operator) -> Value:
    """Expand to a constant shape."""
    operator.require_inputs(2, 2)
    value, wanted = operator.value(0), operator.constant_integers(1)
    shape = shape_of(value)
    own = shape[operator.lead :]
    batch = operator.builder.batch
    if len(wanted) > MAXIMUM_RANK:
        operator.refuse(f"the shape must have at most {MAXIMUM_RANK} axes, not {len(wanted)}")
    if not operator.lead and len(wanted) >= len(own) and wanted[0] in (1, batch):
        wanted = (1, *wanted[1:])
    try:
        output = (1,) * operator.lead + np.broadcast_shapes(own, wanted)
    except ValueError:
        operator.reject(f"a shape of {own} must broadcast to {wanted}")
    if len(output) != len(shape) and not operator.lead or output[0] != 1:
        operator.refuse(f"the batch must stay in front, and {wanted} would add to it")
    return _copied(operator, value, "expand", output, {})


def tile(operator: Operator) -> Value:
    """Tile by constant numbers."""
    operator.require_inputs(2, 2)
    value, times = operator.value(0), operator.constant_integers(1)
    shape = shape_of(value)
    if len(times) != len(shape) - operator.lead or min(times, default=1) < 1:
        operator.refuse(f"repeats must be {len(shape) - operator.lead} numbers, not {times}")
    times = (*(1,) * operator.lead, *times)
    if times[0] != 1:
        operator.refuse(f"the batch must not be repeated, and is {times[0]} times")
    output = tuple(size * count for size, count in zip(shape, times, strict=True))
    return _copied(operator, value, "tile", output, {"repeats": times})


def _copied(
    operator: Operator, value: Value, kind: str, output: Shape, attributes: dict[str, object]
) -> Value:
    if isinstance(value, Constant | Coded):
        operator.refuse(f"{operator.what(0)} must be computed, and is a constant")
    if math.prod(output) > MAXIMUM_ACTIVATION:
        operator.reject(f"the result must have at most {MAXIMUM_ACTIVATION} elements, not {output}")
    if output == shape_of(value):
        return value
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        source = builder.natural(activation)
        made = builder.like(source.tensor, name, output)
        builder.node(operator.name, kind, (source.tensor,), made, attributes)
        return Activation(made, output)

    return moved(operator, value, move, output)
