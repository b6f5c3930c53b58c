"""Real networks, node by node: each kernel makes tflm's tensor of tflm's inputs, code for code."""

import numpy as np
import pytest
from shared_data import shared
from slipstick import kernels
from slipstick.frontends import load
from slipstick.frontends.tflite import tensor_indices
from slipstick.graph import Graph
from slipstick.verify.tflm_reference import TflmReference

pytestmark = pytest.mark.borrows

NETWORKS = {
    "ic01_resnet8_int8": 16,
    "kws01_dscnn_int8": 13,
    "vww01_mobilenetv1_025_int8": 31,
    "ad01_int8": 10,
    "hello_world_int8": 3,
    "tf2_mobilenet_v2_1.0_224_ptq": 68,
}
"""Operators of each network."""


def real_inputs(name: str) -> np.ndarray | None:
    """A few inputs that someone recorded, where there are any."""
    if name.startswith("ic01"):
        with np.load(shared("data/cifar10/ic01_cifar10_200.npz")) as archive:
            return (archive["x"][:3].astype(np.int16) - 128).astype(np.int8)
    if name.startswith("kws01"):
        with np.load(shared("data/kws/kws01_mfcc_1000.npz")) as archive:
            return archive["x"][:3].reshape(-1, 49, 10, 1)
    return None


def random_inputs(graph: Graph, count: int) -> np.ndarray:
    """Seeded codes over the whole range."""
    tensor = graph.tensors[graph.inputs[0]]
    limits = np.iinfo(tensor.dtype)
    rng = np.random.default_rng(7)
    shape = (count, *tensor.shape[1:])
    return rng.integers(limits.min, limits.max + 1, shape, dtype=tensor.dtype)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer(name: str) -> None:
    path = shared(f"models/{name}.tflite")
    graph, reference = load(path), TflmReference(path)
    assert len(graph.nodes) == NETWORKS[name]
    assert set(graph.tensors) <= set(tensor_indices(path.read_bytes()))
    x = random_inputs(graph, 1 if "224" in name else 2)
    recorded = real_inputs(name)
    if recorded is not None:
        x = np.concatenate([x, recorded])
    layers = {graph.inputs[0]: x} | reference.run_layers(x)
    mismatches = {}
    for node in graph.nodes:
        inputs = [layers[name] for name in node.inputs if name in layers]
        (output,) = kernels.run(node, graph, inputs)
        expected = layers[node.outputs[0]]
        assert output.shape == expected.shape and output.dtype == expected.dtype, node.name
        mismatches[node.name] = int(np.sum(output != expected))
    assert not any(mismatches.values()), mismatches
    np.testing.assert_array_equal(reference.run(x)[0], layers[graph.outputs[0]])
