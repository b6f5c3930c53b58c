"""Finds products that onnxruntime saturates at 16 bits on x86 processors without VNNI.

There it multiplies uint8 activations by int8 weights with an instruction that adds two products
and saturates the sum at 16 bits: its results are not the operator's. On such a machine it is no
reference for these networks.
"""

import functools
from typing import Any

import numpy as np

from ..frontends.onnx.reader import RawModel, RawNode

_LARGEST_PAIR = (1 << 15) - 1
_PLACES = {
    "ConvInteger": (1, 2),
    "MatMulInteger": (1, 2),
    "QGemm": (3, 2),
    "QLinearConv": (3, 2),
    "QLinearMatMul": (3, 2),
}
"""By operator: which inputs are the weights, and the activation's zero point."""


def saturating_nodes(model: RawModel) -> list[RawNode]:
    """Returns the nodes where two products of uint8 by int8 may add up beyond 16 bits."""
    return [node for node in model.nodes if _may_saturate(node, model)]


def _may_saturate(node: RawNode, model: RawModel) -> bool:
    places = _PLACES.get(node.operator)
    if places is None:
        return False
    weights = model.constants.get(_name(node, places[0]))
    zero_point = model.constants.get(_name(node, places[1]))
    if zero_point is not None and zero_point.dtype != np.uint8:
        return False
    if weights is None:
        return True
    if weights.dtype != np.int8 or weights.size < 2:
        return False
    two = np.partition(np.abs(weights.astype(np.int64)).ravel(), -2)[-2:]
    return 255 * int(two.sum()) > _LARGEST_PAIR


def _name(node: RawNode, index: int) -> str:
    return node.inputs[index] if index < len(node.inputs) else ""


@functools.cache
def runtime_saturates() -> bool:
    """Tries whether onnxruntime saturates such sums on this machine."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    taps = 16
    info: Any = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "weights"], ["y"])],
        "pairs",
        [info("x", TensorProto.UINT8, [1, taps])],
        [info("y", TensorProto.INT32, [1, 8])],
        [numpy_helper.from_array(np.full((taps, 8), 127, np.int8), "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    sums = np.asarray(session.run(None, {"x": np.full((1, taps), 255, np.uint8)})[0])
    return int(sums.flat[0]) != 255 * 127 * taps
