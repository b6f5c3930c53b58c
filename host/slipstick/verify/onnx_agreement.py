"""Tells of which tensors the ONNX rule gives onnxruntime's own codes, and within how many others.

This is the one place that knows. Whoever compares both, layer by layer and on onnxruntime's own
inputs of each layer, asks ``agreements`` by how much a tensor may differ.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..frontends.onnx.builder import Source
from ..frontends.onnx.reader import RawModel, RawNode
from ..graph import Graph, Node
from ..kernels.onnx.scaling import layer_factors
from ..kernels.tflite.scaling import CODES, scalar
from ..operators import Family, find, onnx_pooling
from .onnx_saturation import saturating_nodes

FLOAT32_WHOLE = 1 << 24
"""Up to here float32 holds every whole number."""

MOVES = frozenset(
    (
        *("ArgMax", "ArgMin", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather"),
        "GatherND",
        *("GlobalMaxPool", "Identity", "Pad", "ReduceMax", "ReduceMin", "Reshape"),
        *("Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Operators that pick numbers and compute none, beside pooling."""

CLAMPS = frozenset(("Clip", "Relu"))
MEANS = frozenset(("GlobalAveragePool", "ReduceMean"))
PRODUCTS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))
FOLDED = frozenset(("Add", "BatchNormalization", "Div", "Mul", "Sub"))
"""Operators that go into a layer's weights and bias where their other operand is constant."""

INTEGER_SUMS = frozenset(("ConvInteger", "MatMulInteger"))
CODED_SUMS = frozenset(("QGemm", "QLinearConv", "QLinearMatMul"))

MEAN = "it is a mean of float32 numbers, in onnxruntime's order: ties differ"
"""A reason: between equal scales 1 of n means of n codes is a tie, if n is even."""

_SAME_CODES = ("reshape", "transpose")


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Tells how near the rule is to onnxruntime in a tensor.

    Parameters
    ----------
    bound : int or None
        By how many codes they may differ: 0 where they are the same on every machine. None where
        nothing is promised: of float32 numbers, and of codes behind several float32 operators.
    reason : str
    """

    bound: int | None
    reason: str


def agreements(
    model: RawModel, graph: Graph, sources: Mapping[str, Source]
) -> dict[str, Agreement]:
    """Returns the agreement of each tensor that a node of the file writes, by the graph's name.

    Parameters
    ----------
    model : RawModel
    graph : Graph
        As the front-end reads the model.
    sources : mapping of Source by the graph's name
        As the front-end gives them with the graph.
    """
    writers = {name: node for node in model.nodes for name in node.outputs}
    finder = _Finder(model, graph, writers)
    return {
        name: finder.agreement(name, source)
        for name, source in sources.items()
        if source.name in writers
    }


class _Finder:
    """Looks at the file's nodes between codes, and at the graph's layers for their sums."""

    def __init__(self, model: RawModel, graph: Graph, writers: Mapping[str, RawNode]) -> None:
        self._model, self._graph, self._writers = model, graph, writers
        self._makers = {name: node for node in graph.nodes for name in node.outputs}
        self._saturating = {node.index for node in saturating_nodes(model)}

    def agreement(self, tensor: str, source: Source) -> Agreement:
        node = self._writers[source.name]
        if self._graph.tensors[tensor].dtype == "float32":
            return Agreement(bound=None, reason="it is float32")
        if node.operator == "QuantizeLinear":
            return self._quantized(tensor, node)
        if node.index in self._saturating:
            return Agreement(bound=None, reason="onnxruntime saturates it on x86 without VNNI")
        if node.operator in INTEGER_SUMS:
            return Agreement(bound=0, reason="it is an integer sum")
        if node.operator in CODED_SUMS:
            return self._coded_sum(tensor, node)
        if node.operator == "QLinearGlobalAveragePool":
            return Agreement(bound=0, reason="it is an integer sum times onnxruntime's factor")
        if _moves(node):
            return Agreement(bound=0, reason="codes only move")
        if node.operator.startswith("QLinear") or node.operator == "Resize":
            return Agreement(bound=1, reason=f"{node.operator} computes in float32")
        return Agreement(bound=None, reason=f"{node.operator} computes codes or scales of its own")

    def _coded_sum(self, tensor: str, node: RawNode) -> Agreement:
        layer = self._layer(tensor)
        if layer is None:
            return Agreement(bound=1, reason="its operands are both computed")
        if node.attributes.get("alpha", 1.0) != 1.0:
            return Agreement(bound=1, reason="alpha is part of its factor")
        if self._largest_sums(layer).max() < FLOAT32_WHOLE:
            return Agreement(bound=0, reason="it is an integer sum below 2^24")
        return Agreement(bound=1, reason="sums beyond 2^24 are rounded once more by onnxruntime")

    def _quantized(self, tensor: str, node: RawNode) -> Agreement:
        if any(name not in self._model.constants for name in node.inputs[1:] if name):
            return Agreement(bound=None, reason="its scale is computed")
        between = self._between(node.inputs[0])
        computing = [own for own in between if not _moves(own) and own.operator not in CLAMPS]
        if not computing:
            return Agreement(bound=0, reason="numbers are only picked, clamped and quantised")
        layers = [own for own in computing if own.operator in PRODUCTS]
        if len(layers) == 1 and all(own is layers[0] or self._folds(own) for own in computing):
            return self._real_sum(tensor, layers[0], folded=len(computing) > 1)
        if len(computing) > 1:
            return Agreement(bound=None, reason="it is computed by several float32 operators")
        (only,) = computing
        if only.operator in MEANS or only.operator in onnx_pooling(moves_codes=False):
            return Agreement(bound=1, reason=MEAN)
        return Agreement(bound=1, reason=f"{only.operator} computes in float32")

    def _between(self, name: str) -> list[RawNode]:
        """The nodes from codes, or the network's inputs, to a tensor of real numbers."""
        found: dict[int, RawNode] = {}
        waiting = [name]
        while waiting:
            node = self._writers.get(waiting.pop())
            if node is None or node.operator == "DequantizeLinear" or node.index in found:
                continue
            found[node.index] = node
            waiting += node.inputs
        # what constants are computed of is none of the runtime's arithmetic on codes
        return [node for node in found.values() if not self._is_constant(node.outputs)]

    def _is_constant(self, names: Sequence[str]) -> bool:
        """Tells whether tensors depend on the file's constants alone."""
        waiting, seen = list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if not name or name in seen or name in self._model.constants:
                continue
            seen.add(name)
            node = self._writers.get(name)
            if node is None:
                return False
            waiting += node.inputs
        return True

    def _folds(self, node: RawNode) -> bool:
        computed = [name for name in node.inputs if name and not self._is_constant([name])]
        return node.operator in FOLDED and len(computed) == 1

    def _real_sum(self, tensor: str, layer: RawNode, *, folded: bool) -> Agreement:
        """A layer's sum of float32 products."""
        reason = "it is a sum of float32 products, in onnxruntime's order"
        node = self._layer(tensor)
        if node is None:
            return Agreement(bound=1, reason=reason)
        graph = self._graph
        factors = layer_factors(
            *(graph.tensors[name] for name in (*node.inputs[:2], *node.outputs))
        )
        weights = graph.tensors[node.inputs[1]].data
        assert weights is not None
        taps = weights.size / (weights.shape[3] if _is_depthwise(node) else weights.shape[0])
        # its additions' errors go to either side: about the root of their number remains
        drift = factors * self._largest_sums(node) * math.sqrt(taps) / FLOAT32_WHOLE
        if folded or not self._has_whole_bias(layer):
            # the rule's bias is whole in units of the sums
            drift = drift + factors / 2
        return Agreement(bound=max(1, math.ceil(drift.max())), reason=reason)

    def _has_whole_bias(self, layer: RawNode) -> bool:
        if layer.operator == "MatMul" or len(layer.inputs) < 3 or not layer.inputs[2]:
            return True
        source = self._writers.get(layer.inputs[2])
        return source is not None and source.operator == "DequantizeLinear"

    def _layer(self, tensor: str) -> Node | None:
        """The layer with constant codes for weights that a tensor's codes are of, if any."""
        node = self._makers.get(tensor)
        while node is not None and node.operator in _SAME_CODES:
            node = self._makers.get(node.inputs[0])
        if node is None or find(node.operator).family is not Family.LAYER:
            return None
        described = [self._graph.tensors[name] for name in (*node.inputs[:2], node.outputs[0])]
        if any(item.quantization is None for item in described) or described[1].data is None:
            return None
        return node

    def _largest_sums(self, node: Node) -> np.ndarray:
        """Computes the largest magnitude of each output channel's sums; float64."""
        source, described = (self._graph.tensors[name] for name in node.inputs[:2])
        assert described.data is not None and described.quantization is not None
        axis = 3 if _is_depthwise(node) else 0
        weights = np.moveaxis(described.data.astype(np.float64), axis, 0)
        points = described.quantization.zero_point.astype(np.float64)
        weights = weights - points.reshape(-1, *(1,) * (weights.ndim - 1))
        zero_point = scalar(source.quantization)[1]
        largest = max(abs(end - zero_point) for end in CODES[source.dtype])
        sums = np.abs(weights).reshape(len(weights), -1).sum(axis=1) * largest
        bias = (
            self._graph.tensors[node.inputs[2]].data
            if len(node.inputs) > 2 and node.inputs[2]
            else None
        )
        return sums if bias is None else sums + np.abs(bias.astype(np.float64))


def _moves(node: RawNode) -> bool:
    return node.operator in MOVES or node.operator in onnx_pooling(moves_codes=True)


def _is_depthwise(node: Node) -> bool:
    return node.operator == "depthwise_conv2d"
