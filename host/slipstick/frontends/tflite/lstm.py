"""UNIDIRECTIONAL_SEQUENCE_LSTM of int8 activations and int16 cells, as tflm has it.

Its states are inputs that the file marks as variables: they keep their values between runs.
"""

import dataclasses
import math

import numpy as np

from ...graph import Node, Tensor, Variable
from ..files import Labelled, quoted
from .operator import Operator, single
from .reader import RawModel, RawOperator
from .tensors import make_tensor

LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
_OPERANDS = 24
_WEIGHTS = range(1, 9)
_BIASES = range(12, 16)
_HIDDEN, _CELLS = 18, 19
_ABSENT = {
    **dict.fromkeys(range(9, 12), "peepholes"),
    **dict.fromkeys(range(16, 18), "projections"),
    **dict.fromkeys(range(20, 24), "normalised layers"),
}
"""Inputs of variants that the reference does not run."""

_TANH = 4
_POWERS = range(-24, 1)
"""Exponents of the powers of two that a cell's scale may be."""


class SequenceLstms:
    """The LSTMs of a file, while its operators are walked in their order.

    Parameters
    ----------
    model : RawModel
    name : str
        The file's, for messages.
    names : sequence of str
        Of the tensors in the graph.
    """

    def __init__(self, model: RawModel, name: str, names: tuple[str, ...]) -> None:
        self._model, self._name, self._names = model, name, names
        self.variables: list[Variable] = []

    def states(self, raw: RawOperator, label: str) -> dict[int, Tensor]:
        """The tensors that it keeps, which are there when it runs."""
        what = _Label(label)
        if len(raw.inputs) != _OPERANDS or len(raw.outputs) != 1:
            what.reject(
                f"inputs and outputs must be {_OPERANDS} and 1, not {len(raw.inputs)} and"
                f" {len(raw.outputs)}"
            )
        made = {}
        for index in (raw.inputs[place] for place in (_HIDDEN, _CELLS)):
            if index < 0 or not self._model.tensors[index].variable:
                what.reject("its hidden state and cells must be variables")
            tensor = self._model.tensors[index]
            used = [*self._model.inputs, *self._model.outputs]
            for operator in self._model.operators:
                used += [*operator.inputs, *operator.outputs]
            if used.count(index) != 1 or tensor.data is not None:
                what.reject(
                    f"variable {quoted(self._names[index])} must be its own, and nothing else's"
                )
            ordinary = dataclasses.replace(tensor, variable=False)
            made[index] = make_tensor(ordinary, self._names[index], self._name, ("int8", "int16"))
        return made

    def node(self, raw: RawOperator, operator: Operator) -> tuple[Node, tuple[Tensor, Tensor]]:
        """The operator's node, and the tensors that its states are behind it."""
        names, clip = _checked(operator)
        kept = [operator.inputs[place] for place in (_HIDDEN, _CELLS)]
        behind = []
        for tensor in kept:
            assert tensor is not None
            behind.append(dataclasses.replace(tensor, name=self._fresh(f"{tensor.name}_next")))
            point = single(tensor)[1] if tensor.dtype == "int8" else 0
            first = np.full(tensor.shape, point, tensor.dtype)
            self.variables.append(Variable(tensor.name, tensor.name, behind[-1].name, first))
        hidden, cells = behind
        outputs = (operator.output.name, hidden.name, cells.name)
        return Node(f"lstm_{raw.index}", "lstm", names, outputs, {"clip": clip}), (hidden, cells)

    def _fresh(self, name: str) -> str:
        while name in self._names:
            name += "_"
        return name


@dataclasses.dataclass(frozen=True)
class _Label(Labelled):
    label: str


def _checked(operator: Operator) -> tuple[tuple[str, ...], int]:
    """The names of the node's inputs, and the largest magnitude of a cell."""
    _check_options(operator)
    x, output = operator.activation(0), operator.require_output()
    operator.require_rank(x, 3)
    operator.require_rank(output, 3)
    hidden, cells = operator.activation(_HIDDEN), operator.inputs[_CELLS]
    assert cells is not None
    for tensor in (hidden, cells):
        operator.require_rank(tensor, 2)
    units = hidden.shape[-1]
    for what, tensor in (("hidden state", hidden), ("cells", cells)):
        if tensor.shape != (1, units):
            operator.reject(
                f"{what} {quoted(tensor.name)} must be (1, {units}), not {tensor.shape}"
            )
    operator.require_shape((1, x.shape[1], units))
    if single(hidden) != single(output):
        operator.refuse(
            f"output must have the hidden state's scale and zero point {single(hidden)},"
            f" not {single(output)}"
        )
    clip = _clip(operator, cells)
    names = [x.name, hidden.name, cells.name]
    for place in _WEIGHTS:
        width = x.shape[2] if place < 5 else units
        names.append(_constant(operator, place, "int8", (units, width)))
    names += [_constant(operator, place, "int32", (units,)) for place in _BIASES]
    return tuple(names), clip


def _check_options(operator: Operator) -> None:
    for place, what in _ABSENT.items():
        if operator.inputs[place] is not None:
            operator.refuse(f"input {place} must be absent: {what} are not read")
    options = operator.options
    if options["FusedActivationFunction"] != _TANH:
        operator.refuse(
            f"activation must be tanh ({_TANH}), not {options['FusedActivationFunction']}"
        )
    x = operator.inputs[0]
    if options["TimeMajor"] and x is not None and x.shape[:2] != (1, 1):
        operator.refuse("time_major must be false where there is more than one step")
    for name in ("ProjClip", "DiagonalRecurrentTensors"):
        if options[name]:
            operator.refuse(f"{name} must be 0, not {options[name]}")


def _clip(operator: Operator, cells: Tensor) -> int:
    """The largest magnitude of a cell's code; 0: no limit but the type's."""
    if cells.dtype != "int16" or cells.quantization is None or len(cells.quantization.scale) != 1:
        operator.refuse(f"cells {quoted(cells.name)} must be int16 of one scale, not {cells.dtype}")
    scale, point = single(cells)
    power = round(math.log2(scale))
    if 2.0**power != scale or power not in _POWERS or point:
        operator.refuse(
            f"cells {quoted(cells.name)} must have a power of two, 2^{_POWERS[0]} to"
            f" 2^{_POWERS[-1]}, as scale and 0 as zero point, not {scale:g} and {point}"
        )
    clip = operator.options["CellClip"]
    if not 0 <= clip < math.inf:
        operator.reject(f"CellClip must be 0 or positive, not {clip}")
    # as the reference cuts it
    return int(min(clip / scale, 32767.0))


def _constant(operator: Operator, place: int, dtype: str, shape: tuple[int, ...]) -> str:
    tensor, _ = operator.constant(place, (dtype,))
    if tensor.shape != shape:
        operator.reject(f"{quoted(tensor.name)} must be {shape}, not {tensor.shape}")
    quantization = tensor.quantization
    if dtype == "int8":
        one = quantization is not None and len(quantization.scale) == 1
        if quantization is None or not one or quantization.zero_point.any():
            operator.refuse(
                f"weights {quoted(tensor.name)} must have one scale, and 0 as zero point"
            )
    return tensor.name
