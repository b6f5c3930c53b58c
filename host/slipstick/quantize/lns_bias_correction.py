"""Biases that make up for the mean of each channel's errors (bias correction).

M. Nagel et al., "Data-free quantization through weight equalization and bias correction", ICCV
2019; here with means that were seen, layer after layer, on what the corrected layers before give.
"""

from collections.abc import Mapping

import numpy as np

from .. import kernels
from ..graph import Graph
from ..kernels.lns.codes import arithmetic_of
from ..kernels.lns.layers import finish_layer, layer_scale
from ..kernels.lns.registry import layer_sums

_LARGEST = (1 << 31) - 1


def corrected_biases(
    graph: Graph, images: np.ndarray, wanted: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Each layer's bias in units of its sums, int32 (outputs,), by the layer's name.

    Parameters
    ----------
    graph : Graph
        Of logarithmic codes, with one input.
    images : array, (images, ...)
        What it takes.
    wanted : mapping
        The mean, (outputs,), that the results of some layers have in the float network.
    """
    arithmetic = arithmetic_of(graph.semantics)
    assert arithmetic is not None
    values, made = {graph.inputs[0]: images}, dict[str, np.ndarray]()
    for node in graph.nodes:
        activations = [values[name] for name in node.inputs if name in values]
        if node.name not in wanted:
            values.update(zip(node.outputs, kernels.run(node, graph, activations), strict=True))
            continue
        source, weights, output = (
            graph.tensors[name] for name in (*node.inputs[:2], node.outputs[0])
        )
        sums = layer_sums(node, graph, [*activations, weights.data])
        means = sums.reshape(-1, sums.shape[-1]).mean(axis=0)
        exact = wanted[node.name] / layer_scale(source, weights, arithmetic) - means
        bias = np.rint(np.clip(exact, -_LARGEST, _LARGEST)).astype(np.int32)
        tensors = (source, weights, output)
        values[output.name] = finish_layer(sums, bias, tensors, node.attributes, arithmetic)
        made[node.name] = bias
    return made
