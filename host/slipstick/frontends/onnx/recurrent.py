"""LSTM and GRU, and onnxruntime's LSTM of quantised weights: the host runs them."""

import numpy as np

from ...kernels.onnx.recurrent import GATES, STATES
from .operator import SCALES, Operator
from .quantization import SHIFT
from .values import Activation, Coded, Constant, Float, Shape, Value, shape_of

ATTRIBUTES = (
    *("activations", "activation_alpha", "activation_beta", "clip", "direction", "hidden_size"),
    *("input_forget", "layout", "linear_before_reset"),
)
RECURRENT = ("LSTM", "GRU", "DynamicQuantizeLSTM")
_REVERSE = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_ACTIVATIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}
_HIDDEN, _CELLS, _PEEPHOLES, _SCALES = 5, 6, 7, (8, 10)


def lstm(operator: Operator) -> list[Value]:
    """LSTM of real numbers."""
    operator.require_inputs(3, 8)
    return _recurrent(operator, "LSTM", [_weights(operator, index) for index in (1, 2)])


def gru(operator: Operator) -> list[Value]:
    """GRU of real numbers."""
    operator.require_inputs(3, 6)
    return _recurrent(operator, "GRU", [_weights(operator, index) for index in (1, 2)])


def dynamic_quantize_lstm(operator: Operator) -> list[Value]:
    """com.microsoft's DynamicQuantizeLSTM: weights are codes, activations become such."""
    operator.require_inputs(12, 12)
    weights, scales, zeros = [], [], []
    for index, place in zip((1, 2), _SCALES, strict=True):
        codes = operator.constant(index)
        shift = SHIFT.get(codes.dtype.name)
        if codes.ndim != 3 or shift is None:
            operator.refuse(f"{operator.what(index)} must be codes of 3 dimensions")
        scale, zero = operator.constant(place), operator.constant(place + 1)
        listed = (codes.shape[0],), (codes.shape[0], codes.shape[2])
        if scale.shape not in listed or zero.shape != scale.shape or zero.dtype != codes.dtype:
            operator.reject(
                f"{operator.what(place)} and its zero points must be of shape {listed[0]} or"
                f" {listed[1]}, not {scale.shape} and {zero.shape}"
            )
        if not ((scale >= SCALES[0]) & (scale <= SCALES[1])).all():
            operator.refuse(f"scale {operator.what(place)} must be within {SCALES}")
        if len(np.unique(zero)) != 1:
            operator.refuse(f"zero points {operator.what(place + 1)} must be equal")
        weights.append((codes.astype(np.int16) - shift).astype(np.int8))
        scales.append(scale.astype(np.float32).reshape(codes.shape[0], -1))
        zeros.append(int(zero.flat[0]) - shift)
    turned = [array.transpose(0, 2, 1) for array in weights]
    return _recurrent(operator, "LSTM", turned, (weights, scales, (zeros[0], zeros[1])))


def _weights(operator: Operator, index: int) -> np.ndarray:
    return operator.constant(index).astype(np.float32)


Quantised = tuple[list[np.ndarray], list[np.ndarray], tuple[int, int]]
"""Codes (directions, inputs, outputs) of both weights, their scales, and zero points."""


def _recurrent(
    operator: Operator, kind: str, weights: list[np.ndarray], coded: Quantised | None = None
) -> list[Value]:
    """The node, and its outputs; ``weights`` are (directions, outputs, inputs)."""
    builder, x = operator.builder, operator.value(0)
    shape = shape_of(x)
    if not operator.lead:
        operator.refuse("dimension 0 of the input is its steps: the network's shapes must be fixed")
    if len(shape) != 4 or isinstance(x, Constant):
        operator.refuse(f"{operator.what(0)} must be computed, of 3 dimensions, not {shape[1:]}")
    reverse = _check_attributes(operator, kind)
    units = operator.integer("hidden_size", weights[1].shape[-1])
    rows = (len(reverse), GATES[kind] * units)
    _, steps, batch, width = shape
    for what, array, columns in zip("WR", weights, (width, units), strict=True):
        if array.shape != (*rows, columns):
            operator.reject(f"{what} must be {(*rows, columns)}, not {array.shape}")
    states = (len(reverse), batch, units)
    names = [
        builder.natural(builder.real(x)).tensor,
        *_matrices(operator, weights, coded),
        _bias(operator, 3, (len(reverse), 2 * rows[1])),
        _state(operator, _HIDDEN, states),
        _state(operator, _CELLS, states) if kind == "LSTM" else "",
        _bias(operator, _PEEPHOLES, (len(reverse), 3 * units)) if kind == "LSTM" else "",
        *_scales(operator, coded),
    ]
    _check_lengths(operator, steps, batch)
    shapes: list[Shape] = [(1, steps, len(reverse), batch, units)]
    shapes += [(1, *states)] * STATES[kind]
    outputs = (*operator.outputs, "", "")[: len(shapes)]
    made = [
        builder.tensor(name or f"{operator.name}/{place}", own, "float32")
        for place, (name, own) in enumerate(zip(outputs, shapes, strict=True))
    ]
    attributes = {
        "kind": kind,
        "units": units,
        "reverse": reverse,
        "clip": operator.number("clip", 0.0),
        "input_forget": operator.integer("input_forget", 0),
        "linear_before_reset": operator.integer("linear_before_reset", 0),
        "zero_points": coded[2] if coded is not None else (0, 0),
    }
    builder.node(operator.name, "recurrent", tuple(names), tuple(made), attributes)
    values: list[Value] = []
    for name, tensor, own in zip(outputs, made, shapes, strict=True):
        activation = Activation(tensor, own)
        if name:
            builder.note(name, activation, "float32")
        values.append(Float(activation))
    return values


def _check_attributes(operator: Operator, kind: str) -> tuple[bool, ...]:
    """Checks the attributes, and tells whether each direction goes backwards."""
    operator.require("layout", operator.integer("layout", 0), (0,))
    direction = operator.text("direction", "forward")
    operator.require("direction", direction, tuple(_REVERSE))
    reverse = _REVERSE[direction]
    usual = _ACTIVATIONS[kind] * len(reverse)
    given = operator.attributes.get("activations", usual)
    if not isinstance(given, tuple | list) or tuple(str(a).lower() for a in given) != usual:
        operator.refuse(f"activations must be {usual}, not {given!r:.80}")
    for name in ("activation_alpha", "activation_beta"):
        if operator.attributes.get(name):
            operator.refuse(f"{name} must be empty, not {operator.attributes[name]!r:.40}")
    if operator.number("clip", 0.0) < 0:
        operator.reject(f"clip must be at least 0, not {operator.number('clip', 0.0)}")
    return reverse


def _matrices(operator: Operator, weights: list[np.ndarray], coded: Quantised | None) -> list[str]:
    arrays = weights if coded is None else coded[0]
    return [
        operator.builder.constant(f"{operator.name}/{what}", array)
        for what, array in zip(("weights", "recurrence"), arrays, strict=True)
    ]


def _scales(operator: Operator, coded: Quantised | None) -> list[str]:
    if coded is None:
        return ["", ""]
    return [
        operator.builder.constant(f"{operator.name}/{what}", array)
        for what, array in zip(("weights_scale", "recurrence_scale"), coded[1], strict=True)
    ]


def _bias(operator: Operator, index: int, shape: Shape) -> str:
    if not operator.has(index):
        return ""
    array = operator.constant(index).astype(np.float32)
    if array.shape != shape:
        operator.reject(f"{operator.what(index)} must be {shape}, not {array.shape}")
    return operator.builder.constant(f"{operator.name}/{index}", array)


def _state(operator: Operator, index: int, shape: Shape) -> str:
    """Names the tensor of the graph that a state begins with; "" if the input is absent."""
    if not operator.has(index):
        return ""
    value, builder = operator.value(index), operator.builder
    known = isinstance(value, Constant | Coded)
    found = shape_of(value) if known else shape_of(value)[1:]
    if found != shape:
        operator.reject(f"{operator.what(index)} must be {shape}, not {found}")
    if not known:
        return builder.natural(builder.real(value)).tensor
    array = value.array.astype(np.float32)[np.newaxis]
    return builder.constant(f"{operator.name}/{index}", array)


def _check_lengths(operator: Operator, steps: int, batch: int) -> None:
    if operator.has(4) and operator.constant(4).tolist() != [steps] * batch:
        operator.refuse(f"lengths {operator.what(4)} must be {steps}, as all sequences are")
