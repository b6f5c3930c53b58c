"""One TFLite operator under examination: its tensors by role, and errors that name it."""

import dataclasses
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...graph import Quantization, Tensor
from ..files import Labelled, quoted

ACTIVATIONS = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")
"""Fused activations by their number in the schema; the last two are refused."""

INDICES = ("int32", "int64")
"""The types of shapes, axes and the like."""

EITHER = ("int8", "float32")
"""The types of operators that compute codes or, on the host, float32 numbers."""

SAME_SCALE = 1e-5
"""Relative difference below which two scales count as one, as float32 writers differ."""


@dataclass(frozen=True)
class Operator(Labelled):
    """An operator with its tensors, None for an absent input.

    Methods raise UnsupportedError for what Slipstick does not run, ModelError for what no runtime
    can; both messages begin with ``label``.
    """

    label: str
    options: Mapping[str, Any]
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    legacy: bool = False
    """True if its codes were uint8 in the file: some operators round otherwise then."""
    lifted: Set[str] = frozenset()
    """Tensors that have one axis more than in the file: a batch of 1, in front."""
    advice: str = ""
    """Advice on how float32 operands come to be codes."""
    made: dict[str, Tensor] = field(default_factory=dict)
    """Constants that the node reads instead of the file's, by name."""

    @property
    def output(self) -> Tensor:
        """The only output, or the first."""
        return self.outputs[0]

    def writing(self, number: int) -> "Operator":
        """The same operator, as if it wrote only this output."""
        return dataclasses.replace(self, outputs=(self.outputs[number],))

    def require_operands(self, minimum: int, maximum: int) -> None:
        """Rejects another number of inputs, or an absent one that is not optional."""
        if not minimum <= len(self.inputs) <= maximum:
            wanted = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
            self.reject(f"inputs must be {wanted}, not {len(self.inputs)}")
        if None in self.inputs[:minimum]:
            self.reject(f"input {self.inputs.index(None)} must be there, and is absent")

    def activation(self, index: int, dtypes: tuple[str, ...] = ("int8",)) -> Tensor:
        """An input that is computed, of one of these types and with one scale."""
        tensor = self.inputs[index]
        if tensor is None:
            self.reject(f"input {index} must be there, and is absent")
        if tensor.data is not None:
            self.refuse(f"input {index} {quoted(tensor.name)} must be computed, not a constant")
        self.require_type(tensor, f"input {index}", dtypes)
        return tensor

    def require_output(self, dtypes: tuple[str, ...] = ("int8",)) -> Tensor:
        """The output, of one of these types and with one scale."""
        self.require_type(self.output, "output", dtypes)
        return self.output

    def require_type(self, tensor: Tensor, role: str, dtypes: tuple[str, ...]) -> None:
        """Refuses other types; rejects a quantised type without quantisation."""
        what = f"{role} {quoted(tensor.name)}"
        if tensor.dtype not in dtypes:
            advice = f": {self.advice}" if tensor.dtype == "float32" else ""
            self.refuse(f"{what} must be {' or '.join(dtypes)}, and is {tensor.dtype}{advice}")
        if tensor.dtype in ("int8", "uint8"):
            if tensor.quantization is None:
                self.reject(f"{what} must have a scale and a zero point, and has none")
            if len(tensor.quantization.scale) != 1:
                self.refuse(f"{what} must have 1 scale, not {len(tensor.quantization.scale)}")

    def operand(self, index: int, dtypes: tuple[str, ...] = ("int8",)) -> Tensor:
        """An input of one of these types and with one scale, computed or constant."""
        tensor = self.inputs[index]
        if tensor is None:
            self.reject(f"input {index} must be there, and is absent")
        self.require_type(tensor, f"input {index}", dtypes)
        return tensor

    def either(self) -> tuple[str, ...]:
        """The type of all operands: float32 if the output is, else int8."""
        return ("float32",) if self.output.dtype == "float32" else ("int8",)

    def constant(self, index: int, dtypes: tuple[str, ...]) -> tuple[Tensor, np.ndarray]:
        """An input that the file holds, with its contents."""
        tensor = self.inputs[index]
        if tensor is None:
            self.reject(f"input {index} must be there, and is absent")
        if tensor.dtype not in dtypes:
            self.refuse(
                f"input {index} {quoted(tensor.name)} must be {' or '.join(dtypes)},"
                f" and is {tensor.dtype}"
            )
        if tensor.data is None:
            self.refuse(f"input {index} {quoted(tensor.name)} must be a constant, not computed")
        return tensor, tensor.data

    def reshaped(self, constant: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A constant of another shape: itself, or a new one."""
        if constant.data is None or constant.shape == shape:
            return constant
        name, data = f"{constant.name}/{self.output.name}", constant.data.reshape(shape)
        self.made[name] = dataclasses.replace(constant, name=name, shape=shape, data=data)
        return self.made[name]

    def require_rank(self, tensor: Tensor, rank: int) -> None:
        """Rejects a tensor of another rank."""
        if tensor.name in self.lifted:
            self.refuse(
                f"the batch (dimension 0) of {quoted(tensor.name)} must be 1, not shape"
                f" {self.shape(tensor)}"
            )
        if len(tensor.shape) != rank:
            self.reject(
                f"{quoted(tensor.name)} must have {rank} dimensions, not shape {tensor.shape}"
            )

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Rejects an output of another shape than the inputs give."""
        if not self.same_shape(self.output.shape, shape):
            self.reject(
                f"output {quoted(self.output.name)} must be {shape}, not {self.output.shape}"
            )

    def require_same_quantization(self, source: Tensor) -> None:
        """Refuses an output whose codes mean something else than the input's."""
        (scale, zero_point), (out_scale, out_zero_point) = map(single, (source, self.output))
        if abs(scale - out_scale) > SAME_SCALE * scale or zero_point != out_zero_point:
            self.refuse(
                f"output must have the input's scale {scale:g} and zero point {zero_point},"
                f" not {out_scale:g} and {out_zero_point}"
            )

    def integers(self, index: int, count: int, what: str) -> tuple[int, ...]:
        """The contents of a constant of ``count`` indices."""
        tensor, data = self.constant(index, INDICES)
        if data.size != count:
            self.reject(f"{what} {quoted(tensor.name)} must be {count} numbers, not {data.size}")
        return tuple(data.ravel().tolist())

    def axis(self, axis: int, tensor: Tensor) -> int:
        """An axis of a tensor counted from 0, which is not the batch."""
        extra = tensor.name in self.lifted
        rank = len(tensor.shape) - extra
        if not -rank <= axis < rank:
            self.reject(f"axis must be within {-rank}..{rank - 1}, not {axis}")
        if axis % rank == 0 and not extra:
            self.refuse(f"axis must not be 0, the batch, and is {axis}")
        return axis % rank + extra

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """A tensor's shape as the file has it."""
        return tensor.shape[tensor.name in self.lifted :]

    def same_shape(self, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        """Tells whether two shapes are the same, whatever stands for the batch in front of them."""
        if not self.lifted:
            return a == b
        rank = max(len(a), len(b))
        return (1,) * (rank - len(a)) + a == (1,) * (rank - len(b)) + b

    def require_output_quantization(self, scale: float, zero_point: int) -> None:
        """Refuses an output of another scale and zero point than the operator's fixed ones."""
        out_scale, out_zero_point = single(self.output)
        if abs(scale - out_scale) > SAME_SCALE * scale or zero_point != out_zero_point:
            self.refuse(
                f"output must have scale {scale:g} and zero point {zero_point},"
                f" not {out_scale:g} and {out_zero_point}"
            )

    def fused_activation(self) -> str:
        """The fused activation by the graph's name."""
        number = self.options["FusedActivationFunction"]
        if not 0 <= number < len(ACTIVATIONS):
            self.reject(f"activation must be within 0..{len(ACTIVATIONS) - 1}, not {number}")
        if number > 3:
            self.refuse(
                f"fused activation must be one of {ACTIVATIONS[:4]}, not {ACTIVATIONS[number]}:"
                " make it an operator of its own"
            )
        return ACTIVATIONS[number]


def single(tensor: Tensor) -> tuple[float, int]:
    """Scale and zero point of a tensor that was checked to have one of each."""
    quantization = tensor.quantization or Quantization(np.ones(1), np.zeros(1, np.int64))
    return float(quantization.scale[0]), int(quantization.zero_point[0])
