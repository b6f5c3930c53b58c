"""One entry to all kernels: a node of a graph, run on a batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, UnsupportedError
from ..graph import Graph, Node
from ..operators import OPERATORS, Family, entry, find
from .lns.codes import arithmetic_of
from .lns.registry import lns_kernel
from .onnx.recurrent import recurrent
from .onnx.registry import ONNX
from .table import Kernel, Operands, Table
from .tflite.lstm import lstm
from .tflite.registry import TFLM

SeveralKernel = Callable[[Node, Graph, Operands], tuple[np.ndarray, ...]]

Values = dict[str, np.ndarray]
"""Tensors by name, each with a batch axis."""

_TABLES: Mapping[str, Table] = {"tflm": TFLM, "onnx": ONNX}
"""The host's kernels, for each reference that a graph of int8 codes may follow."""

KERNELS_OF_SEVERAL: Mapping[str, Mapping[str, SeveralKernel]] = {
    "tflm": {"lstm": lstm},
    "onnx": {"recurrent": recurrent},
}
"""Operators of several outputs, likewise."""


def kernel_of(operator: str, semantics: str) -> Kernel | None:
    """Returns the host's kernel of an operator in a graph's ``semantics``, None if it has none."""
    if arithmetic_of(semantics) is not None:
        return lns_kernel(operator)
    return entry(_TABLES[semantics], operator)


def kernels_of(semantics: str) -> Mapping[str, Kernel]:
    """Returns the host's kernels of a graph's ``semantics``, by the operator's name."""
    found = {operator: kernel_of(operator, semantics) for operator in OPERATORS}
    return {operator: kernel for operator, kernel in found.items() if kernel is not None}


def run(node: Node, graph: Graph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs one node with the reference's integer semantics.

    Results depend on the values alone: not on how an array lies in memory, nor on which other
    samples are in the batch.

    Parameters
    ----------
    node : Node
    graph : Graph
        Where the node's tensors are described; constants are taken from there.
    inputs : sequence of arrays
        The node's activations in the order of ``node.inputs``, constants left out. Each has its
        tensor's type, and its shape with a batch of any size in the leading axis.

    Returns
    -------
    list of arrays
        The node's outputs, with the same batch.

    Raises
    ------
    InputError
        If an array is not of its tensor's type and shape, or their number is wrong.
    UnsupportedError
        If there is no kernel for the operator.
    """
    several = KERNELS_OF_SEVERAL.get(graph.semantics, {})
    if node.operator in several:
        return list(several[node.operator](node, graph, _operands(node, graph, inputs)))
    kernel = kernel_of(node.operator, graph.semantics)
    if kernel is None:
        known = tuple(kernels_of(graph.semantics))
        raise UnsupportedError(
            f"node {node.name}: operator must be one of {known}, not {node.operator}"
        )
    laid = [np.asarray(value, order="C") for value in inputs]
    count = max(map(len, laid), default=1)
    if count < 2 or not _is_float(node, graph):
        return [kernel(node, graph, _operands(node, graph, laid))]
    # float sums of a sample must not depend on how many there are
    made = []
    for index in range(count):
        sample = [value[index : index + 1] if len(value) > 1 else value for value in laid]
        made.append(kernel(node, graph, _operands(node, graph, sample)))
    return [np.concatenate(made)]


def _is_float(node: Node, graph: Graph) -> bool:
    """Tells whether a node adds up or approximates float numbers.

    NumPy and BLAS choose the order of additions, and which instructions they use, by an array's
    shape and strides.
    """
    operator = find(node.operator)
    if operator.family is Family.LAYER:
        # logarithmic codes have transposed convolutions in float only
        logarithmic = arithmetic_of(graph.semantics) is not None
        turned = logarithmic and node.operator == "transpose_conv2d"
        return turned or graph.tensors[node.inputs[1]].quantization is None
    if node.operator == "softmax" and graph.semantics == "tflm":
        # of int8 codes it adds up integers
        return graph.tensors[node.inputs[0]].dtype != "int8"
    return operator.sums_floats


def run_graph(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Runs a whole graph and returns every activation by tensor name.

    Parameters and errors are as for ``run``, with the graph's inputs. Of a graph with variables the
    images of a batch follow each other in time, from the initial values on.
    """
    return run_graph_from(graph, inputs, initial_state(graph))[0]


def initial_state(graph: Graph) -> Values:
    """Returns the initial values of the graph's variables, by their sources."""
    return {variable.source: variable.initial for variable in graph.variables}


def run_graph_from(
    graph: Graph, inputs: Sequence[np.ndarray], state: Values
) -> tuple[Values, Values]:
    """As ``run_graph``, from what variables hold; returns what they hold then, too."""
    if len(inputs) != len(graph.inputs):
        raise InputError(f"{graph.name} takes {len(graph.inputs)} inputs, not {len(inputs)}")
    fed = dict(zip(graph.inputs, inputs, strict=True))
    if not graph.variables:
        return _run_nodes(graph, fed), state
    runs = []
    for at in range(len(inputs[0]) if inputs else 1):
        one = {name: value[at : at + 1] for name, value in fed.items()}
        runs.append(_run_nodes(graph, {**one, **state}))
        state = {each.source: runs[-1][each.result].copy() for each in graph.variables}
    return {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}, state


def _run_nodes(graph: Graph, values: Values) -> Values:
    for node in graph.nodes:
        activations = [values[name] for name in node.inputs if name in values]
        values.update(zip(node.outputs, run(node, graph, activations), strict=True))
    return values


def _operands(node: Node, graph: Graph, inputs: Sequence[np.ndarray]) -> list[Any]:
    names = [name for name in node.inputs if name and graph.tensors[name].data is None]
    if len(names) != len(inputs):
        raise InputError(f"node {node.name} takes {len(names)} activations, not {len(inputs)}")
    for name, value in zip(names, inputs, strict=True):
        tensor = graph.tensors[name]
        if value.dtype != tensor.dtype or value.shape[1:] != tensor.shape[1:]:
            raise InputError(
                f"node {node.name}: {name} must be {tensor.dtype} of shape {tensor.shape} or a"
                f" batch of that, not {value.dtype} of shape {value.shape}"
            )
    queue = iter(inputs)
    # those of a file may be views, those of a program are not
    constants = [
        None
        if not name or graph.tensors[name].data is None
        else np.asarray(graph.tensors[name].data, order="C")
        for name in node.inputs
    ]
    return [
        next(queue) if name and constant is None else constant
        for name, constant in zip(node.inputs, constants, strict=True)
    ]
