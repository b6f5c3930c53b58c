"""Makes tables of float32 arithmetic between codes, as converters leave it in int8 networks."""

from collections.abc import Mapping

from ..graph import Graph, Node, Tensor
from ..kernels.tflite.real import is_elementwise
from .clean import fresh_name, replace_nodes
from .tables import CODES, LARGEST_ISLAND, tabulate_nodes


def _island(
    graph: Graph, last: Node, producers: Mapping[str, Node]
) -> tuple[str, list[Node]] | None:
    """The only codes that a quantize's depend on, place by place, and the nodes between them."""
    shape = graph.tensors[last.outputs[0]].shape
    sources, found, waiting = set[str](), {last.name}, [last]
    while waiting:
        node = waiting.pop()
        for name in node.inputs:
            tensor, producer = graph.tensors[name], producers.get(name)
            if tensor.data is not None and tensor.data.size == 1:
                continue
            if tensor.data is not None or tensor.shape != shape:
                return None
            if node.operator == "dequantize":
                sources.add(name)
            elif producer is None or not (
                producer.operator == "dequantize" or is_elementwise(producer.operator)
            ):
                return None
            elif producer.name not in found:
                found.add(producer.name)
                waiting.append(producer)
        if len(found) > LARGEST_ISLAND:
            return None
    if len(sources) != 1 or graph.tensors[(source := sources.pop())].dtype != "int8":
        return None
    return source, [node for node in graph.nodes if node.name in found]


def _lowered(
    graph: Graph, node: Node, producers: Mapping[str, Node]
) -> tuple[list[Node], list[Tensor]] | None:
    source, result = (graph.tensors[names[0]] for names in (node.inputs, node.outputs))
    if node.operator != "quantize" or (source.dtype, result.dtype) != ("float32", "int8"):
        return None
    island = _island(graph, node, producers)
    if island is None:
        return None
    name, nodes = island
    table = fresh_name(graph, f"{result.name}_table")
    functions = [each.operator for each in nodes if each.operator != "dequantize"]
    made = Node("_".join([*functions[:-1], node.name]), "lookup", (name, table), node.outputs)
    return [made], [Tensor(table, (CODES,), "int8", data=tabulate_nodes(graph, name, nodes))]


def tabulate_islands(graph: Graph) -> Graph:
    """With a table instead of each DEQUANTIZE, functions of one number, QUANTIZE.

    The functions between may be several, and meet again, as x times its sigmoid does, as long as
    each result depends on one code.
    """
    if graph.semantics != "tflm":
        return graph
    producers = {name: node for node in graph.nodes for name in node.outputs}
    return replace_nodes(graph, lambda graph, node: _lowered(graph, node, producers))
