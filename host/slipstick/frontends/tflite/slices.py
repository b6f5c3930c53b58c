"""TFLite operators that take parts of a tensor, each output a ``slice`` of its own."""

from collections.abc import Set

from ...graph import Tensor
from .operator import EITHER, INDICES, Operator
from .windows import Normalised

Part = tuple[int, int, int]
"""Start, step, size along one axis."""


def slice_(operator: Operator) -> Normalised:
    """SLICE."""
    operator.require_operands(3, 3)
    x = operator.activation(0, EITHER)
    shape = operator.shape(x)
    rank = len(shape)
    begins, sizes = operator.integers(1, rank, "begin"), operator.integers(2, rank, "size")
    parts: list[Part] = []
    for length, begin, size in zip(shape, begins, sizes, strict=True):
        taken = length - begin if size == -1 else size
        if begin < 0 or taken < 1 or begin + taken > length:
            operator.reject(f"begin {begins} and size {sizes} must lie within {shape}")
        parts.append((begin, 1, taken))
    return _slice(operator, x, parts)


def strided_slice(operator: Operator) -> Normalised:
    """STRIDED_SLICE."""
    operator.require_operands(4, 4)
    x = operator.activation(0, EITHER)
    for field in ("EllipsisMask", "NewAxisMask", "Offset"):
        if operator.options[field]:
            operator.refuse(f"{field} must be 0, not {int(operator.options[field])}")
    shape = operator.shape(x)
    rank = len(shape)
    count = operator.constant(1, INDICES)[1].size
    if count > rank:
        operator.reject(f"begin must hold at most {rank} numbers, not {count}")
    begins, ends, steps = (
        operator.integers(index, count, what)
        for index, what in ((1, "begin"), (2, "end"), (3, "strides"))
    )
    parts: list[Part] = []
    for axis, length in enumerate(shape):
        if axis >= count:
            parts.append((0, 1, length))
        else:
            parts.append(_part(operator, axis, length, (begins, ends, steps)))
    shrink = operator.options["ShrinkAxisMask"]
    return _slice(operator, x, parts, {axis for axis in range(count) if shrink >> axis & 1})


def _part(operator: Operator, axis: int, length: int, spans: tuple[tuple[int, ...], ...]) -> Part:
    """Returns the part of one axis that STRIDED_SLICE takes, by Python's own rules."""
    begins, ends, steps = spans
    bit, step = 1 << axis, steps[axis]
    if not step:
        operator.reject(f"strides must not be 0, and are {steps}")
    if operator.options["ShrinkAxisMask"] & bit:
        # one element, wherever the end lies
        if not -length <= begins[axis] < length:
            operator.reject(f"begin {begins} must lie within {length} along axis {axis}")
        return begins[axis] % length, 1, 1
    begin = None if operator.options["BeginMask"] & bit else begins[axis]
    end = None if operator.options["EndMask"] & bit else ends[axis]
    places = range(length)[slice(begin, end, step)]
    if not places:
        operator.refuse(f"begin {begins} to end {ends} must not be empty along axis {axis}")
    return places.start, step, len(places)


def split(operator: Operator) -> list[Normalised]:
    """SPLIT: as many equal parts as there are outputs."""
    operator.require_operands(2, 2)
    x = operator.activation(1, EITHER)
    axis = operator.axis(operator.integers(0, 1, "axis")[0], x)
    size, rest = divmod(x.shape[axis], len(operator.outputs))
    if rest:
        operator.reject(f"{len(operator.outputs)} outputs must divide {x.shape[axis]} evenly")
    return _parts(operator, x, axis, [size] * len(operator.outputs))


def split_v(operator: Operator) -> list[Normalised]:
    """SPLIT_V: parts of given sizes, one of which may be -1, the rest."""
    operator.require_operands(3, 3)
    x = operator.activation(0, EITHER)
    axis = operator.axis(operator.integers(2, 1, "axis")[0], x)
    listed = operator.integers(1, len(operator.outputs), "sizes")
    rest = x.shape[axis] - sum(size for size in listed if size != -1)
    sizes = [rest if size == -1 else size for size in listed]
    if listed.count(-1) > 1 or min(sizes) < 1 or sum(sizes) != x.shape[axis]:
        operator.reject(f"sizes must add up to {x.shape[axis]}, not {listed}")
    return _parts(operator, x, axis, sizes)


def unpack(operator: Operator) -> list[Normalised]:
    """UNPACK: one output for each place along an axis, without the axis."""
    operator.require_operands(1, 1)
    x = operator.activation(0, EITHER)
    axis = operator.axis(operator.options["Axis"], x)
    if x.shape[axis] != len(operator.outputs):
        operator.reject(f"outputs must be {x.shape[axis]}, not {len(operator.outputs)}")
    if operator.options["Num"] != len(operator.outputs):
        operator.reject(
            f"num must be that of the outputs, {len(operator.outputs)}, not"
            f" {operator.options['Num']}"
        )
    return _parts(operator, x, axis, [1] * len(operator.outputs), {axis})


def _parts(
    operator: Operator, x: Tensor, axis: int, sizes: list[int], dropped: Set[int] = frozenset()
) -> list[Normalised]:
    made, start = [], 0
    for number, size in enumerate(sizes):
        extra = x.name in operator.lifted
        parts: list[Part] = [(0, 1, length) for length in operator.shape(x)]
        parts[axis - extra] = (start, 1, size)
        gone = {place - extra for place in dropped}
        made.append(_slice(operator.writing(number), x, parts, gone))
        start += size
    return made


def _slice(
    operator: Operator, x: Tensor, parts: list[Part], dropped: Set[int] = frozenset()
) -> Normalised:
    """The node of one output; axes of one element in ``dropped`` are left out of its shape.

    Parts and axes are counted as the file does.
    """
    output = operator.require_output((x.dtype,))
    operator.require_same_quantization(x)
    if x.name not in operator.lifted and parts[0][::2] != (0, x.shape[0]):
        operator.refuse("axis 0, the batch, must be taken whole")
    operator.require_shape(tuple(part[2] for axis, part in enumerate(parts) if axis not in dropped))
    if x.name in operator.lifted:
        parts = [(0, 1, 1), *parts]
    starts, steps, sizes = (tuple(column) for column in zip(*parts, strict=True))
    attributes = {"starts": starts, "steps": steps, "sizes": sizes, "shape": output.shape}
    return "slice", (x.name,), attributes
