"""Functions of one number that ONNX alone has. docs/how-to/add-operator.md adds one."""

import dataclasses
import math
from typing import Any

import numpy as np

from .activations import elu, sigmoid
from .record import Attributes, Function, Unary

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _celu(x: np.ndarray, a: Attributes) -> np.ndarray:
    low = a["alpha"] * np.expm1(np.minimum(x, 0) / a["alpha"])
    return np.maximum(x, 0) + np.minimum(0, low)


def _gelu(x: np.ndarray, attributes: Attributes) -> np.ndarray:
    if attributes["approximate"] == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))
    return 0.5 * x * (1 + _ERF(x / math.sqrt(2)))


def _shrink(x: np.ndarray, a: Attributes) -> np.ndarray:
    return np.where(x < -a["lambd"], x + a["bias"], np.where(x > a["lambd"], x - a["bias"], 0))


def _function(name: str, onnx: str, doc: str, function: Function, **defaults: Any) -> Unary:
    return Unary(name=name, doc=doc, function=function, onnx=onnx, defaults=defaults)


def _activation(name: str, onnx: str, doc: str, function: Function, **defaults: Any) -> Unary:
    """A function whose results get codes when a network is quantised."""
    return dataclasses.replace(_function(name, onnx, doc, function, **defaults), quantized=True)


OPERATORS = (
    _function("acos", "Acos", "The arc cosine.", lambda x, _: np.arccos(x)),
    _function("acosh", "Acosh", "The inverse of cosh.", lambda x, _: np.arccosh(x)),
    _function("asin", "Asin", "The arc sine.", lambda x, _: np.arcsin(x)),
    _function("asinh", "Asinh", "The inverse of sinh.", lambda x, _: np.arcsinh(x)),
    _function("atan", "Atan", "The arc tangent.", lambda x, _: np.arctan(x)),
    _function("atanh", "Atanh", "The inverse of tanh.", lambda x, _: np.arctanh(x)),
    _function("celu", "Celu", "ELU of x / alpha, times alpha.", _celu, alpha=1.0),
    _activation(
        "clip",
        "Clip",
        "x, clamped to low..high.",
        lambda x, a: np.minimum(np.maximum(x, a["low"]), a["high"]),
        low=-math.inf,
        high=math.inf,
    ),
    _function("cosh", "Cosh", "The hyperbolic cosine.", lambda x, _: np.cosh(x)),
    _activation("erf", "Erf", "The error function.", lambda x, _: _ERF(x)),
    _activation(
        "gelu", "Gelu", "x times the normal distribution's integral.", _gelu, approximate="none"
    ),
    _activation(
        "hard_sigmoid",
        "HardSigmoid",
        "alpha x + beta, clamped to 0..1.",
        lambda x, a: np.clip(a["alpha"] * x + a["beta"], 0, 1),
        alpha=0.2,
        beta=0.5,
    ),
    _activation("mish", "Mish", "x tanh(softplus(x)).", lambda x, _: x * np.tanh(_softplus(x))),
    _function("reciprocal", "Reciprocal", "1 / x.", lambda x, _: 1 / x),
    _activation(
        "selu",
        "Selu",
        "gamma times ELU.",
        lambda x, a: a["gamma"] * elu(x, a["alpha"]),
        alpha=_SELU_ALPHA,
        gamma=_SELU_GAMMA,
    ),
    _function("sign", "Sign", "-1, 0 or 1.", lambda x, _: np.sign(x)),
    _function(
        "shrink",
        "Shrink",
        "x, bias nearer to 0; 0 within lambd of it.",
        _shrink,
        bias=0.0,
        lambd=0.5,
    ),
    _function("sinh", "Sinh", "The hyperbolic sine.", lambda x, _: np.sinh(x)),
    _activation("softplus", "Softplus", "log(1 + exp(x)).", lambda x, _: _softplus(x)),
    _function("softsign", "Softsign", "x / (1 + abs(x)).", lambda x, _: x / (1 + np.abs(x))),
    _activation(
        "swish",
        "Swish",
        "x times the sigmoid of alpha x.",
        lambda x, a: x * sigmoid(a["alpha"] * x),
        alpha=1.0,
    ),
    _function("tan", "Tan", "The tangent.", lambda x, _: np.tan(x)),
    _function(
        "thresholded_relu",
        "ThresholdedRelu",
        "x where it is above alpha, else 0.",
        lambda x, a: np.where(x > a["alpha"], x, 0),
        alpha=1.0,
    ),
)
