"""Writes a network that was trained with rounding as a file of logarithmic codes."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...kernels.lns.codes import magnitudes
from ...quantize import FloatNetwork
from ...quantize.lns_writer import Writer
from ..network import INPUT
from .formats import AwareFormat

if TYPE_CHECKING:
    from .tuning import Tuned


def write_logarithmic(tuned: "Tuned") -> bytes:
    """The .onnx file of a trained network, in the form of ``slipstick quantize``.

    Scales are those of the training, where the quantiser would choose new ones, and
    biases are not corrected: the training has done that. A limited format's numbers are clipped, so
    that an array with more codes keeps to the limit.

    Raises
    ------
    ValueError
        If it was trained in float32.
    """
    form, file, network = tuned.form, tuned.file, tuned.network
    if form is None:
        raise ValueError("a network that was trained in float32 has no logarithmic codes")
    scales = {
        file.input if name == INPUT else name: np.float32(scale)
        for name, scale in network.scales.items()
    }
    writer = Writer(
        tuned.float_model(),
        file.planned,
        scales,
        form.arithmetic,
        doubled=form.is_doubled,
        weight_scales={
            file.weights_name(name): scale for name, scale in network.weight_scales.items()
        },
    )
    model = writer.model()
    _clip(model, form)
    return model.SerializeToString()


def round_after_training(
    path: str | os.PathLike[str], samples: np.ndarray, form: AwareFormat
) -> bytes:
    """The .onnx file that ``slipstick quantize`` makes of a float network, in a format.

    Parameters
    ----------
    path : path
    samples : array
        As the network takes them, to choose scales by.
    form : AwareFormat

    Raises
    ------
    InputError, ModelError, UnsupportedError, DeviceError
        As ``FloatNetwork.quantize_logarithmic``.
    """
    data = FloatNetwork(path).quantize_logarithmic(samples, form.arithmetic)
    model = onnx.ModelProto.FromString(data)
    _clip(model, form)
    return model.SerializeToString()


def _clip(model: Any, form: AwareFormat) -> None:
    """Clips what becomes codes to what a limited format's largest code stands for."""
    if not form.is_limited:
        return
    graph = model.graph
    constants = {item.name: item for item in graph.initializer}
    makers = {name: node.op_type for node in graph.node for name in node.output}
    largest = float(magnitudes(form.arithmetic)[-1])
    nodes = []
    for node in graph.node:
        # codes that were put together are limited already
        if node.op_type == "LogQuantizeLinear" and makers.get(node.input[0]) != "Concat":
            source, made = node.input[0], f"{node.output[0]}/limited"
            limit = np.float32(numpy_helper.to_array(constants[node.input[1]]) * largest)
            for name, value in (("low", -limit), ("high", limit)):
                graph.initializer.append(
                    numpy_helper.from_array(np.array(value, np.float32), f"{made}/{name}")
                )
            ends = [f"{made}/low", f"{made}/high"]
            nodes.append(helper.make_node("Clip", [source, *ends], [made], made))
            node.input[0] = made
        nodes.append(node)
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
