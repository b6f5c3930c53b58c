"""Operators that take parts of a tensor, enlarge it, or look for its largest number."""

from collections.abc import Callable

import numpy as np

from ...graph import Quantization
from ...kernels.tflite.scaling import CODES
from .builder import per_tensor
from .functions import require_monotone
from .moves import Move, moved
from .operator import Operator
from .pools import PICTURE_AXES
from .quantization import SHIFT, linear
from .reductions import reduced_axes, reduced_shape
from .values import Activation, Coded, Codes, Constant, Float, Real, Value, shape_of

Span = tuple[int, int, int]
"""Start, step and size along an axis."""


_COLUMNS_FIRST = {"depth_to_space": "pixel_shuffle", "space_to_depth": "pixel_unshuffle"}


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
    batch = operator.builder.batch
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not axis and len(range(batch)[start:end:step]) < batch:
            operator.refuse(f"axis 0, a batch of {batch}, must stay whole, not {start}:{end}")
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
    """Gather; of one place, or of places that are equally far apart, it is a slice."""
    operator.require_inputs(2, 2)
    places = operator.value(1)
    if isinstance(operator.value(0), Constant | Coded) and isinstance(places, Float):
        return _looked_up(operator, places)
    shape = shape_of(operator.value(0))
    axis = operator.axis(operator.integer("axis", 0), len(shape))
    value = _require_computed(operator, (axis,))
    indices = operator.constant(1)
    size = shape[axis]
    if indices.dtype.kind not in "iu" or not indices.size:
        operator.refuse(f"indices must be whole numbers, not {indices.dtype} of {indices.shape}")
    if not ((indices >= -size) & (indices < size)).all():
        operator.reject(f"indices must be within {-size}..{size - 1}")
    places = np.where(indices < 0, indices + size, indices).astype(np.int64)
    cut = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    steps = set(np.diff(places.ravel()).tolist()) or {1}
    if indices.ndim < 2 and len(steps) == 1 and 0 not in steps:
        span = (int(places.ravel()[0]), steps.pop(), places.size)
        dropped = () if indices.ndim else (axis,)
        return moved(operator, value, _cut(operator, {axis: span}, dropped), cut)
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        source = builder.natural(activation)
        made = builder.like(source.tensor, name, cut)
        listed = builder.constant(f"{operator.name}/indices", places)
        builder.node(operator.name, "gather", (source.tensor, listed), made, {"axis": axis})
        return Activation(made, cut)

    return moved(operator, value, move, cut)


def _looked_up(operator: Operator, places: Float) -> Value:
    """Rows of a constant table, as those that words are turned into."""
    builder, table = operator.builder, operator.value(0)
    source = builder.natural(places.activation)
    described = builder.tensors[source.tensor]
    if described.dtype not in ("int32", "int64"):
        operator.refuse(f"{operator.what(1)} must be whole numbers, not {described.dtype}")
    if len(shape_of(table)) < 1 or operator.integer("axis", 0):
        operator.refuse(f"axis of a constant must be 0, not {operator.integer('axis', 0)}")
    output = (*source.shape, *shape_of(table)[1:])
    attributes = {"axis": 0}

    def read(name: str, array: np.ndarray, quantization: Quantization | None) -> Activation:
        listed = builder.constant(f"{operator.name}/table", array, quantization)
        made = builder.tensor(name, output, array.dtype.name, quantization)
        builder.node(operator.name, "gather", (listed, source.tensor), made, attributes)
        return Activation(made, output)

    if isinstance(table, Constant) and table.array.dtype.name in CODES:
        dtype = table.array.dtype.name
        codes = (table.array.astype(np.int16) - SHIFT[dtype]).astype(np.int8)
        made = read(operator.output, codes, None)
        builder.note(operator.output, made, dtype)
        return Codes(made, dtype)
    if isinstance(table, Coded) and table.axis is None and table.codes.dtype == np.int8:
        quantization = per_tensor(float(table.scale[0]), int(table.zero_point[0]))
        codes = read(f"{operator.output}/codes", table.codes, quantization)
        return linear(operator.builder, codes, quantization)
    assert isinstance(table, Constant | Coded)
    made = read(operator.output, table.array.astype(np.float32), None)
    builder.note(operator.output, made, "float32")
    return Float(made)


def blocks(kind: str) -> Callable[[Operator], Value]:
    """DepthToSpace or SpaceToDepth, with depth or column, row, depth innermost."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
        mode = operator.text("mode", "DCR")
        operator.require("mode", mode, ("DCR", "CRD"))
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
            own = kind if mode == "DCR" else _COLUMNS_FIRST[kind]
            builder.node(operator.name, own, (source.tensor,), made, {"block": block})
            return Activation(made, output, "picture")

        return moved(operator, value, move, output)

    return handle


def extreme_of_axes(kind: str) -> Callable[[Operator], Value]:
    """ReduceMax, ReduceMin, GlobalMaxPool."""

    def handle(operator: Operator) -> Value:
        value = operator.value(0)
        if isinstance(value, Real):
            require_monotone(operator, value)
        shape = shape_of(value)
        axes, keep = reduced_axes(operator)
        if operator.operator == "GlobalMaxPool":
            axes = tuple(range(2, len(shape)))
        if not axes:
            return value
        output = reduced_shape(shape, axes, keep=keep)
        builder = operator.builder

        def move(activation: Activation, name: str) -> Activation:
            source = builder.natural(activation)
            made = builder.like(source.tensor, name, output)
            attributes = {"axes": axes, "keep_dimensions": keep}
            builder.node(operator.name, kind, (source.tensor,), made, attributes)
            return Activation(made, output)

        return moved(operator, value, move, output)

    return handle


def arg_extreme(kind: str) -> Callable[[Operator], Value]:
    """ArgMax or ArgMin: the place of the first extreme, int64."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
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
        last = bool(operator.integer("select_last_index", 0))
        attributes = {"axis": axis, **({"last": True} if last else {})}
        builder.node(operator.name, kind, (source.tensor,), made, attributes)
        builder.note(operator.output, Activation(made, output), "int64")
        return Float(Activation(made, output))

    return handle
