"""A float ONNX network with logarithmic codes: where they stand, and the nodes that make them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from .frontends.onnx_logarithms import DOMAIN
from .kernels.log_codes import encode
from .log_scales import best_scales

LAYERS = ("Conv", "Gemm", "MatMul")
_AFFINE = ("Add", "Sub", "Mul", "Div", "BatchNormalization")
_CLAMPS = ("Relu", "Clip")
_MOVES = (
    *("Dropout", "Flatten", "Identity", "MaxPool", "GlobalMaxPool", "Reshape", "Slice", "Squeeze"),
    *("Split", "Transpose", "Unsqueeze"),
)
"""What they give out has the codes of what they take."""
_CODED = (
    *(*LAYERS, *_AFFINE, *_CLAMPS, "Sum", "Concat", "AveragePool", "GlobalAveragePool"),
    *("ReduceMean", "LeakyRelu", "PRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu"),
    *("Selu", "Softplus", "Gelu", "Mish", "Swish", "Sqrt", "Erf"),
)
"""What they give out gets codes of its own; what others give out stays float32."""
SAMPLED = 1 << 16
"""Numbers of a tensor that a scale is chosen by."""


@dataclass
class Plan:
    """What of a network gets codes.

    Parameters
    ----------
    coded : list of str
        Tensors with codes and scales of their own, in the order in which they are computed.
    like : dict
        Tensors that have the codes of one of those: its name by theirs.
    layers : list of node
        Layers whose weights get codes.
    """

    coded: list[str] = field(default_factory=list)
    like: dict[str, str] = field(default_factory=dict)
    layers: list[Any] = field(default_factory=list)


def plan(graph: Any) -> Plan:
    """Which tensors of a float graph get codes, and which layers' weights."""
    made, affine = Plan(), set[str]()
    constants = {item.name for item in graph.initializer}
    for item in graph.input:
        if item.name not in constants:
            made.coded.append(item.name)
            made.like[item.name] = item.name
    for node in graph.node:
        source, output = node.input[0] if node.input else "", node.output[0]
        rest = [name for name in node.input[1:] if name]
        if not node.input or all(name in constants for name in node.input if name):
            constants.update(node.output)
        elif node.op_type in _MOVES and source in made.like:
            made.like.update(dict.fromkeys(node.output, made.like[source]))
        elif node.op_type in LAYERS and rest and rest[0] in constants and source in made.like:
            made.layers.append(node)
            affine.add(output)
        elif node.op_type in _AFFINE and set(node.input) & affine:
            if sum(name not in constants for name in node.input if name) == 1:
                affine.add(output)
        if node.op_type in _CODED and not _waits(graph, output, affine, constants):
            made.coded.append(output)
            made.like[output] = output
    return made


def _waits(graph: Any, name: str, affine: set[str], constants: set[str]) -> bool:
    """Whether what reads a tensor is computed with it: it never stands in memory itself."""
    readers = [node for node in graph.node if name in node.input]
    if name in constants or len(readers) != 1 or any(name == item.name for item in graph.output):
        return name in constants
    (reader,) = readers
    if reader.op_type in _CLAMPS:
        return reader.input[0] == name
    others = [item for item in reader.input if item and item != name]
    return name in affine and reader.op_type in _AFFINE and all(o in constants for o in others)


def quantize_logarithmic(
    model: Any, batches: Iterable[dict[str, np.ndarray]], arithmetic: ArrayArithmetic
) -> bytes:
    """The file of the network with logarithmic codes.

    Parameters
    ----------
    model : ModelProto
        Float, its constants folded, its nodes in order.
    batches : iterable of mappings
        The network's inputs, from which scales are chosen.
    arithmetic : ArrayArithmetic
    """
    planned = plan(model.graph)
    samples = sampled(model, batches, planned.coded)
    scales = {
        name: best_scales(samples[name].reshape(1, -1), arithmetic)[0] for name in planned.coded
    }
    return _Writer(model, planned, scales, arithmetic).to_bytes()


def sampled(
    model: Any, batches: Iterable[dict[str, np.ndarray]], names: list[str]
) -> dict[str, np.ndarray]:
    """Numbers that tensors of a float network have, at most about ``SAMPLED`` of each."""
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
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for feeds in batches:
        values = feeds | dict(zip(wanted, session.run(wanted, feeds), strict=True))
        for name in names:
            parts[name].append(np.asarray(values[name]).reshape(-1))
    thinned = {}
    for name, arrays in parts.items():
        whole = np.concatenate(arrays)
        chosen = np.random.default_rng(0).permutation(len(whole))[:SAMPLED]
        thinned[name] = np.append(whole[chosen], (whole.min(), whole.max()))
    return thinned


class _Writer:
    """The network with codes, node by node.

    Parameters
    ----------
    model : ModelProto
        Float; it is rewritten in place.
    planned : Plan
    scales : dict
        Of the tensors that get codes, float32 by name.
    arithmetic : ArrayArithmetic
    """

    def __init__(
        self,
        model: Any,
        planned: Plan,
        scales: dict[str, np.float32],
        arithmetic: ArrayArithmetic,
    ) -> None:
        self._model, self._plan, self._scales = model, planned, scales
        self._arithmetic = arithmetic
        self._constants = {item.name: item for item in model.graph.initializer}
        self._nodes: list[Any] = []
        self._renamed: dict[str, str] = {}

    def to_bytes(self) -> bytes:
        """The file."""
        graph = self._model.graph
        layers = {id(node) for node in self._plan.layers}
        for item in graph.input:
            if item.name in self._scales:
                self._renamed[item.name] = f"{item.name}/real"
                self._code(item.name, item.name, f"{item.name}/real")
        for node in graph.node:
            if id(node) in layers:
                self._write_weights(node)
            node.input[:] = [self._renamed.get(name, name) for name in node.input]
            self._nodes.append(node)
            for index, name in enumerate(node.output):
                if name in self._scales:
                    node.output[index] = f"{name}/sum"
                    self._code(name, f"{name}/sum", name)
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in self._nodes]
        del graph.node[:]
        graph.node.extend(nodes)
        read = {name for node in nodes for name in node.input}
        kept = [item for item in graph.initializer if item.name in read]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        # what shape inference noted is of other tensors now
        del graph.value_info[:]
        self._model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return self._model.SerializeToString()

    def _code(self, name: str, source: str, result: str) -> None:
        """A tensor into codes, and back."""
        scale = self._constant(f"{name}/scale", np.array(self._scales[name], np.float32))
        self._linear("LogQuantizeLinear", (source, scale), f"{name}/codes")
        self._linear("LogDequantizeLinear", (f"{name}/codes", scale), result)

    def _write_weights(self, node: Any) -> None:
        """A layer's weights as codes with a scale a channel, its bias as int32."""
        weights = numpy_helper.to_array(self._constants[node.input[1]]).astype(np.float32)
        turned = any(item.name == "transB" and item.i for item in node.attribute)
        axis = 0 if node.op_type == "Conv" or turned else weights.ndim - 1
        rows = np.moveaxis(weights, axis, 0)
        flat = rows.reshape(len(rows), -1)
        scale = best_scales(flat, self._arithmetic)
        codes = encode(flat, scale[:, None].astype(np.float64), self._arithmetic)
        laid = np.ascontiguousarray(np.moveaxis(codes.reshape(rows.shape), 0, axis))
        name = f"{node.output[0]}/weights"
        inputs = self._constant(f"{name}/codes", laid), self._constant(f"{name}/scale", scale)
        self._linear("LogDequantizeLinear", inputs, name, axis=axis)
        source = self._scales[self._plan.like[node.input[0]]]
        node.input[1] = name
        self._write_bias(node, scale.astype(np.float64) * float(source))

    def _write_bias(self, node: Any, scale: np.ndarray) -> None:
        """A bias in units of the sums, unless the layer scales it or it does not fit them."""
        scaled = any(item.name in ("alpha", "beta") and item.f != 1 for item in node.attribute)
        if len(node.input) < 3 or node.input[2] not in self._constants or scaled:
            return
        bias = numpy_helper.to_array(self._constants[node.input[2]]).astype(np.float64)
        unit = (scale * self._arithmetic.unit).astype(np.float32)
        codes = np.rint(bias.reshape(-1) / unit)
        if codes.shape != unit.shape or np.abs(codes).max() >= 1 << 31:
            return
        name = f"{node.output[0]}/bias"
        inputs = [
            self._constant(f"{name}/codes", codes.astype(np.int32)),
            self._constant(f"{name}/scale", unit),
        ]
        self._nodes.append(helper.make_node("DequantizeLinear", inputs, [name], name, axis=0))
        node.input[2] = name

    def _linear(self, kind: str, inputs: tuple[str, str], output: str, **attributes: int) -> None:
        lns = self._arithmetic.lns
        attributes |= {"integer_bits": lns.integer_bits, "fraction_bits": lns.fraction_bits}
        node = helper.make_node(kind, inputs, [output], output, domain=DOMAIN)
        node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())
        self._nodes.append(node)

    def _constant(self, name: str, array: np.ndarray) -> str:
        self._model.graph.initializer.append(numpy_helper.from_array(array, name))
        return name
