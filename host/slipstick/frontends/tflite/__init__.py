"""The front-end for int8 TFLite networks: a file becomes a graph, or is refused with the reason."""

import dataclasses
from pathlib import Path

from ...errors import ModelError, UnsupportedError
from ...graph import Graph, Node, Tensor
from ..files import quoted, read_file
from .advice import advice, refuse_unknown
from .factors import check_factors
from .folding import fold
from .legacy import check_types, conversion, legacy_tensors, lowered
from .lstm import LSTM, SequenceLstms
from .operator import Operator
from .operators import SPLITTERS, readers
from .reader import RawModel, RawOperator, read_model, unique_names
from .tensors import make_tensor
from .variables import STATE_OPERATORS, Variables


def load_tflite(path: str | Path) -> Graph:
    """Reads an int8 TFLite network.

    Raises
    ------
    ModelError
        If the file cannot be read or is malformed.
    UnsupportedError
        If it holds something that Slipstick does not run; the message names the operator.
    """
    return load_tflite_bytes(read_file(path), Path(path).stem)


def load_tflite_bytes(data: bytes, name: str = "model") -> Graph:
    """As ``load_tflite``, from bytes; ``name`` becomes the graph's name."""
    return _Builder(read_model(data, name), name).graph()


def tensor_indices(data: bytes, name: str = "model") -> dict[str, int]:
    """The file's index of each tensor, by its name in the graph.

    Raises
    ------
    ModelError
        If the file is malformed.
    """
    return {tensor: index for index, tensor in enumerate(unique_names(read_model(data, name)))}


class _Builder:
    """Walks the operators in the file's order, in which they must be able to run."""

    def __init__(self, model: RawModel, name: str) -> None:
        self._model = model
        self._name = name
        self._readers = readers()
        self._names = unique_names(model)
        self._tensors: dict[int, Tensor] = {}
        self._written: set[int] = set()
        self._legacy = legacy_tensors(model)
        self._lifted: set[str] = set()
        self._variables = Variables(model, name, self._tensor)
        self._lstms = SequenceLstms(model, name, self._names)
        self._made: dict[str, Tensor] = {}

    def graph(self) -> Graph:
        """The whole network."""
        model = self._model
        if not model.operators or not model.inputs or not model.outputs:
            raise ModelError(
                f"{self._name} must have operators, inputs and outputs, not"
                f" {len(model.operators)}, {len(model.inputs)} and {len(model.outputs)}"
            )
        refuse_unknown(model, (*self._readers, *SPLITTERS, *STATE_OPERATORS, LSTM), self._name)
        for index in model.inputs:
            self._check_input(index)
        nodes = [node for raw in model.operators for node in self._nodes(raw)]
        for index in model.outputs:
            if index not in self._written or index in model.inputs:
                raise ModelError(f"{self._what(index)} is an output, and no operator writes it")
        variables = (*self._variables.made(), *self._lstms.variables)
        border = self._border()
        nodes[:0] = [node for node, _ in border if node.inputs[0] in self._inputs]
        nodes += [node for node, _ in border if node.outputs[0] in self._outputs]
        tensors = {tensor.name: tensor for _, tensor in border}
        tensors |= self._made
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        used |= {name for variable in variables for name in (variable.source, variable.result)}
        tensors |= {
            tensor.name: tensor
            for index, tensor in self._tensors.items()
            if tensor.name in used or index in model.inputs
        }
        return Graph(
            self._name,
            self._inputs,
            self._outputs,
            tensors,
            tuple(nodes),
            variables=variables,
        )

    @property
    def _inputs(self) -> tuple[str, ...]:
        return tuple(self._names[index] for index in self._model.inputs)

    @property
    def _outputs(self) -> tuple[str, ...]:
        return tuple(self._names[index] for index in self._model.outputs)

    def _border(self) -> list[tuple[Node, Tensor]]:
        """Conversions of the network's uint8 inputs and outputs, and those tensors."""
        made = []
        for index in (*self._model.inputs, *dict.fromkeys(self._model.outputs)):
            if index in self._legacy:
                raw, twin = self._model.tensors[index], self._tensors[index]
                outside = make_tensor(raw, self._names[index], self._name)
                outside = dataclasses.replace(outside, shape=twin.shape)
                ends = (outside, twin) if index in self._model.inputs else (twin, outside)
                made.append((conversion(f"quantize_{outside.name}", *ends), outside))
        return made

    def _what(self, index: int) -> str:
        return f"{self._name}: tensor {index} {quoted(self._names[index])}"

    def _tensor(self, index: int) -> Tensor:
        if index not in self._tensors:
            tensor = make_tensor(self._model.tensors[index], self._names[index], self._name)
            if index in self._legacy:
                tensor = lowered(tensor, self._twin(index))
            if index not in self._model.inputs and tensor.data is None and tensor.shape[:1] != (1,):
                # not a batch, but an axis like others: no operator may take it for one
                tensor = dataclasses.replace(tensor, shape=(1, *tensor.shape))
                self._lifted.add(tensor.name)
            self._tensors[index] = tensor
        return self._tensors[index]

    def _twin(self, index: int) -> str:
        """The name of a lowered tensor: its own, or a new one at the network's border."""
        name = self._names[index]
        while index in (*self._model.inputs, *self._model.outputs) and name in self._names:
            name += "_int8"
        return name

    def _check_input(self, index: int) -> None:
        raw = self._model.tensors[index]
        # converters write -1 for what is free, beside a shape that says 1
        for axis, (free, size) in enumerate(zip(raw.signature, raw.shape, strict=False)):
            if axis and free == -1 and size == 1:
                raise UnsupportedError(
                    f"{self._what(index)}: sizes must be fixed, and axis {axis} is free: convert"
                    " the network with fixed sizes (an input_shape or input_signature without None)"
                )
        tensor = self._tensor(index)
        if tensor.data is not None or index in self._written:
            raise ModelError(f"{self._what(index)} must be an input once, and no constant")
        if not tensor.shape or tensor.shape[0] != 1:
            raise UnsupportedError(
                f"{self._what(index)}: the batch (dimension 0) must be 1, not shape {tensor.shape}:"
                " convert the network with a batch of 1, any number of images can be run"
            )
        self._written.add(index)

    def _nodes(self, raw: RawOperator) -> list[Node]:
        """The nodes of one operator: one, or as many as it has outputs."""
        label = f"{self._name}: {raw.name} (operator {raw.index})"
        if len(raw.outputs) == 1:
            label = f"{label[:-1]}, output {quoted(self._names[raw.outputs[0]])})"
        try:
            return self._made_of(raw, label)
        except (ModelError, UnsupportedError) as error:
            message = str(error)
            if message.startswith(label):
                raise
            # of a tensor: who reads it tells where it is in the network
            raise type(error)(f"{label}: {message.removeprefix(f'{self._name}: ')}") from None

    def _made_of(self, raw: RawOperator, label: str) -> list[Node]:
        if raw.name in STATE_OPERATORS:
            return self._state_nodes(raw, label)
        if raw.name == LSTM:
            return [self._lstm_node(raw, label)]
        if raw.outputs and self._folds(raw):
            return []
        if raw.name not in self._readers and raw.name not in SPLITTERS:
            raise UnsupportedError(
                f"{label}: inputs must be constants, as it computes sizes, and are not: convert the"
                " network with fixed sizes"
            )
        if not raw.outputs or len(raw.outputs) > 1 and raw.name not in SPLITTERS:
            raise ModelError(f"{label}: outputs must be 1, not {len(raw.outputs)}")
        operator = self._operator(raw, label)
        if raw.name in SPLITTERS:
            made = SPLITTERS[raw.name](operator)
        else:
            made = [self._readers[raw.name](operator)]
            check_factors(operator, made[0][0], made[0][2])
        nodes = []
        for number, (kind, names, attributes) in enumerate(made):
            name = f"{kind}_{raw.index}" + (f"_{number}" if len(made) > 1 else "")
            nodes.append(Node(name, kind, names, (operator.outputs[number].name,), attributes))
        self._made |= operator.made
        self._written.update(raw.outputs)
        return nodes

    def _state_nodes(self, raw: RawOperator, label: str) -> list[Node]:
        """Makes the nodes of an operator on variables.

        The value that it assigns must be there; the value that it reads is there from then on.
        """
        for index in raw.inputs[1:]:
            if index >= 0 and index not in self._written and not self._tensor_is_constant(index):
                raise ModelError(
                    f"{label}: input {quoted(self._names[index])} is read before it is written"
                )
        for index in raw.outputs:
            if index in self._written or self._tensor_is_constant(index):
                raise ModelError(f"{label}: the output must be written once, and no constant")
        nodes = self._variables.nodes(raw, label)
        self._written.update(raw.outputs)
        return nodes

    def _lstm_node(self, raw: RawOperator, label: str) -> Node:
        states = self._lstms.states(raw, label)
        self._tensors |= states
        self._written.update(states)
        node, behind = self._lstms.node(raw, self._operator(raw, label))
        self._made |= {tensor.name: tensor for tensor in behind}
        self._written.update(raw.outputs)
        return node

    def _folds(self, raw: RawOperator) -> bool:
        """Makes an operator's output a constant if it is known; tells whether it is."""
        index = raw.outputs[0]
        known = {*self._written, *self._model.inputs}
        if len(raw.outputs) != 1 or index in known or self._tensor_is_constant(index):
            return False
        inputs = []
        for source in raw.inputs:
            tensor = self._tensor(source) if source >= 0 else None
            if tensor is not None and tensor.data is None:
                if source not in known:
                    return False
                # as the file has it
                shape = tensor.shape[tensor.name in self._lifted :]
                tensor = dataclasses.replace(tensor, shape=shape)
            inputs.append(tensor)
        output = make_tensor(self._model.tensors[index], self._names[index], self._name)
        data = fold(raw.name, raw.options, inputs, output)
        if data is not None:
            self._tensors[index] = dataclasses.replace(output, data=data)
        return data is not None

    def _tensor_is_constant(self, index: int) -> bool:
        known = self._tensors.get(index)
        held = self._model.tensors[index].data is not None
        return held or known is not None and known.data is not None

    def _operator(self, raw: RawOperator, label: str) -> Operator:
        """An operator with its tensors, which are there when it runs."""
        legacy = check_types(raw, self._model, self._names, label)
        inputs = tuple(self._tensor(index) if index >= 0 else None for index in raw.inputs)
        outputs = tuple(self._tensor(index) for index in raw.outputs)
        for index, tensor in zip(raw.inputs, inputs, strict=True):
            if tensor is not None and tensor.data is None and index not in self._written:
                raise ModelError(
                    f"{label}: input {quoted(tensor.name)} is read before it is written"
                )
        for index, tensor in zip(raw.outputs, outputs, strict=True):
            if tensor.data is not None or index in self._written or raw.outputs.count(index) > 1:
                raise ModelError(f"{label}: the output must be written once, and no constant")
        used = {tensor.name for tensor in (*inputs, *outputs) if tensor is not None}
        lifted = frozenset(used & self._lifted)
        return Operator(
            label, raw.options, inputs, outputs, legacy, lifted, advice=advice(self._model)
        )
