"""A float ONNX network with logarithmic codes: scales and biases by the errors that they make."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ..frontends.onnx import load_onnx_bytes
from .lns_bias_correction import corrected_biases
from .lns_plan import plan
from .lns_scales import best_scales
from .lns_writer import Writer

SAMPLED = 1 << 16
"""Numbers of a tensor that a scale is chosen by."""

KEPT = 1 << 24
"""And that are kept to choose them from, at most."""

CORRECTED = 128
"""Samples that biases are corrected by, at most."""

Feeds = dict[str, np.ndarray]


def quantize_logarithmic(
    model: Any, batches: Sequence[Feeds], arithmetic: ArrayArithmetic, *, doubled: bool
) -> bytes:
    """The file of the network with logarithmic codes.

    Parameters
    ----------
    model : ModelProto
        Float, its constants folded, its nodes in order.
    batches : sequence of mappings
        The network's inputs, from which scales are chosen, and biases that make up for the mean of
        each channel's errors.
    arithmetic : ArrayArithmetic
    doubled : bool
        Whether inputs get two codes a number where that is possible.
    """
    planned = plan(model.graph)
    samples = sampled(model, batches, planned.coded)
    scales = {
        name: best_scales(samples[name].reshape(1, -1), arithmetic)[0] for name in planned.coded
    }
    few = batches[: max(1, CORRECTED // len(next(iter(batches[0].values()))))]
    means = channel_means(model, few, planned.ends)
    writer = Writer(model, planned, scales, arithmetic, doubled=doubled)
    made = writer.model()
    graph = load_onnx_bytes(made.SerializeToString(), "network")
    outputs = {writer.names[output]: output for output in writer.biases if output in means}
    wanted = {name: means[output] for name, output in outputs.items()}
    images = np.concatenate([batch[graph.inputs[0]] for batch in few])
    biases = corrected_biases(graph, images, wanted)
    constants = {item.name: item for item in made.graph.initializer}
    for name, bias in biases.items():
        constant = writer.biases[outputs[name]]
        constants[constant].CopyFrom(numpy_helper.from_array(bias, constant))
    return made.SerializeToString()


def _observed(model: Any, batches: Iterable[Feeds], names: Sequence[str]) -> Iterator[Feeds]:
    """Tensors of a float network, for each batch."""
    import onnxruntime

    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    inputs = {item.name for item in model.graph.input}
    known = {item.name for item in model.graph.output}
    wanted = [name for name in names if name not in inputs]
    shown.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in wanted if name not in known
    )
    session = onnxruntime.InferenceSession(
        shown.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for feeds in batches:
        values = session.run(wanted, feeds) if wanted else []
        yield feeds | {n: np.asarray(v) for n, v in zip(wanted, values, strict=True)}


def sampled(model: Any, batches: Sequence[Feeds], names: Sequence[str]) -> Feeds:
    """Numbers that tensors of a float network have, some at random, and the ends of all."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    ends: dict[str, list[float]] = {name: [] for name in names}
    for values in _observed(model, batches, names):
        for name in names:
            flat = values[name].reshape(-1)
            parts[name].append(flat[:: -(-flat.size * len(batches) // KEPT)])
            ends[name] += [float(flat.min()), float(flat.max())]
    thinned = {}
    for name, arrays in parts.items():
        whole = np.concatenate(arrays)
        chosen = np.random.default_rng(0).permutation(len(whole))[:SAMPLED]
        thinned[name] = np.append(whole[chosen], (min(ends[name]), max(ends[name])))
    return thinned


def channel_means(model: Any, batches: Iterable[Feeds], axes: Mapping[str, int]) -> Feeds:
    """The mean of each channel of tensors, whose channels are along these axes."""
    sums: dict[str, list[np.ndarray]] = {name: [] for name in axes}
    for values in _observed(model, batches, tuple(axes)):
        for name, axis in axes.items():
            array = np.moveaxis(values[name], axis, -1)
            sums[name].append(array.reshape(-1, array.shape[-1]).mean(axis=0, dtype=np.float64))
    return {name: np.mean(parts, axis=0) for name, parts in sums.items()}
