"""Operators that take parts of a tensor, enlarge it, or look for its largest number."""

import math
from collections.abc import Callable

import numpy as np

from ..kernels.resize import nearest_places
from .onnx_elementwise import require_monotone
from .onnx_moves import Move, moved
from .onnx_operator import Operator
from .onnx_pools import PICTURE_AXES
from .onnx_values import Activation, Coded, Codes, Constant, Float, Real, Shape, Value, shape_of

Span = tuple[int, int, int]
"""Start, step and size along an axis."""


def _cut(operator: Operator, spans: dict[int, Span], dropped: tuple[int, ...] = ()) -> Move:
    """A slice along some of ONNX's axes, without axes of one that are dropped."""
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        rank = len(activation.shape)
        picture = activation.layout == "picture" and rank == 4
        source = activation if picture else builder.natural(activation)
        sizes = list(builder.tensors[source.tensor].shape)
        starts, steps = [0] * rank, [1] * rank
        for axis, span in spans.items():
            own = PICTURE_AXES[4][axis] if picture else axis
            starts[own], steps[own], sizes[own] = span
        cut = f"{name}/cut" if dropped else name
        made = builder.like(source.tensor, cut, tuple(sizes))
        attributes = {
            "starts": tuple(starts),
            "steps": tuple(steps),
            "sizes": tuple(sizes),
            "shape": tuple(sizes),
        }
        builder.node(operator.name, "slice", (source.tensor,), made, attributes)
        shape = tuple(
            spans[axis][2] if axis in spans else size for axis, size in enumerate(activation.shape)
        )
        left = Activation(made, shape, "picture" if picture else "natural")
        if not dropped:
            return left
        short = tuple(size for axis, size in enumerate(shape) if axis not in dropped)
        return builder.reshaped(left, name, short, f"{operator.name}/shape")

    return move


def _require_computed(operator: Operator, axes: tuple[int, ...]) -> Value:
    value = operator.value(0)
    if isinstance(value, Constant | Coded):
        operator.refuse(f"{operator.what(0)} must be computed, and is a constant")
    if 0 in axes:
        operator.refuse("axes must leave out 0, the batch")
    return value


def take_slice(operator: Operator) -> Value:
    """Slice with constant bounds; to opset 9 these were attributes."""
    operator.require_inputs(3, 5)
    shape = shape_of(operator.value(0))
    starts, ends = operator.constant_integers(1), operator.constant_integers(2)
    axes = operator.constant_integers(3) if operator.has(3) else tuple(range(len(starts)))
    axes = tuple(operator.axis(axis, len(shape)) for axis in axes)
    steps = operator.constant_integers(4) if operator.has(4) else (1,) * len(starts)
    if len({len(starts), len(ends), len(axes), len(steps)}) > 1 or 0 in steps:
        operator.reject("starts, ends, axes and steps must be as many, and steps not 0")
    spans = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places = range(shape[axis])[start:end:step]
        if not places:
            operator.refuse(f"the slice {start}:{end}:{step} of axis {axis} must not be empty")
        if len(places) < shape[axis] or step < 0:
            spans[axis] = (places[0], places.step, len(places))
    value = _require_computed(operator, tuple(spans))
    cut = tuple(spans[axis][2] if axis in spans else size for axis, size in enumerate(shape))
    return moved(operator, value, _cut(operator, spans), cut) if spans else value


def split(operator: Operator) -> list[Value]:
    """Split; to opset 12 the sizes are an attribute."""
    operator.require_inputs(1, 2)
    shape = shape_of(operator.value(0))
    axis = operator.axis(operator.integer("axis", 0), len(shape))
    value = _require_computed(operator, (axis,))
    count = len(operator.outputs)
    sizes = operator.constant_integers(1) if operator.has(1) else operator.integers("split", ())
    if not sizes:
        whole = -(-shape[axis] // count)
        sizes = tuple(min(whole, shape[axis] - whole * number) for number in range(count))
    if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes) < 1:
        operator.reject(f"{count} sizes of axis {axis} must add up to {shape[axis]}, not {sizes}")
    parts, start = [], 0
    for name, size in zip(operator.outputs, sizes, strict=True):
        move = _cut(operator, {axis: (start, 1, size)})
        cut = (*shape[:axis], size, *shape[axis + 1 :])
        parts.append(moved(operator, value, move, cut, name))
        start += size
    return parts


def gather(operator: Operator) -> Value:
    """Gather of one place, or of places that are equally far apart."""
    operator.require_inputs(2, 2)
    shape = shape_of(operator.value(0))
    axis = operator.axis(operator.integer("axis", 0), len(shape))
    value = _require_computed(operator, (axis,))
    indices = operator.constant(1)
    size = shape[axis]
    if indices.dtype.kind not in "iu" or indices.ndim > 1 or not indices.size:
        operator.refuse(f"indices must be a list of whole numbers, not of shape {indices.shape}")
    places = [int(place) + size * (place < 0) for place in indices.ravel()]
    if not all(0 <= place < size for place in places):
        operator.reject(f"indices must be within {-size}..{size - 1}")
    steps = {b - a for a, b in zip(places, places[1:], strict=False)} or {1}
    if len(steps) > 1 or 0 in steps:
        operator.refuse("indices must be equally far apart")
    span = (places[0], steps.pop(), len(places))
    cut = [*shape[:axis], len(places), *shape[axis + 1 :]]
    dropped = () if indices.ndim else (axis,)
    if dropped:
        del cut[axis]
    return moved(operator, value, _cut(operator, {axis: span}, dropped), tuple(cut))


def blocks(kind: str) -> Callable[[Operator], Value]:
    """DepthToSpace in the order of columns, or SpaceToDepth."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
        operator.require("mode", operator.text("mode", "DCR"), ("DCR",))
        value = operator.value(0)
        shape = shape_of(value)
        block = operator.integer("blocksize", 0)
        deep = kind == "depth_to_space"
        if len(shape) != 4 or not 1 <= block <= 64:
            operator.refuse(f"blocksize of 1 to 64 and 4 dimensions, not {block} and {shape}")
        n, channels, height, width = shape
        square = block * block
        if deep and channels % square or not deep and (height % block or width % block):
            operator.reject(f"blocks of {block} must divide {shape}")
        output = (
            (n, channels // square, height * block, width * block)
            if deep
            else (n, channels * square, height // block, width // block)
        )
        builder = operator.builder

        def move(activation: Activation, name: str) -> Activation:
            source = builder.picture(activation)
            laid = (n, *output[2:], output[1])
            made = builder.like(source.tensor, name, laid)
            builder.node(operator.name, kind, (source.tensor,), made, {"block": block})
            return Activation(made, output, "picture")

        return moved(operator, value, move, output)

    return handle


def resize(operator: Operator) -> Value:
    """Resize of height and width by repeating pixels."""
    operator.require_inputs(1, 4)
    operator.require("mode", operator.text("mode", "nearest"), ("nearest",))
    value = operator.value(0)
    shape = shape_of(value)
    if len(shape) != 4:
        operator.refuse(f"the input must have 4 dimensions, not shape {shape}")
    scales_at, sizes_at = (2, 3) if operator.opset >= 11 else (1, 9)
    if operator.has(sizes_at):
        sizes = operator.constant_integers(sizes_at)
        factors = [size / own for size, own in zip(sizes, shape, strict=False)]
    else:
        factors = [float(item) for item in operator.constant(scales_at).reshape(-1)]
        good = len(factors) == 4 and all(0 < factor <= 1 << 12 for factor in factors)
        if not good:
            operator.refuse(f"scales must be 4 positive numbers, not {factors[:8]}")
        sizes = tuple(math.floor(own * item) for own, item in zip(shape, factors, strict=True))
    if len(sizes) != 4 or tuple(sizes[:2]) != shape[:2] or min(sizes) < 1:
        operator.refuse(f"sizes must keep batch and channels of {shape}, not {sizes}")
    mode = operator.text(
        "coordinate_transformation_mode", "half_pixel" if operator.opset >= 11 else "asymmetric"
    )
    operator.require(
        "coordinate_transformation_mode", mode, ("half_pixel", "asymmetric", "align_corners")
    )
    rounding = operator.text(
        "nearest_mode", "round_prefer_floor" if operator.opset >= 11 else "floor"
    )
    operator.require("nearest_mode", rounding, tuple(_ROUNDINGS))
    places = [_places(shape[axis], sizes[axis], factors[axis], mode, rounding) for axis in (2, 3)]
    options = _same_places(places, shape[2:], (sizes[2], sizes[3]))
    if options is None:
        operator.refuse(f"nearest_mode {rounding} must be another for {mode} and {sizes}")
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        source = builder.picture(activation)
        made = builder.like(source.tensor, name, (sizes[0], *sizes[2:], sizes[1]))
        attributes = {"size": tuple(sizes[2:]), **options}
        builder.node(operator.name, "resize_nearest", (source.tensor,), made, attributes)
        return Activation(made, tuple(sizes), "picture")

    return moved(operator, value, move, tuple(sizes))


_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _places(size: int, wanted: int, factor: float, mode: str, rounding: str) -> np.ndarray:
    """The input position of each output position."""
    index = np.arange(wanted)
    if mode == "half_pixel":
        exact = (index + 0.5) / factor - 0.5
    elif mode == "asymmetric":
        exact = index / factor
    else:
        exact = index * (size - 1) / max(wanted - 1, 1)
    return np.clip(_ROUNDINGS[rounding](exact), 0, size - 1).astype(np.int64)


def _same_places(
    places: list[np.ndarray], shape: Shape, sizes: tuple[int, int]
) -> dict[str, bool] | None:
    """The graph's options that give these positions."""
    for corners, half in ((False, False), (False, True), (True, False), (True, True)):
        options = {"align_corners": corners, "half_pixel_centers": half}
        found = [nearest_places(own, size, options) for own, size in zip(shape, sizes, strict=True)]
        if all(np.array_equal(a, b) for a, b in zip(places, found, strict=True)):
            return options
    return None


def extreme_of_axes(kind: str) -> Callable[[Operator], Value]:
    """ReduceMax, ReduceMin, GlobalMaxPool."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 2)
        value = operator.value(0)
        if isinstance(value, Real):
            require_monotone(operator, value)
        shape = shape_of(value)
        rank = len(shape)
        listed = operator.integers("axes", ())
        if operator.has(1):
            listed = operator.constant_integers(1)
        if operator.operator == "GlobalMaxPool":
            listed = tuple(range(2, rank))
        axes = tuple(sorted({operator.axis(axis, rank) for axis in listed or range(rank)}))
        if 0 in axes:
            operator.refuse(f"axes must leave out 0, the batch, not {axes}")
        keep = bool(operator.integer("keepdims", 1))
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        short = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        builder = operator.builder

        def move(activation: Activation, name: str) -> Activation:
            source = builder.natural(activation)
            made = builder.like(source.tensor, name, kept if keep else short)
            attributes = {"axes": axes, "keep_dimensions": keep}
            builder.node(operator.name, kind, (source.tensor,), made, attributes)
            return Activation(made, kept if keep else short)

        return moved(operator, value, move, kept if keep else short)

    return handle


def arg_extreme(kind: str) -> Callable[[Operator], Value]:
    """ArgMax or ArgMin: the place of the first extreme, int64."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
        operator.require("select_last_index", operator.integer("select_last_index", 0), (0,))
        value = operator.value(0)
        shape = shape_of(value)
        axis = operator.axis(operator.integer("axis", 0), len(shape))
        _require_computed(operator, (axis,))
        if isinstance(value, Real):
            require_monotone(operator, value)
        builder = operator.builder
        known = isinstance(value, Codes)
        source = builder.natural(value.activation if known else builder.real(value))
        keep = bool(operator.integer("keepdims", 1))
        output = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        made = builder.tensor(operator.output, output, "int64")
        builder.node(operator.name, kind, (source.tensor,), made, {"axis": axis})
        builder.note(operator.output, Activation(made, output), "int64")
        return Float(Activation(made, output))

    return handle
