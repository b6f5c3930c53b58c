"""Divides the output channels of layers among boards: one graph per board.

A tensor is whole on all boards, or each board has some of its channels, the last axis. A layer that
is divided reads whole tensors and makes some channels of its result; what works channel by channel
goes on with those. Where others need the whole tensor, an ``all_gather`` on the host joins the
parts of all boards: its input is the board's own part, its output the whole.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from ...graph import Graph, Node, Quantization, Tensor
from ...operators import Family, find
from .cut import activations_of, require_stateless
from .estimate import weights_of

ALL_GATHER = "all_gather"
"""An operator that the compiler leaves to the host, and no kernel has: boards do it together."""

Bounds = tuple[int, ...]
"""The channels of board k are those from number k to before number k + 1."""

_DIVISIBLE = ("conv2d", "fully_connected", "transpose_conv2d")
_BY_CHANNEL = ("quantize", "dequantize", "resize_nearest", "resize_bilinear")


def divisible_layers(graph: Graph, boards: int) -> list[Node]:
    """The layers whose output channels can be divided among so many boards."""
    return [node for node in graph.nodes if _is_divisible(graph, node, boards)]


def _is_divisible(graph: Graph, node: Node, boards: int) -> bool:
    if node.operator not in _DIVISIBLE or not weights_of(graph, node):
        return False
    if node.attributes.get("groups", 1) != 1 or not _are_codes(graph, node):
        return False
    channels = graph.tensors[node.outputs[0]].shape[-1]
    constants = [graph.tensors[name] for name in node.inputs[1:] if name]
    per_channel = all(
        tensor.data is not None and tensor.shape[:1] == (channels,) for tensor in constants
    )
    plain = not any(isinstance(value, np.ndarray) for value in node.attributes.values())
    return per_channel and plain and channels >= boards


def _are_codes(graph: Graph, node: Node) -> bool:
    """Tells whether a node makes int8 of int8: float32 sums would depend on how many there are."""
    names = (*activations_of(node, graph.tensors), *node.outputs)
    return len(node.outputs) == 1 and all(graph.tensors[name].dtype == "int8" for name in names)


def channel_bounds(channels: int, shares: Sequence[float], multiple: int) -> Bounds:
    """Divides channels by shares: in multiples of a number if there are enough, each board some."""
    if channels % multiple or channels // multiple < len(shares):
        multiple = 1
    units, total = channels // multiple, sum(shares)
    ends = [round(units * part / total) for part in itertools.accumulate(shares, initial=0)]
    # at least one each
    for number in range(1, len(ends)):
        ends[number] = max(ends[number], ends[number - 1] + 1)
    for number in range(len(ends) - 1, 0, -1):
        ends[number] = min(ends[number], units - (len(shares) - number))
    return tuple(end * multiple for end in ends)


def shard_graph(
    graph: Graph, chosen: Collection[str], shares: Sequence[float], multiple: int = 1
) -> list[Graph]:
    """Divides a network among boards.

    Parameters
    ----------
    graph : Graph
        All passes done.
    chosen : collection of str
        The names of the layers whose channels are divided: some of ``divisible_layers``.
    shares : sequence of float
        How much each board gets.
    multiple : int
        Channels that a board computes at a time.

    Returns
    -------
    list of Graph
        One per board. The first one's outputs are the network's; those of the others are all that
        they join.

    Raises
    ------
    UnsupportedError
        If the network keeps something from run to run.
    """
    require_stateless(graph)
    sharder = _Sharder(graph, frozenset(chosen), shares, multiple)
    for node in graph.nodes:
        sharder.add(node)
    sharder.gather(graph.outputs)
    return [sharder.graph_of(board) for board in range(len(shares))]


class _Sharder:
    """Builds the graphs of all boards, node by node."""

    def __init__(
        self, graph: Graph, chosen: frozenset[str], shares: Sequence[float], multiple: int
    ) -> None:
        self._graph, self._chosen = graph, chosen
        self._shares, self._multiple = shares, multiple
        self._nodes: list[list[Node]] = [[] for _ in shares]
        self._tensors: list[dict[str, Tensor]] = [{} for _ in shares]
        self._whole = {name for name, tensor in graph.tensors.items() if tensor.data is not None}
        self._whole |= set(graph.inputs) | {""}
        self._bounds: dict[str, Bounds] = {}
        self._parts: dict[str, str] = {}
        self._gathered: list[str] = []

    def add(self, node: Node) -> None:
        """Adds a node of the network to all boards."""
        read = activations_of(node, self._graph.tensors)
        if node.name in self._chosen:
            self.gather(read)
            channels = self._graph.tensors[node.outputs[0]].shape[-1]
            bounds = channel_bounds(channels, self._shares, self._multiple)
            self._divide(node, bounds, {name: 0 for name in node.inputs[1:]}, {})
            return
        found = {self._bounds.get(name) for name in read}
        bounds = found.pop() if len(found) == 1 else None
        if bounds is not None and self._follow(node, read, bounds):
            return
        self.gather(read)
        self._whole.update(node.outputs)
        for nodes in self._nodes:
            nodes.append(node)

    def gather(self, names: Iterable[str]) -> None:
        """Joins the parts of tensors that are not whole yet."""
        for name in names:
            if name in self._whole:
                continue
            bounds = self._bounds[name]
            attributes = {"axis": len(self._graph.tensors[name].shape) - 1, "bounds": bounds}
            node = Node(
                f"{ALL_GATHER}_{len(self._gathered)}",
                ALL_GATHER,
                (self._parts[name],),
                (name,),
                attributes,
            )
            for nodes in self._nodes:
                nodes.append(node)
            self._gathered.append(name)
            self._whole.add(name)

    def graph_of(self, board: int) -> Graph:
        """The graph of a board."""
        nodes, tensors = self._nodes[board], {**self._graph.tensors, **self._tensors[board]}
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        inputs = self._graph.inputs
        return self._graph.replace(
            inputs=inputs,
            outputs=tuple(self._gathered) if board else self._graph.outputs,
            nodes=tuple(nodes),
            tensors={name: t for name, t in tensors.items() if name in used | set(inputs)},
        )

    def _follow(self, node: Node, read: list[str], bounds: Bounds) -> bool:
        """Adds a node that works channel by channel to each board, for the channels that it has;
        False: it does not work so."""
        graph, family = self._graph, find(node.operator).family
        if not _are_codes(graph, node) or any(name not in self._parts for name in read):
            return False
        source, result = (graph.tensors[name].shape for name in (read[0], node.outputs[0]))
        constants = [name for name in node.inputs if name and name not in read]
        if node.operator == "depthwise_conv2d":
            multiplier = result[-1] // source[-1]
            weights, *others = constants
            axes = {weights: 3, **dict.fromkeys(others, 0)}
            return self._divide(node, tuple(bound * multiplier for bound in bounds), axes, {})
        if source[-1] != result[-1]:
            return False
        if family is Family.BINARY:
            if any(graph.tensors[name].shape[-1] != result[-1] for name in read):
                return False
            shapes = {name: graph.tensors[name].shape for name in constants}
            axes = {
                name: len(shape) - 1
                for name, shape in shapes.items()
                if shape and shape[-1] == result[-1] != 1
            }
            return self._divide(node, bounds, axes, {})
        if node.operator == "lookup" or (not constants and self._is_by_channel(node, family)):
            shape = {"shape": result} if "shape" in node.attributes else {}
            return self._divide(node, bounds, {}, shape)
        return False

    def _is_by_channel(self, node: Node, family: Family) -> bool:
        rank = len(self._graph.tensors[node.inputs[0]].shape)
        attributes = node.attributes
        if family is Family.POOLING:
            return True
        if node.operator == "mean":
            return all(axis % rank != rank - 1 for axis in attributes["axes"])
        if node.operator == "pad":
            return not any(attributes["padding"][-1])
        if node.operator == "reshape":
            return True
        return family is Family.UNARY or node.operator in _BY_CHANNEL

    def _divide(
        self,
        node: Node,
        bounds: Bounds,
        axes: Mapping[str, int],
        changes: Mapping[str, Sequence[int]],
    ) -> bool:
        """Adds a node whose result has some channels on each board; ``axes``: those of constants
        along which channels lie."""
        result = node.outputs[0]
        part = self._parts[result] = self._fresh(f"{result}.part")
        self._bounds[result] = bounds
        for board, (nodes, tensors) in enumerate(zip(self._nodes, self._tensors, strict=True)):
            first, end = bounds[board : board + 2]
            whole = self._graph.tensors[result]
            tensors[part] = dataclasses.replace(
                whole, name=part, shape=(*whole.shape[:-1], end - first)
            )
            whole_inputs = node.name in self._chosen
            names = [n if whole_inputs else self._parts.get(n, n) for n in node.inputs]
            for at, name in enumerate(node.inputs):
                if name in axes:
                    names[at] = self._fresh(f"{name}.part")
                    constant = self._graph.tensors[name]
                    tensors[names[at]] = _sliced(constant, names[at], first, end, axes[name])
            attributes = dict(node.attributes)
            for key, shape in changes.items():
                attributes[key] = (*shape[:-1], end - first)
            if attributes.get("groups", 1) != 1:
                read = activations_of(node, self._graph.tensors)[0]
                own = self._bounds[read]
                attributes["groups"] = own[board + 1] - own[board]
            nodes.append(
                dataclasses.replace(
                    node, inputs=tuple(names), outputs=(part,), attributes=attributes
                )
            )
        return True

    def _fresh(self, name: str) -> str:
        while name in self._graph.tensors:
            name += "_"
        return name


def _sliced(tensor: Tensor, name: str, first: int, end: int, axis: int) -> Tensor:
    """Some channels of a constant, with their quantisation."""
    assert tensor.data is not None
    index = (*[slice(None)] * axis, slice(first, end))
    data = np.ascontiguousarray(tensor.data[index])
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scale) > 1:
        quantization = Quantization(
            quantization.scale[first:end], quantization.zero_point[first:end], quantization.axis
        )
    shape = (*tensor.shape[:axis], end - first, *tensor.shape[axis + 1 :])
    return Tensor(name, shape, tensor.dtype, quantization, data)
