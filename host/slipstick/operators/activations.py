"""Activations and other functions of one number that TensorFlow Lite has, too.

``functions`` has those of ONNX alone. docs/how-to/add-operator.md adds one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .record import Family, OnnxForm, Operator, Tflite, Unary


def _plain(function: Callable[[np.ndarray], np.ndarray]) -> Any:
    return lambda x, _: function(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), of the two forms the one whose exponential cannot overflow."""
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + power), power / (1 + power))


def elu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is positive, alpha (exp(x) - 1) where it is not."""
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _clamping(
    name: str, doc: str, bounds: tuple[float, float | None], tflite: Tflite, **fields: Any
) -> Unary:
    low, high = bounds

    def clamp(x: np.ndarray, _: Any) -> np.ndarray:
        return np.minimum(np.maximum(x, low), np.inf if high is None else high)

    return Unary(
        name=name, doc=doc, function=clamp, clamp=bounds, tabulated=True, tflite=tflite, **fields
    )


def _real(
    name: str, doc: str, function: Callable[[np.ndarray], np.ndarray], **fields: Any
) -> Unary:
    """A function that TensorFlow Lite has of float32 numbers only."""
    written = fields.pop("written", "")
    return Unary(
        name=name,
        doc=doc,
        function=_plain(function),
        onnx=fields.pop("onnx", name.capitalize()),
        tflite=Tflite(code=name.upper(), written=written),
        **fields,
    )


OPERATORS = (
    _clamping(
        "relu",
        "max(x, 0).",
        (0.0, None),
        Tflite(code="RELU", version=2),
        onnx="Relu",
        quantized=True,
        share=1.0,
    ),
    _clamping(
        "relu6",
        "x, clamped to 0..6.",
        (0.0, 6.0),
        Tflite(code="RELU6", version=2),
        share=1.0,
        # tflm copies codes, so that only one quantisation has a meaning for it and for us
        keeps_codes=True,
    ),
    Unary(
        name="logistic",
        doc="1 / (1 + exp(-x)).",
        function=_plain(sigmoid),
        share=1.0,
        onnx="Sigmoid",
        quantized=True,
        tflite=Tflite(code="LOGISTIC", version=2, result=(1 / 256, -128)),
        transcendental=True,
        tabulated=True,
    ),
    Unary(
        name="tanh",
        doc="The hyperbolic tangent.",
        function=_plain(np.tanh),
        share=1.0,
        onnx="Tanh",
        quantized=True,
        tflite=Tflite(code="TANH", version=2, result=(1 / 128, 0)),
        transcendental=True,
        tabulated=True,
    ),
    Unary(
        name="hard_swish",
        doc="x relu6(x + 3) / 6.",
        function=lambda x, _: x * np.clip(x / 6 + 0.5, 0, 1),
        share=1.0,
        onnx="HardSwish",
        quantized=True,
        tflite=Tflite(code="HARD_SWISH", written="HardSwishOptions"),
        tabulated=True,
    ),
    Unary(
        name="leaky_relu",
        doc="x where it is positive, alpha x where it is not.",
        function=lambda x, a: np.where(x < 0, a["alpha"] * x, x),
        share=1.0,
        onnx="LeakyRelu",
        quantized=True,
        defaults={"alpha": 0.01},
        tflite=Tflite(
            code="LEAKY_RELU", version=2, options="LeakyReluOptions", fields={"alpha": "Alpha"}
        ),
        tabulated=True,
    ),
    Unary(
        name="elu",
        doc="x where it is positive, alpha (exp(x) - 1) where it is not.",
        function=lambda x, a: elu(x, a["alpha"]),
        share=1.0,
        onnx="Elu",
        quantized=True,
        defaults={"alpha": 1.0},
        tflite=Tflite(code="ELU"),
        transcendental=True,
        tabulated=True,
    ),
    Operator(
        name="prelu",
        family=Family.BINARY,
        doc="x where it is positive, alpha x where it is not; alpha broadcasts.",
        share=1.0,
        onnx_form=OnnxForm("prelu"),
        broadcasts=True,
    ),
    Unary(
        name="abs",
        doc="x without its sign.",
        function=_plain(np.abs),
        share=1.0,
        onnx="Abs",
        tflite=Tflite(code="ABS", version=2),
        tabulated=True,
    ),
    Operator(
        name="quantize",
        family=Family.CONVERSION,
        doc="Codes of real numbers, or codes of another scale.",
        share=1.0,
        onnx_form=OnnxForm("quantize"),
        tabulated=True,
    ),
    Operator(
        name="softmax",
        family=Family.NORMALIZATION,
        doc="exp(beta x) over the sum of it along an axis.",
        share=0.3,
        sums_floats=True,
        transcendental=True,
    ),
    _clamping(
        "relu_n1_to_1",
        "x, clamped to -1..1.",
        (-1.0, 1.0),
        Tflite(code="RELU_N1_TO_1", in_tflm=False),
    ),
    _clamping(
        "relu_0_to_1",
        "x, clamped to 0..1.",
        (0.0, 1.0),
        Tflite(code="RELU_0_TO_1", in_tflm=False),
    ),
    Unary(
        name="rsqrt",
        doc="1 / sqrt(x).",
        function=lambda x, _: 1 / np.sqrt(x),
        tflite=Tflite(code="RSQRT", version=2),
        tabulated=True,
    ),
    _real("ceil", "The smallest whole number that is not below x.", np.ceil),
    _real("cos", "The cosine.", np.cos, transcendental=True),
    _real("exp", "e^x.", np.exp, written="ExpOptions", transcendental=True),
    _real("floor", "The largest whole number that is not above x.", np.floor),
    _real("log", "The natural logarithm.", np.log, transcendental=True),
    _real("neg", "-x.", np.negative, written="NegOptions"),
    _real("round", "The nearest whole number, ties to even.", np.rint),
    _real("sin", "The sine.", np.sin, transcendental=True),
    _real("sqrt", "The square root.", np.sqrt, quantized=True),
    _real("square", "x^2.", np.square, onnx="", written="SquareOptions"),
)
"""In the order in which the random generator draws them."""
