"""Resize: pixels repeated or left out, or mixed of their neighbours."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...kernels.tflite.resize import nearest_places
from ..files import MAXIMUM_ACTIVATION
from .moves import moved
from .operator import Operator
from .pools import PICTURE_AXES
from .quantization import SHIFT
from .values import Activation, Codes, Pending, Result, Shape, Value, shape_of

_MODES = ("nearest", "linear", "cubic")
_PLACES = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
}


@dataclass(frozen=True)
class _Axis:
    """One axis that changes: its sizes, the factor between them and the part that is taken."""

    axis: int
    size: int
    wanted: int
    factor: float
    region: tuple[float, float]

    def positions(self, mode: str) -> np.ndarray:
        """Returns the position in the input of each output element; float32, as in a runtime."""
        index = np.arange(self.wanted, dtype=np.float32)
        factor, half = np.float32(self.factor), np.float32(0.5)
        last = max(self.wanted - 1, 1)
        centred = (index + half) / factor - half
        match mode:
            case "asymmetric":
                return index / factor
            case "align_corners":
                return index * np.float32(self.size - 1) / np.float32(last)
            case "pytorch_half_pixel":
                return centred if self.wanted > 1 else np.zeros_like(index)
            case "half_pixel_symmetric":
                exact = self.wanted / (self.factor * self.size)
                return centred + np.float32(self.size / 2 * (1 - exact))
            case "tf_half_pixel_for_nn":
                return (index + half) / factor
            case "tf_crop_and_resize":
                start, end = self.region
                if self.wanted == 1:
                    middle = (start + end) * (self.size - 1) / 2
                    return np.full(1, middle, np.float32)
                step = (end - start) * (self.size - 1) / last
                return (start * (self.size - 1) + index * step).astype(np.float32)
            case _:
                return centred


def _axes(operator: Operator, shape: Shape) -> list[_Axis]:
    """The axes that change."""
    rank = len(shape)
    listed = operator.integers("axes", tuple(range(rank - operator.lead)))
    axes = [operator.axis(axis, rank) for axis in listed]
    if len(set(axes)) < len(axes):
        operator.reject(f"axes must be different ones, not {listed}")
    scales_at, sizes_at = (2, 3) if operator.opset >= 11 else (1, 9)
    old = [shape[axis] for axis in axes]
    if operator.has(sizes_at):
        sizes = list(operator.constant_integers(sizes_at))
        factors = [size / own for size, own in zip(sizes, old, strict=False)]
        policy = operator.text("keep_aspect_ratio_policy", "stretch")
        policies = ("stretch", "not_larger", "not_smaller")
        operator.require("keep_aspect_ratio_policy", policy, policies)
        if policy != "stretch" and factors:
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(factors)
            sizes = [math.floor(own * factor + 0.5) for own in old]
    else:
        factors = [float(item) for item in operator.constant(scales_at).reshape(-1)]
        if not all(0 < factor <= 1 << 12 for factor in factors):
            operator.refuse(f"scales must be positive numbers, not {factors[:8]}")
        sizes = [math.floor(own * item) for own, item in zip(old, factors, strict=False)]
    if not len(factors) == len(sizes) == len(axes) or min(sizes, default=1) < 1:
        operator.reject(f"there must be {len(axes)} sizes of at least 1, not {sizes}")
    elements = math.prod(max(own, size) for own, size in zip(old, sizes, strict=True))
    if elements * math.prod(shape) // math.prod(old) > MAXIMUM_ACTIVATION:
        operator.reject(f"the result must have at most {MAXIMUM_ACTIVATION} elements, not {sizes}")
    regions = [(0.0, 1.0)] * len(axes)
    if operator.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        numbers = [float(item) for item in operator.constant(1).reshape(-1)]
        if len(numbers) != 2 * len(axes) or not np.isfinite(numbers).all():
            operator.reject(f"the region must be {2 * len(axes)} numbers, not {numbers[:16]}")
        regions = list(zip(numbers[: len(axes)], numbers[len(axes) :], strict=True))
    made = [_Axis(*item) for item in zip(axes, old, sizes, factors, regions, strict=True)]
    kept = [item for item in made if item.size != item.wanted or item.region != (0.0, 1.0)]
    if any(item.axis == 0 for item in kept):
        operator.refuse("axis 0, the batch, must stay as it is")
    return kept


def resize(operator: Operator) -> Value:
    """Resize of any axes."""
    operator.require_inputs(1, 4)
    newer = operator.opset >= 11
    mode = operator.text("mode", "nearest")
    operator.require("mode", mode, _MODES)
    places = operator.text(
        "coordinate_transformation_mode", "half_pixel" if newer else "asymmetric"
    )
    operator.require("coordinate_transformation_mode", places, _PLACES)
    value = operator.value(0)
    axes = _axes(operator, shape_of(value))
    if not axes:
        return value
    if mode == "nearest":
        return _nearest(operator, value, axes, places, newer=newer)
    if isinstance(value, Codes):
        operator.require("mode of codes", mode, ("nearest", "linear"))
    taps = [_taps(operator, axis, mode, places) for axis in axes]
    return _mixed(operator, value, axes, taps)


def _nearest(
    operator: Operator, value: Value, axes: list[_Axis], mode: str, *, newer: bool
) -> Value:
    rounding = operator.text("nearest_mode", "round_prefer_floor" if newer else "floor")
    operator.require("nearest_mode", rounding, tuple(_ROUNDINGS))
    places = []
    for axis in axes:
        exact = axis.positions(mode)
        if mode == "tf_crop_and_resize" and not ((exact >= 0) & (exact <= axis.size - 1)).all():
            operator.refuse(f"the region of axis {axis.axis} must lie within 0..1")
        whole = _ROUNDINGS[rounding](exact)
        places.append(np.clip(whole, 0, axis.size - 1).astype(np.int64))
    shape = shape_of(value)
    output = _resized(shape, axes)
    options = _device_options(shape, axes, places)
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        if options is not None:
            source = builder.picture(activation)
            made = builder.like(source.tensor, name, (output[0], *output[2:], output[1]))
            attributes = {"size": tuple(output[2:]), **options}
            builder.node(operator.name, "resize_nearest", (source.tensor,), made, attributes)
            return Activation(made, output, "picture")
        tensor = builder.natural(activation).tensor
        for axis, indices in zip(axes, places, strict=True):
            sizes = list(builder.tensors[tensor].shape)
            sizes[axis.axis] = axis.wanted
            made = builder.like(tensor, name if axis is axes[-1] else f"{name}/part", tuple(sizes))
            listed = builder.constant(f"{operator.name}/places", indices)
            given = {"axis": axis.axis}
            builder.node(operator.name, "gather", (tensor, listed), made, given)
            tensor = made
        return Activation(tensor, output)

    return moved(operator, value, move, output)


def _resized(shape: Shape, axes: list[_Axis]) -> Shape:
    sizes = list(shape)
    for axis in axes:
        sizes[axis.axis] = axis.wanted
    return tuple(sizes)


def _device_options(
    shape: Shape, axes: list[_Axis], places: list[np.ndarray]
) -> dict[str, bool] | None:
    """The graph's options that give these positions of a picture's rows and columns."""
    if len(shape) != 4 or any(axis.axis < 2 for axis in axes):
        return None
    wanted = {axis.axis: place for axis, place in zip(axes, places, strict=True)}
    for corners, half in itertools.product((False, True), repeat=2):
        options = {"align_corners": corners, "half_pixel_centers": half}
        found = [
            np.array_equal(
                wanted.get(axis, np.arange(shape[axis])),
                nearest_places(shape[axis], len(wanted.get(axis, range(shape[axis]))), options),
            )
            for axis in (2, 3)
        ]
        if all(found):
            return options
    return None


def _taps(operator: Operator, axis: _Axis, mode: str, places: str) -> tuple[np.ndarray, np.ndarray]:
    """Finds the input elements of each output element, and their weights; (taps, outputs) each."""
    position = axis.positions(places)
    last = axis.size - 1
    shrunk = min(axis.factor, 1.0) if operator.integer("antialias", 0) else 1.0
    if mode == "linear" and shrunk == 1 and not operator.integer("exclude_outside", 0):
        inside = np.clip(position, 0, np.float32(last))
        before = np.floor(inside)
        after = np.minimum(before + 1, last)
        weights = np.stack([np.abs(inside - after), np.abs(inside - before)])
        weights[:, before == after] = 0.5
        indices = np.stack([before, after])
    else:
        reach = (2 if mode == "cubic" else 1) / shrunk
        steps = np.arange(-math.ceil(reach) + 1, math.ceil(reach) + 1)[:, None]
        exact = np.clip(position, 0, last) if mode == "linear" else position
        indices = np.floor(exact) + steps
        distance = (exact - indices).astype(np.float64) * shrunk
        weights = (
            _cubic(operator, distance) if mode == "cubic" else np.maximum(0, 1 - np.abs(distance))
        )
        if operator.integer("exclude_outside", 0):
            weights = np.where((indices < 0) | (indices > last), 0, weights)
        with np.errstate(all="ignore"):
            weights = weights / weights.sum(axis=0)
        if not np.isfinite(weights).all():
            operator.reject(f"the weights of axis {axis.axis} must have a finite sum that is not 0")
    if places == "tf_crop_and_resize":
        weights = np.where((position < 0) | (position > last), 0, weights)
    return np.clip(indices, 0, last).astype(np.int64), weights.astype(np.float32)


def _cubic(operator: Operator, distance: np.ndarray) -> np.ndarray:
    """Keys' kernel; IEEE Transactions on Acoustics, Speech and Signal Processing 29 (1981)."""
    a, x = operator.number("cubic_coeff_a", -0.75), np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _mixed(
    operator: Operator,
    value: Value,
    axes: list[_Axis],
    taps: list[tuple[np.ndarray, np.ndarray]],
) -> Value:
    shape = shape_of(value)
    output = _resized(shape, axes)
    builder = operator.builder
    attributes: dict[str, object] = {"outside": operator.number("extrapolation_value", 0.0)}
    if isinstance(value, Codes):
        # runtimes mix the codes themselves, and cut what is behind the point
        attributes["codes"] = SHIFT[value.dtype]

    def lay(activation: Activation, wanted: Result) -> Activation:
        picture = activation.layout == "picture" and len(shape) == 4
        source = activation if picture else builder.natural(activation)
        names = [source.tensor]
        for indices, weights in taps:
            names.append(builder.constant(f"{operator.name}/places", indices))
            names.append(builder.constant(f"{operator.name}/weights", weights))
        laid = (output[0], *output[2:], output[1]) if picture else output
        made = builder.tensor(wanted.name, laid, wanted.dtype, wanted.quantization)
        own = tuple(PICTURE_AXES[4][axis.axis] if picture else axis.axis for axis in axes)
        clamp = {} if wanted.clamp is None else {"clamp": wanted.clamp}
        given = {**attributes, **clamp, "axes": own}
        builder.node(operator.name, "resize", tuple(names), made, given)
        return Activation(made, output, "picture" if picture else "natural")

    def move(activation: Activation, name: str) -> Activation:
        described = builder.tensors[activation.tensor]
        return lay(activation, Result(name, described.dtype, described.quantization))

    if isinstance(value, Codes):
        return moved(operator, value, move, output)
    return Pending(operator.output, output, lambda wanted: lay(builder.real(value), wanted))
