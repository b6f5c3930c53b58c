"""Single layers of a network as programs of their own, for networks too large to simulate whole."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration

from ..compiler import compile_graph
from ..errors import InputError
from ..graph import Graph, Node
from ..passes import optimize
from ..program import Program
from ..program.steps import RunStep


def single_layers(
    graph: Graph, configuration: Configuration, names: Sequence[str]
) -> list[tuple[str, Program]]:
    """The program of each of some layers, whose inputs are the layer's.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    names : sequence of str
        As the mapping table has them.

    Returns
    -------
    list of (name, program)

    Raises
    ------
    InputError
        If there is no such layer, or the device does not run it.
    """
    graph = optimize(graph)
    nodes = {node.name: node for node in graph.nodes}
    found = []
    for name in names:
        if name not in nodes:
            raise InputError(f"layer {name!r} is unknown: there are {', '.join(nodes)}")
        program = compile_graph(_alone(graph, nodes[name]), configuration)
        if not any(isinstance(step, RunStep) for step in program.steps):
            raise InputError(
                f"layer {name!r} must run on the device, but does not: {program.layers[0].why}"
            )
        found.append((name, program))
    return found


def _alone(graph: Graph, node: Node) -> Graph:
    tensors = {name: graph.tensors[name] for name in (*node.inputs, *node.outputs) if name}
    inputs = tuple(
        dict.fromkeys(name for name in node.inputs if name and tensors[name].data is None)
    )
    return Graph(node.name, inputs, node.outputs, tensors, (node,), graph.semantics)
