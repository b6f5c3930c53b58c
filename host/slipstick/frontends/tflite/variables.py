"""TFLite's resource variables: what CALL_ONCE assigns, and what each run reads and assigns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ...errors import ModelError, UnsupportedError
from ...graph import Node, Tensor, Variable
from ..files import quoted
from .legacy import lowered
from .operator import SAME_SCALE
from .reader import RawModel, RawOperator, RawSubgraph, RawTensor, unique_names
from .tensors import make_tensor

STATE_OPERATORS = ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
"""They make no nodes: they tell which tensors a run begins and ends with."""

_OPERANDS = {
    "CALL_ONCE": (0, 0),
    "VAR_HANDLE": (0, 1),
    "READ_VARIABLE": (1, 1),
    "ASSIGN_VARIABLE": (2, 0),
}
"""Numbers of inputs and outputs of each operator."""


@dataclass
class _State:
    """A variable, as far as the operators up to now tell."""

    container: str
    example: RawTensor | None = None
    """Tensor that was read or assigned first: the others must be alike."""
    initial: RawTensor | None = None
    source: Tensor | None = None
    current: Tensor | None = None


class Variables:
    """The variables of a file, while its operators are walked in their order.

    Parameters
    ----------
    model : RawModel
    name : str
        The file's, for messages.
    tensor : callable
        The graph's tensor of one of the first subgraph's.
    """

    def __init__(self, model: RawModel, name: str, tensor: Callable[[int], Tensor]) -> None:
        self._model, self._name, self._tensor = model, name, tensor
        self._names = unique_names(model)
        self._states: dict[str, _State] = {}
        self._handles: dict[int, str] = {}

    def nodes(self, raw: RawOperator, label: str) -> list[Node]:
        """Makes the nodes of one of ``STATE_OPERATORS``: none, but for a second reading."""
        check_operands(raw, label)
        if raw.name == "CALL_ONCE":
            self._call(raw, label)
        elif raw.name == "VAR_HANDLE":
            self._handles[raw.outputs[0]] = self._named(raw, self._model, label)
        elif raw.name == "READ_VARIABLE":
            return self._read(raw, label)
        else:
            self._assign(raw, label)
        return []

    def made(self) -> tuple[Variable, ...]:
        """All that a run reads before it assigns them, once the operators are walked."""
        return tuple(
            Variable(key, state.source.name, state.current.name, self._initial(state))
            for key, state in self._states.items()
            if state.source is not None and state.current is not None
        )

    def _initial(self, state: _State) -> np.ndarray:
        assert state.initial is not None and state.source is not None
        tensor = make_tensor(state.initial, state.initial.name, self._name)
        if state.source.dtype != tensor.dtype:
            tensor = lowered(tensor, tensor.name)
        assert tensor.data is not None
        return tensor.data.reshape(state.source.shape)

    def _named(self, raw: RawOperator, part: RawSubgraph, label: str) -> str:
        """The variable that a VAR_HANDLE is of."""
        dtype = part.tensors[raw.outputs[0]].dtype
        if dtype != "resource":
            raise ModelError(f"{label}: the output must be a resource, not {dtype}")
        name, container = raw.options["SharedName"] or "", raw.options["Container"] or ""
        state = self._states.setdefault(name, _State(container))
        if state.container != container:
            raise UnsupportedError(
                f"{label}: variable {quoted(name)} must be in the container"
                f" {quoted(state.container)}, not {quoted(container)}"
            )
        return name

    def _handled(self, raw: RawOperator, handles: dict[int, str], label: str) -> str:
        """The variable of an operator's first input."""
        if raw.inputs[0] not in handles:
            raise ModelError(f"{label}: input 0 must be what a VAR_HANDLE before it gave")
        return handles[raw.inputs[0]]

    def _call(self, raw: RawOperator, label: str) -> None:
        number = raw.options["InitSubgraphIndex"]
        if not 0 <= number <= len(self._model.others):
            raise ModelError(
                f"{label}: the subgraph must be one of {len(self._model.others) + 1}, not"
                f" subgraph {number}"
            )
        if not number:
            raise ModelError(f"{label}: the subgraph must be another, not 0, which calls it")
        part = self._model.others[number - 1]
        handles: dict[int, str] = {}
        for operator in part.operators:
            where = f"{label}, subgraph {number}: {operator.name} (operator {operator.index})"
            if operator.name not in STATE_OPERATORS or operator.name == "READ_VARIABLE":
                raise UnsupportedError(
                    f"{where}: a subgraph that is called once must only assign constants to"
                    " variables"
                )
            if operator.name == "CALL_ONCE":
                raise ModelError(f"{where}: a subgraph that is called once must not call another")
            check_operands(operator, where)
            if operator.name == "VAR_HANDLE":
                handles[operator.outputs[0]] = self._named(operator, part, where)
            else:
                self._set_first(operator, part, self._handled(operator, handles, where), where)

    def _set_first(self, raw: RawOperator, part: RawSubgraph, key: str, label: str) -> None:
        value, state = part.tensors[raw.inputs[1]], self._states[key]
        if value.data is None:
            raise UnsupportedError(
                f"{label}: variable {quoted(key)} must be assigned a constant, and"
                f" {quoted(value.name)} is none"
            )
        if state.source is not None or state.current is not None:
            raise UnsupportedError(
                f"{label}: variable {quoted(key)} must be assigned before the network reads or"
                " assigns it"
            )
        self._check_alike(key, value, label)
        state.initial = value

    def _read(self, raw: RawOperator, label: str) -> list[Node]:
        key, index = self._handled(raw, self._handles, label), raw.outputs[0]
        state = self._states[key]
        if state.current is None and state.initial is None:
            raise ModelError(f"{label}: variable {quoted(key)} is read before it is assigned")
        self._check_alike(key, self._model.tensors[index], label)
        tensor = self._tensor(index)
        if state.current is None:
            state.source = state.current = tensor
            return []
        attributes = {"shape": tensor.shape}
        names = (state.current.name,), (tensor.name,)
        return [Node(f"read_variable_{raw.index}", "reshape", *names, attributes)]

    def _assign(self, raw: RawOperator, label: str) -> None:
        key, index = self._handled(raw, self._handles, label), raw.inputs[1]
        tensor = self._tensor(index)
        if tensor.data is not None:
            raise UnsupportedError(
                f"{label}: variable {quoted(key)} must be assigned what is computed, and"
                f" {quoted(tensor.name)} is a constant"
            )
        self._check_alike(key, self._model.tensors[index], label)
        self._states[key].current = tensor

    def _check_alike(self, key: str, raw: RawTensor, label: str) -> None:
        """A variable keeps its type, shape and meaning: what moves are its bytes."""
        state = self._states[key]
        first = state.example = state.example or raw
        same = (raw.dtype, raw.shape) == (first.dtype, first.shape)
        if not same:
            _refuse_change(
                label, key, *(f"{part.dtype} of shape {part.shape}" for part in (first, raw))
            )
        if not len(first.scales):
            # bytes without a meaning are the codes of the others
            state.example = raw
            return
        if not len(raw.scales):
            return
        (scale, point), (other, other_point) = map(_meaning, (first, raw))
        if abs(scale - other) > SAME_SCALE * scale or point != other_point:
            _refuse_change(
                label,
                key,
                f"of scale {scale:g} and zero point {point}",
                f"{other:g} and {other_point}",
            )


def _meaning(raw: RawTensor) -> tuple[float, int]:
    """The scale and zero point; 0 for what has none."""
    if len(raw.scales) != 1 or len(raw.zero_points) != 1:
        return 0.0, 0
    return float(raw.scales[0]), int(raw.zero_points[0])


def _refuse_change(label: str, key: str, was: str, is_now: str) -> NoReturn:
    raise ModelError(f"{label}: variable {quoted(key)} must stay {was}, not {is_now}")


def check_operands(raw: RawOperator, label: str) -> None:
    """ModelError unless a state operator has the inputs and outputs that it must."""
    wanted = _OPERANDS[raw.name]
    found = len(raw.inputs), len(raw.outputs)
    if found != wanted or -1 in raw.inputs:
        raise ModelError(
            f"{label}: inputs and outputs must be {wanted[0]} and {wanted[1]}, all there, not"
            f" {found[0]} and {found[1]}"
        )
