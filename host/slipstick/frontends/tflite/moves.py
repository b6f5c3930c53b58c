"""TFLite operators that move codes and change none: reshapes, borders, slices, resizes."""

import math

from ...graph import Tensor
from ..files import MAXIMUM_ACTIVATION, quoted
from .operator import EITHER, INDICES, Operator, single
from .windows import Normalised

_MIRRORS = ("reflect", "symmetric")


def reshape(operator: Operator) -> Normalised:
    """RESHAPE, SQUEEZE, EXPAND_DIMS."""
    operator.require_operands(1, 2)
    x, output = moved(operator), operator.output
    # the output's shape says it all; a second input only must not be computed
    if len(operator.inputs) > 1 and operator.inputs[1] is not None:
        operator.constant(1, INDICES)
    if math.prod(x.shape) != math.prod(output.shape):
        operator.reject(f"output must hold as much as {x.shape}, not {output.shape}")
    operator.require_same_quantization(x)
    return "reshape", (x.name,), {"shape": output.shape}


def moved(operator: Operator) -> Tensor:
    """The input of an operator that moves codes, or float32 numbers."""
    x = operator.activation(0, EITHER)
    operator.require_output((x.dtype,))
    return x


def pad(operator: Operator) -> Normalised:
    """PAD, PADV2."""
    operator.require_operands(2, 3)
    x, output = operator.activation(0), operator.require_output()
    padding = _borders(operator, x)
    value = single(output)[1]
    if len(operator.inputs) == 3:
        tensor, codes = operator.constant(2, ("int8",))
        if codes.size != 1:
            operator.reject(f"the padding value must be one code, not {tensor.shape}")
        value = int(codes.ravel()[0])
    return "pad", (x.name,), {"padding": padding, "value": value}


def mirror_pad(operator: Operator) -> Normalised:
    """MIRROR_PAD."""
    operator.require_operands(2, 2)
    x = operator.activation(0)
    operator.require_output()
    mode = operator.options["Mode"]
    if not 0 <= mode < len(_MIRRORS):
        operator.reject(f"mode must be 0 (reflect) or 1 (symmetric), not {mode}")
    padding = _borders(operator, x)
    for size, pair in zip(x.shape, padding, strict=True):
        most = size - (_MIRRORS[mode] == "reflect")
        if max(pair) > most:
            operator.reject(f"paddings that mirror {size} must be at most {most}, not {pair}")
    return "mirror_pad", (x.name,), {"padding": padding, "mode": _MIRRORS[mode]}


def _borders(operator: Operator, x: Tensor) -> tuple[tuple[int, int], ...]:
    """(before, after) of each axis, the batch's 0; checks the output."""
    operator.require_same_quantization(x)
    tensor, data = operator.constant(1, INDICES)
    extra = x.name in operator.lifted
    rank = len(x.shape) - extra
    if len(operator.shape(operator.output)) != rank:
        operator.reject(
            f"output must have the input's {rank} dimensions, not shape"
            f" {operator.shape(operator.output)}"
        )
    if data.shape != (rank, 2):
        operator.reject(f"paddings must have shape ({rank}, 2), not {tensor.shape}")
    padding = tuple((int(before), int(after)) for before, after in data)
    padding = ((0, 0),) * extra + padding
    if any(size < 0 for pair in padding for size in pair):
        operator.reject(f"paddings must be at least 0, not {padding}")
    if padding[0] != (0, 0):
        operator.refuse(f"paddings of axis 0, the batch, must be 0, not {padding[0]}")
    operator.require_shape(
        tuple(size + sum(pair) for size, pair in zip(x.shape, padding, strict=True))
    )
    return padding


def concatenation(operator: Operator) -> Normalised:
    """CONCATENATION; uint8 networks may rescale, int8 ones not."""
    operator.require_operands(1, len(operator.inputs))
    if operator.fused_activation() != "none":
        operator.refuse(f"activation must be none, not {operator.fused_activation()}")
    output = operator.require_output(operator.either())
    tensors = _operands(operator)
    axis = operator.axis(operator.options["Axis"], output)
    total, rank = 0, len(output.shape)
    for tensor in tensors:
        # operands of a batch of 1 may make an axis in front of theirs
        shape = (
            (1,) * (rank - len(tensor.shape)) + tensor.shape if operator.lifted else tensor.shape
        )
        total += shape[axis] if len(shape) == rank else 0
        if len(shape) != rank or _without(shape, axis) != _without(output.shape, axis):
            operator.reject(
                f"input {quoted(tensor.name)} must be {output.shape} but for axis {axis},"
                f" not {tensor.shape}"
            )
        if not operator.legacy:
            operator.require_same_quantization(tensor)
    operator.require_shape((*output.shape[:axis], total, *output.shape[axis + 1 :]))
    return "concatenation", tuple(tensor.name for tensor in tensors), {"axis": axis}


def pack(operator: Operator) -> Normalised:
    """PACK."""
    operator.require_operands(1, len(operator.inputs))
    output = operator.require_output(operator.either())
    tensors = _operands(operator)
    axis = operator.axis(operator.options["Axis"], output)
    for tensor in tensors:
        operator.require_same_quantization(tensor)
        if not operator.same_shape(tensor.shape, _without(output.shape, axis)):
            operator.reject(
                f"input {quoted(tensor.name)} must be {_without(output.shape, axis)},"
                f" not {tensor.shape}"
            )
    operator.require_shape((*output.shape[:axis], len(tensors), *output.shape[axis + 1 :]))
    count = operator.options["ValuesCount"]
    if count != len(tensors):
        operator.reject(f"values_count must be that of the inputs, {len(tensors)}, not {count}")
    return "pack", tuple(tensor.name for tensor in tensors), {"axis": axis}


def _operands(operator: Operator) -> list[Tensor]:
    """All inputs, one of them computed."""
    dtypes = operator.either()
    tensors = [operator.operand(index, dtypes) for index in range(len(operator.inputs))]
    if all(tensor.data is not None for tensor in tensors):
        operator.refuse("one of the inputs must be computed, and all are constants")
    return tensors


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def transpose(operator: Operator) -> Normalised:
    """TRANSPOSE."""
    operator.require_operands(2, 2)
    x = moved(operator)
    operator.require_same_quantization(x)
    shape = operator.shape(x)
    rank = len(shape)
    listed = operator.integers(1, rank, "permutation")
    if any(not -rank <= axis < rank for axis in listed) or len({a % rank for a in listed}) != rank:
        operator.reject(f"permutation must hold 0..{rank - 1} once each, not {listed}")
    order = tuple(axis % rank for axis in listed)
    operator.require_shape(tuple(shape[axis] for axis in order))
    if x.name in operator.lifted:
        order = (0, *(axis + 1 for axis in order))
    # a batch of 1 that moves leaves the codes where they are
    permutation = (0, *(axis for axis in order if axis))
    return "transpose", (x.name,), {"permutation": permutation}


def tile(operator: Operator) -> Normalised:
    """TILE: all of a tensor, so many times behind itself along each axis."""
    operator.require_operands(2, 2)
    x = moved(operator)
    operator.require_same_quantization(x)
    shape = operator.shape(x)
    repeats = operator.integers(1, len(shape), "multiples")
    if min(repeats) < 1:
        operator.reject(f"multiples must be at least 1, not {repeats}")
    extra = x.name in operator.lifted
    if repeats[0] != 1 and not extra:
        operator.refuse(f"the multiple of axis 0, the batch, must be 1, not {repeats[0]}")
    repeats = (1,) * extra + repeats
    operator.require_shape(
        tuple(size * count for size, count in zip(x.shape, repeats, strict=True))
    )
    return "tile", (x.name,), {"repeats": repeats}


def space_to_depth(operator: Operator) -> Normalised:
    """SPACE_TO_DEPTH."""
    x, block = _blocks(operator)
    _, height, width, channels = x.shape
    if height % block or width % block:
        operator.reject(f"block {block} must divide height and width, not {height} x {width}")
    operator.require_shape((x.shape[0], height // block, width // block, channels * block**2))
    return "space_to_depth", (x.name,), {"block": block}


def depth_to_space(operator: Operator) -> Normalised:
    """DEPTH_TO_SPACE."""
    x, block = _blocks(operator)
    _, height, width, channels = x.shape
    if channels % block**2:
        operator.reject(f"the square of block {block} must divide {channels} channels")
    operator.require_shape((x.shape[0], height * block, width * block, channels // block**2))
    return "depth_to_space", (x.name,), {"block": block}


def _blocks(operator: Operator) -> tuple[Tensor, int]:
    operator.require_operands(1, 1)
    x = operator.activation(0)
    for tensor in (x, operator.require_output()):
        operator.require_rank(tensor, 4)
    operator.require_same_quantization(x)
    block = operator.options["BlockSize"]
    if not 1 <= block <= max(x.shape):
        operator.reject(f"block must be within 1..{max(x.shape)}, not {block}")
    return x, block


def resize_nearest(operator: Operator) -> Normalised:
    """RESIZE_NEAREST_NEIGHBOR."""
    return _resize(operator, "resize_nearest")


def resize_bilinear(operator: Operator) -> Normalised:
    """RESIZE_BILINEAR."""
    name, inputs, attributes = _resize(operator, "resize_bilinear")
    # codes that are never negative have no ties away from zero but upwards
    return name, inputs, attributes | {"ties": "up"} if operator.legacy else attributes


def _resize(operator: Operator, name: str) -> Normalised:
    operator.require_operands(2, 2)
    x = operator.activation(0)
    for tensor in (x, operator.require_output()):
        operator.require_rank(tensor, 4)
    operator.require_same_quantization(x)
    size = operator.integers(1, 2, "size")
    if min(size) < 1 or math.prod(size) * x.shape[3] > MAXIMUM_ACTIVATION:
        operator.reject(f"size must be at least 1 x 1 and at most memory, not {size}")
    operator.require_shape((x.shape[0], *size, x.shape[3]))
    corners, centers = (bool(operator.options[key]) for key in ("AlignCorners", "HalfPixelCenters"))
    if corners and centers and name == "resize_bilinear":
        operator.reject("align corners and half pixel centers must not both be true")
    attributes = {"size": size, "align_corners": corners, "half_pixel_centers": centers}
    return name, (x.name,), attributes
