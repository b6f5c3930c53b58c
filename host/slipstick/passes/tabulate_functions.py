"""Makes one table of functions of the same code that meet again, as x times its sigmoid does."""

from collections.abc import Mapping, Sequence

from ..graph import Graph, Node, Tensor
from ..operators import Family, Unary, find
from .clean import fresh_name, replace_nodes
from .tables import LARGEST_ISLAND, tabulate_nodes

_SEMANTICS = "tflm", "onnx"


def tabulate_functions(graph: Graph) -> Graph:
    """With a lookup instead of each operator of two activations that depend on one code.

    Converters write SiLU as a sigmoid and a product, and hard-swish in four steps. A device needs
    a multiplier of activations for the product, and none for the lookup.
    """
    if graph.semantics not in _SEMANTICS:
        return graph
    order = {node.name: number for number, node in enumerate(graph.nodes)}
    producers = {name: node for node in graph.nodes for name in node.outputs}
    return replace_nodes(graph, lambda graph, node: _lowered(graph, node, producers, order))


def _lowered(
    graph: Graph, node: Node, producers: Mapping[str, Node], order: Mapping[str, int]
) -> tuple[list[Node], list[Tensor]] | None:
    if find(node.operator).family is not Family.BINARY:
        return None
    operands = _operands(graph, node)
    if operands is None or len(operands) < 2:
        return None
    nodes, waiting = [node], operands
    while len(nodes) < LARGEST_ISLAND:
        # what all depend on is made before all others
        makers = [producers[name] for name in waiting if name in producers]
        last = max(makers, key=lambda maker: order[maker.name], default=None)
        if last is None or len(waiting) == 1 and not _only_for(graph, waiting, nodes):
            break
        more = _operands(graph, last)
        if more is None:
            break
        nodes.append(last)
        waiting = waiting - set(last.outputs) | more
    if len(waiting) > 1:
        return None
    (source,) = waiting
    nodes.reverse()
    table = fresh_name(graph, f"{node.outputs[0]}_table")
    made = Node("_".join(each.name for each in nodes), "lookup", (source, table), node.outputs)
    codes = tabulate_nodes(graph, source, nodes)
    return [made], [Tensor(table, codes.shape, "int8", data=codes)]


def _only_for(graph: Graph, names: set[str], nodes: Sequence[Node]) -> bool:
    """Tells whether nothing else reads these activations."""
    readers = {reader.name for name in names for reader in graph.consumers(name)}
    return names.isdisjoint(graph.results) and readers <= {node.name for node in nodes}


def _operands(graph: Graph, node: Node) -> set[str] | None:
    """The activations whose codes at one place make a node's code there; None: it is no function
    of such codes."""
    operator = find(node.operator)
    if isinstance(operator, Unary):
        elementwise = operator.tabulated
    elif operator.family is Family.BINARY:
        elementwise = operator.broadcasts
    else:
        elementwise = node.operator in ("quantize", "lookup")
    if not elementwise or len(node.outputs) != 1:
        return None
    result, found = graph.tensors[node.outputs[0]], set[str]()
    for name in node.inputs:
        tensor = graph.tensors[name]
        if tensor.data is None:
            if (tensor.shape, tensor.dtype) != (result.shape, "int8"):
                return None
            found.add(name)
        elif tensor.data.size != 1 and node.operator != "lookup":
            return None
    return found if result.dtype == "int8" else None
