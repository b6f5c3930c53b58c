"""The nodes and constants of a network with logarithmic codes, in the file's own form."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ..frontends.onnx.lns import DOMAIN
from ..kernels.lns.codes import encode
from .lns_plan import Plan
from .lns_scales import fitting_scales


def doublable(graph: Any, planned: Plan) -> frozenset[str]:
    """Inputs that are read by layers only, which sum up over all of axis 1."""
    names = set[str]()
    for item in graph.input:
        readers = [node for node in graph.node if item.name in node.input]
        layers = all(node.output[0] in planned.layers for node in readers)
        if readers and layers and all(map(_sums_channels, readers)):
            names.add(item.name)
    return frozenset(names)


def _sums_channels(node: Any) -> bool:
    """Tells whether a layer's every output reads all of axis 1."""
    given = {item.name: item.i for item in node.attribute}
    return given.get("group", 1) == 1 and not given.get("transA", 0)


class Writer:
    """The network with codes, node by node.

    Parameters
    ----------
    model : ModelProto
        Float; it is rewritten in place.
    planned : Plan
    scales : dict
        Of the tensors that get codes, float32 by name.
    arithmetic : ArrayArithmetic
    doubled : bool
        Whether inputs that only layers read get two codes a number.
    weight_scales : mapping, optional
        Scales of layers' weights, (outputs,), that are known, by the weights' names.

    Members
    -------
    names : dict
        Those of layers' nodes, by their outputs.
    biases : dict
        Those of constants in units of the sums, int32, by the layers' outputs.
    """

    def __init__(
        self,
        model: Any,
        planned: Plan,
        scales: dict[str, np.float32],
        arithmetic: ArrayArithmetic,
        *,
        doubled: bool = False,
        weight_scales: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._model, self._plan, self._scales = model, planned, scales
        self._weight_scales = weight_scales or {}
        self._arithmetic = arithmetic
        self._doubled = doublable(model.graph, planned) if doubled else frozenset[str]()
        self.names: dict[str, str] = {}
        self.biases: dict[str, str] = {}
        self._constants = {item.name: item for item in model.graph.initializer}
        self._nodes: list[Any] = []
        self._renamed: dict[str, str] = {}

    def model(self) -> Any:
        """The network; it is the float one no more."""
        graph = self._model.graph
        for item in graph.input:
            if item.name in self._scales:
                self._renamed[item.name] = f"{item.name}/real"
                code = self._code_twice if item.name in self._doubled else self._code
                code(item.name, item.name, f"{item.name}/real")
        for node in graph.node:
            if node.output[0] in self._plan.layers:
                if not node.name or node.name in self.names.values():
                    node.name = node.output[0]
                self.names[node.output[0]] = node.name
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
        return self._model

    def _code(self, name: str, source: str, result: str) -> None:
        """A tensor into codes, and back."""
        scale = self._constant(f"{name}/scale", np.array(self._scales[name], np.float32))
        self._linear("LogQuantizeLinear", (source, scale), f"{name}/codes")
        self._linear("LogDequantizeLinear", (f"{name}/codes", scale), result)

    def _code_twice(self, name: str, source: str, result: str) -> None:
        """An input into two codes a number, the second of what the first one lacks: channels behind
        the others, of the same scale."""
        self._code(name, source, f"{name}/first")
        rest, scale = f"{name}/rest", f"{name}/scale"
        self._nodes.append(helper.make_node("Sub", [source, f"{name}/first"], [rest], rest))
        self._linear("LogQuantizeLinear", (rest, scale), f"{rest}/codes")
        self._linear("LogDequantizeLinear", (f"{rest}/codes", scale), f"{name}/second")
        both, halves = f"{name}/both", [f"{name}/first", f"{name}/second"]
        self._nodes.append(helper.make_node("Concat", halves, [both], both, axis=1))
        self._linear("LogQuantizeLinear", (both, scale), f"{both}/codes")
        self._linear("LogDequantizeLinear", (f"{both}/codes", scale), result)

    def _write_weights(self, node: Any) -> None:
        """A layer's weights as codes with a scale a channel, its bias as int32."""
        weights = numpy_helper.to_array(self._constants[node.input[1]]).astype(np.float32)
        turned = any(item.name == "transB" and item.i for item in node.attribute)
        axis = 0 if node.op_type == "Conv" or turned else weights.ndim - 1
        rows = np.moveaxis(weights, axis, 0)
        flat = rows.reshape(len(rows), -1)
        source = float(self._scales[self._plan.layers[node.output[0]]])
        bias = self._bias(node, len(rows))
        copies = 2 if node.input[0] in self._doubled else 1
        scale = self._weight_scales.get(node.input[1])
        if scale is None:
            scale = fitting_scales(flat, source, bias, self._arithmetic, copies)
        codes = encode(flat, scale[:, None].astype(np.float64), self._arithmetic)
        laid = np.ascontiguousarray(np.moveaxis(codes.reshape(rows.shape), 0, axis))
        if copies > 1:
            laid = np.concatenate([laid] * copies, axis=1 - axis)
        name = f"{node.output[0]}/weights"
        inputs = self._constant(f"{name}/codes", laid), self._constant(f"{name}/scale", scale)
        self._linear("LogDequantizeLinear", inputs, name, axis=axis)
        node.input[1] = name
        if bias is not None:
            self._write_bias(node, bias, scale.astype(np.float64) * source)

    def _bias(self, node: Any, outputs: int) -> np.ndarray | None:
        """A layer's bias, float64; None if it has one that is computed, or that it scales."""
        scaled = any(item.name in ("alpha", "beta") and item.f != 1 for item in node.attribute)
        if node.op_type == "MatMul" or scaled:
            return None
        if len(node.input) < 3 or not node.input[2]:
            return np.zeros(outputs)
        known = self._constants.get(node.input[2])
        bias = None if known is None else numpy_helper.to_array(known).astype(np.float64)
        return None if bias is None or bias.size != outputs else bias.reshape(-1)

    def _write_bias(self, node: Any, bias: np.ndarray, scale: np.ndarray) -> None:
        """A bias in units of the sums."""
        unit = (scale * self._arithmetic.unit).astype(np.float32)
        name = f"{node.output[0]}/bias"
        inputs = [
            self._constant(f"{name}/codes", np.rint(bias / unit).astype(np.int32)),
            self._constant(f"{name}/scale", unit),
        ]
        self._nodes.append(helper.make_node("DequantizeLinear", inputs, [name], name, axis=0))
        node.input[2:] = [name]
        self.biases[node.output[0]] = f"{name}/codes"

    def _linear(self, kind: str, inputs: tuple[str, str], output: str, **attributes: int) -> None:
        lns = self._arithmetic.lns
        attributes |= {"integer_bits": lns.integer_bits, "fraction_bits": lns.fraction_bits}
        node = helper.make_node(kind, inputs, [output], output, domain=DOMAIN)
        node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())
        self._nodes.append(node)

    def _constant(self, name: str, array: np.ndarray) -> str:
        self._model.graph.initializer.append(numpy_helper.from_array(array, name))
        return name
