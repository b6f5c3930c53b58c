"""Writes a network for training, whose parameters are real numbers, as a float .onnx file."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..network import INPUT, FloatParameters, Initial, Kind, Layer, TrainingNetwork

OPSET = 17
IR_VERSION = 8
_BATCH = "batch"
_OUTPUT = "logits"


def write_float_network(network: TrainingNetwork, parameters: Initial) -> bytes:
    """The bytes of an .onnx file that takes N x C x H x W float32 and gives logits.

    Averages are true means, whatever their windows' sizes.

    Parameters
    ----------
    network : TrainingNetwork
        Its last layer is fully connected.
    parameters : mapping of FloatParameters
        By layer.
    """
    nodes: list[Any] = []
    constants: list[Any] = []
    for layer in network.layers:
        last = layer.name == network.layers[-1].name
        made = _OUTPUT if last else layer.name
        exact = f"{made}/exact" if layer.relu else made
        inputs = list(layer.inputs)
        if layer.learns:
            arrays = _constants(network, layer, parameters[layer.name])
            constants += [numpy_helper.from_array(array, name) for name, array in arrays.items()]
            inputs += arrays
        operator, given = _operator(network, layer)
        nodes.append(helper.make_node(operator, inputs, [exact], made, **given))
        if layer.relu:
            nodes.append(helper.make_node("Relu", [exact], [made], f"{made}/relu"))
    height, width, channels = network.shape
    graph = helper.make_graph(
        nodes,
        network.name,
        [_value(INPUT, (channels, height, width))],
        [_value(_OUTPUT, (network.classes,))],
        constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="slipstick"
    )
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _value(name: str, shape: tuple[int, ...]) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, (_BATCH, *shape))


def _is_matrix(network: TrainingNetwork, layer: Layer) -> bool:
    """Tells whether a layer is fully connected, behind ``FLATTEN`` or another such layer."""
    before = network.by_name.get(layer.inputs[0])
    if before is None or layer.kind is not Kind.CONVOLUTION:
        return False
    return before.kind is Kind.FLATTEN or _is_matrix(network, before)


def _operator(network: TrainingNetwork, layer: Layer) -> tuple[str, dict[str, Any]]:
    """ONNX's operator, and its attributes."""
    if layer.kind is Kind.ADD:
        return "Add", {}
    if layer.kind is Kind.FLATTEN:
        return "Flatten", {}
    if _is_matrix(network, layer):
        return "Gemm", {"transB": 1}
    top, bottom, left, right = layer.padding
    given = {
        "kernel_shape": list(layer.kernel),
        "strides": list(layer.stride),
        "pads": [top, left, bottom, right],
    }
    if layer.kind in (Kind.MAX_POOL, Kind.AVERAGE_POOL):
        return ("MaxPool" if layer.kind is Kind.MAX_POOL else "AveragePool"), given
    groups = network.shapes[layer.name][2] if layer.kind is Kind.DEPTHWISE else 1
    return "Conv", given | {"group": groups}


def _constants(
    network: TrainingNetwork, layer: Layer, own: FloatParameters
) -> dict[str, np.ndarray]:
    """A layer's weights and biases by their names, in ONNX's order."""
    weights = own.weights
    if layer.kind is Kind.DEPTHWISE:
        weights = weights.transpose(3, 0, 1, 2)
    elif _is_matrix(network, layer):
        weights = _flat_weights(network, layer, weights)
    else:
        weights = weights.transpose(0, 3, 1, 2)
    return {
        f"{layer.name}.weights": np.ascontiguousarray(weights, np.float32),
        f"{layer.name}.bias": own.bias.astype(np.float32),
    }


def _flat_weights(network: TrainingNetwork, layer: Layer, weights: np.ndarray) -> np.ndarray:
    """Weights (outputs, inputs) of pictures that ONNX flattens channel by channel."""
    before = network.by_name[layer.inputs[0]]
    rows = weights.reshape(len(weights), -1)
    if before.kind is not Kind.FLATTEN:
        return rows
    height, width, channels = network.shapes[before.inputs[0]]
    return rows.reshape(-1, height, width, channels).transpose(0, 3, 1, 2).reshape(rows.shape)
