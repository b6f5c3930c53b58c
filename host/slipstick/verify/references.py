"""Opens the references that a network's results are held to, by the kind of its file."""

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from .. import kernels
from ..errors import DeviceError
from ..frontends import is_onnx
from ..frontends.files import read_file
from ..frontends.semantics import with_semantics
from ..frontends.tflite import load_tflite_bytes
from ..frontends.tflite.legacy import legacy_tensors
from ..frontends.tflite.reader import read_model
from ..graph import Graph
from ..kernels.lns.codes import arithmetic_of
from ..operators import TFLITE, find
from .onnx_agreement import Agreement
from .tflm_reference import TflmReference

Values = dict[str, np.ndarray]
Note = Callable[[str, np.ndarray, np.ndarray], None]
"""Told a tensor's name, and what it is by two ways."""


def _is_in_tflm(operator: str) -> bool:
    """Tells whether tflm has an operator, by its name in the schema, that LiteRT has."""
    record = TFLITE.get(operator)
    return operator != "TILE" if record is None or not record.tflite else record.tflite.in_tflm


class Reference(Protocol):
    """Every layer's tensor of a network, to the last bit."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the network's inputs."""
        ...

    def run_layers(self, *inputs: np.ndarray) -> Values:
        """Every tensor that it has, by the graph's name, for a batch of inputs."""
        ...

    def reset_state(self) -> None:
        """The next image is the first one again, for a network that keeps something."""
        ...


class Runtime(Protocol):
    """A runtime that is near a network's reference.

    Members
    -------
    agreements : mapping of Agreement by the graph's name
        How near the rule is to it, of each tensor of which that is known.
    saturating : tuple of str
        Nodes that it may compute wrongly on this machine.
    """

    agreements: Mapping[str, Agreement]
    saturating: tuple[str, ...]

    def differences(self, inputs: Mapping[str, np.ndarray], note: Note) -> Values:
        """Calls ``note`` with each layer's tensor, its own codes and the rule's; returns every
        tensor that it computes from end to end, by the graph's name."""
        ...

    def optimised_outputs(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """The outputs by another way of the same runtime, if it has one, by the graph's name."""
        ...


class Definition:
    """A semantics as it is defined: the host's kernels, on the graph as it was read.

    ONNX's; that of logarithmic codes; and TensorFlow Lite's of uint8 codes, and of operators that
    tflm has not, which no runtime at hand computes.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._state = kernels.initial_state(graph)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the network's inputs."""
        return self._graph.inputs

    def run_layers(self, *inputs: np.ndarray) -> Values:
        """Every tensor of the graph, by name, for a batch of inputs; images follow each other in
        time, and those of the call before, if the network keeps something."""
        values, self._state = kernels.run_graph_from(self._graph, inputs, self._state)
        return values

    def reset_state(self) -> None:
        """The next image is the first one again."""
        self._state = kernels.initial_state(self._graph)


class TflmTail:
    """tflm, but for float32 results of a C library's functions: those are held to the definition.

    It is its own runtime, and shows by how much tflm's differ.

    Parameters
    ----------
    model : path
    graph : Graph
    tensors : collection of str
        Those float32 results.
    """

    agreements: Mapping[str, Agreement] = MappingProxyType({})
    saturating: tuple[str, ...] = ()

    def __init__(self, model: Path, graph: Graph, tensors: Collection[str]) -> None:
        self._tflm, self._definition = TflmReference(model), Definition(graph)
        self._tensors = tensors

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the network's inputs."""
        return self._tflm.inputs

    def run_layers(self, *inputs: np.ndarray) -> Values:
        """Every tensor that an operator writes, by name, for a batch of inputs."""
        own = self._definition.run_layers(*inputs)
        return {**self._tflm.run_layers(*inputs), **{name: own[name] for name in self._tensors}}

    def reset_state(self) -> None:
        """The next image is the first one again."""
        self._tflm.reset_state()
        self._definition.reset_state()

    def differences(self, inputs: Mapping[str, np.ndarray], note: Note) -> Values:
        """Calls ``note`` with each of those tensors, tflm's and the definition's."""
        values = [inputs[name] for name in self.inputs]
        shown, own = self._tflm.run_layers(*values), self._definition.run_layers(*values)
        for name in self._tensors:
            note(name, shown[name], own[name])
        return {name: shown[name] for name in self._tensors}

    def optimised_outputs(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """tflm has no other way."""
        return {}


def library_tensors(graph: Graph) -> list[str]:
    """Returns float32 tensors behind a transcendental function, however many operators before."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        if graph.tensors[node.outputs[0]].dtype == "float32" and (
            find(node.operator).transcendental or any(name in found for name in node.inputs)
        ):
            found |= dict.fromkeys(node.outputs)
    return list(found)


class LayerRuntime:
    """onnxruntime, layer by layer.

    End to end a code that is rounded otherwise in an early layer changes many later ones; so each
    layer is held to the rule on the runtime's own inputs of it.

    Parameters
    ----------
    model : path or bytes
    graph : Graph

    Members
    -------
    agreements : mapping of Agreement by the graph's name
    saturating : tuple of str
        Both as ``OnnxReference`` has them.
    optimised : OnnxReference or None
        The runtime with all of its optimisations; None where it refuses the network so.
    """

    def __init__(self, model: Path | bytes, graph: Graph) -> None:
        from .onnxruntime_reference import OnnxReference

        self._graph = graph
        self._runtime = OnnxReference(model)
        self.agreements, self.saturating = self._runtime.agreements, self._runtime.saturating
        try:
            self.optimised = OnnxReference(model, fused=True)
        except DeviceError:
            self.optimised = None

    def optimised_outputs(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """The network's outputs from end to end, as the optimised runtime has them."""
        if self.optimised is None:
            return {}
        given = [inputs[name] for name in self._graph.inputs]
        return dict(zip(self.optimised.outputs, self.optimised.run(*given), strict=True))

    def differences(self, inputs: Mapping[str, np.ndarray], note: Note) -> Values:
        """Calls ``note`` with each layer's tensor, the runtime's codes and the rule's.

        Returns every tensor that the runtime shows, by the graph's name.
        """
        shown = self._runtime.run_layers(*(inputs[name] for name in self._graph.inputs))
        values = {**inputs, **shown}
        for node in self._graph.nodes:
            operands = [values[name] for name in node.inputs if name in values]
            made = kernels.run(node, self._graph, operands)
            for name, value in zip(node.outputs, made, strict=True):
                if name in shown:
                    note(name, shown[name], value)
                else:
                    values[name] = value
        return shown


class ExactLayers:
    """The nearest codes of what a logarithmic network's layers are exactly.

    Parameters
    ----------
    graph : Graph
    """

    agreements: Mapping[str, Agreement] = MappingProxyType({})
    saturating: tuple[str, ...] = ()

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def optimised_outputs(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """None."""
        return {}

    def differences(self, inputs: Mapping[str, np.ndarray], note: Note) -> Values:
        """Calls ``note`` with each layer's tensor, the exact codes and the rule's, of its inputs.

        Nothing is computed from end to end: it returns no tensors.
        """
        graph = self._graph
        values = kernels.run_graph(graph, [inputs[name] for name in graph.inputs])
        for node in graph.nodes:
            operands = [
                values.get(name, graph.tensors[name].data) if name else None for name in node.inputs
            ]
            codes = kernels.exact(node, graph, operands)
            if codes is not None:
                note(node.outputs[0], codes, values[node.outputs[0]])
        return {}


def open_references(
    path: str | os.PathLike[str], semantics: str | None = None
) -> tuple[Reference, Runtime | None]:
    """The reference of a network, and a runtime that is near it, if there is another one.

    Parameters
    ----------
    path : path
    semantics : str, optional
        Whose rounding the network follows; other than its file's kind's, it is held to their
        definition.

    Raises
    ------
    ModelError, UnsupportedError
        If the network cannot be read, or cannot follow those semantics.
    DeviceError
        If the runtime is missing or refuses the network.
    """
    place = Path(path)
    data = read_file(place)
    if not is_onnx(data):
        if semantics not in (None, "tflm"):
            return Definition(with_semantics(load_tflite_bytes(data, place.stem), semantics)), None
        model = read_model(data, place.stem)
        unknown = not all(_is_in_tflm(operator.name) for operator in model.operators)
        if unknown or legacy_tensors(model):
            return Definition(load_tflite_bytes(data, place.stem)), None
        graph = load_tflite_bytes(data, place.stem)
        tensors = [] if graph.variables else library_tensors(graph)
        if tensors:
            tail = TflmTail(place, graph, tensors)
            return tail, tail
        return TflmReference(place), None
    from ..frontends.onnx import load_onnx

    graph = with_semantics(load_onnx(place), semantics)
    if arithmetic_of(graph.semantics) is not None:
        return Definition(graph), ExactLayers(graph)
    return Definition(graph), LayerRuntime(place, graph)
