"""One ONNX node under examination: its inputs as values, its attributes, errors that name it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ..files import Labelled, quoted
from .values import Coded, Constant, Overall, Shape, Value, shape_of

if TYPE_CHECKING:
    from .builder import Builder


class ComputedError(UnsupportedError):
    """An input must be known when the network is compiled, and is not.

    Parameters
    ----------
    message : str
    tensor : str
        ONNX's name of the input.
    """

    def __init__(self, message: str, tensor: str) -> None:
        super().__init__(message)
        self.tensor = tensor


SCALES = (1e-30, 1e30)
"""Between these the products and quotients of scales stay within float32."""


@dataclass(frozen=True)
class Operator(Labelled):
    """A node with its inputs, None for an absent one.

    Methods raise UnsupportedError for what Slipstick does not run, ModelError for what no runtime
    can; both messages begin with ``label``.
    """

    builder: "Builder"
    label: str
    name: str
    """Name of the graph's nodes that it becomes."""
    operator: str
    opset: int
    inputs: tuple[Value | None, ...]
    input_names: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    lead: int = 0
    """Axes of one that the shapes of computed values have in front of ONNX's: 1 where the network
    has no batch."""

    @property
    def output(self) -> str:
        """ONNX's name of the first output."""
        return self.outputs[0]

    def what(self, index: int) -> str:
        """An input, for messages."""
        names = self.input_names
        return f"input {index} {quoted(names[index] if index < len(names) else '')}"

    def has(self, index: int) -> bool:
        """Tells whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """An input; rejects an absent one."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            self.reject(f"{self.what(index)} must be there, and is absent")
        return value

    def require_inputs(self, minimum: int, maximum: int) -> None:
        """Rejects another number of inputs."""
        if not minimum <= len(self.inputs) <= maximum:
            self.reject(f"inputs must be {minimum} to {maximum}, not {len(self.inputs)}")

    def constant(self, index: int) -> np.ndarray:
        """An input that the file holds, with its contents; refuses a computed one."""
        value = self.value(index)
        if not isinstance(value, Constant | Coded):
            message = f"{self.label}: {self.what(index)} must be a constant, and is computed"
            raise ComputedError(message, self.input_names[index])
        return value.array

    def constant_integers(self, index: int) -> tuple[int, ...]:
        """A constant list of whole numbers, as one of shapes or axes."""
        array = self.constant(index)
        if array.dtype.kind not in "iu" or array.ndim > 1 or array.size > 64:
            self.reject(
                f"{self.what(index)} must be a short list of whole numbers, not {array.dtype.name}"
                f" of shape {array.shape}"
            )
        return tuple(int(item) for item in array.ravel())

    def scales(self, index: int) -> np.ndarray:
        """A constant scale, or one a channel; float32."""
        array = self.constant(index)
        if array.dtype.kind != "f" or array.ndim > 1:
            self.refuse(
                f"scale {self.what(index)} must be float of 1 or a list,"
                f" not {array.dtype.name} of shape {array.shape}"
            )
        array = array.astype(np.float32)
        good = (array >= SCALES[0]) & (array <= SCALES[1])
        if not good.all() or not array.size:
            odd = array[~good].ravel()[:1].tolist()
            self.refuse(f"scale {self.what(index)} must be within {SCALES}, not {odd}")
        return array.reshape(-1)

    def zero_points(self, index: int, count: int, default: str = "uint8") -> np.ndarray:
        """Constant zero points, as many as ``count``, in the type that their codes have."""
        if not self.has(index):
            return np.zeros(count, default)
        array = self.constant(index)
        if array.dtype.name not in ("int8", "uint8", "int32"):
            self.refuse(
                f"zero point {self.what(index)} must be int8, uint8 or int32, not {array.dtype}"
            )
        if array.ndim > 1 or array.size not in (1, count):
            self.reject(
                f"zero point {self.what(index)} must be as many as the {count} scales,"
                f" not of shape {array.shape}"
            )
        return np.broadcast_to(array.reshape(-1), (count,))

    def integer(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            self.reject(f"{name} must be a whole number, not {value!r:.40}")
        return value

    def number(self, name: str, default: float) -> float:
        """An attribute that is a finite number."""
        value = self.attributes.get(name, default)
        if not isinstance(value, float | int) or not math.isfinite(value):
            self.reject(f"{name} must be a finite number, not {value!r:.40}")
        return float(value)

    def text(self, name: str, default: str) -> str:
        """An attribute that is a string."""
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            self.reject(f"{name} must be a string, not {value!r:.40}")
        return value

    def integers(self, name: str, default: Sequence[int] | None) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers; rejects an absent one without default."""
        value = self.attributes.get(name, default)
        if not isinstance(value, tuple | list) or not all(isinstance(item, int) for item in value):
            self.reject(f"{name} must be a list of whole numbers, not {value!r:.40}")
        return tuple(value)

    def require(self, name: str, value: Any, accepted: Sequence[Any]) -> None:
        """Refuses another value of an attribute than some."""
        if value not in accepted:
            listed = " or ".join(map(str, accepted))
            self.refuse(f"{name} must be {listed}, not {value!r:.80}")

    def axis(self, axis: int, rank: int) -> int:
        """An axis of a computed value of some rank, counted from the front."""
        own = rank - self.lead
        return self.constant_axis(axis, own) + self.lead

    def constant_axis(self, axis: int, rank: int) -> int:
        """An axis of a constant, counted from the front."""
        if not -rank <= axis < rank:
            self.reject(f"axis must be within {-rank}..{rank - 1}, not {axis}")
        return axis % rank

    def broadcast(self, *values: Value) -> Shape:
        """The shape of what some values broadcast to; rejects what does not."""
        shapes = [
            shape_of(value)[0 if isinstance(value, Constant | Coded | Overall) else self.lead :]
            for value in values
        ]
        try:
            return (1,) * self.lead + np.broadcast_shapes(*shapes)
        except ValueError:
            self.reject(f"inputs of {' and '.join(map(str, shapes))} must broadcast together")
