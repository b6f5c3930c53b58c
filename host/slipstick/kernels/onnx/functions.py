"""ONNX's functions of one number, in float32: for tables of 256 codes, and for the host."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Attributes = Mapping[str, Any]
Function = Callable[[np.ndarray, Attributes], np.ndarray]

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    # of the two forms, the one whose exponential cannot overflow
    power = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + power), power / (1 + power))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _gelu(x: np.ndarray, attributes: Attributes) -> np.ndarray:
    if attributes["approximate"] == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))
    return 0.5 * x * (1 + _ERF(x / math.sqrt(2)))


FUNCTIONS: Mapping[str, Function] = {
    "Abs": lambda x, _: np.abs(x),
    "Acos": lambda x, _: np.arccos(x),
    "Acosh": lambda x, _: np.arccosh(x),
    "Asin": lambda x, _: np.arcsin(x),
    "Asinh": lambda x, _: np.arcsinh(x),
    "Atan": lambda x, _: np.arctan(x),
    "Atanh": lambda x, _: np.arctanh(x),
    "Ceil": lambda x, _: np.ceil(x),
    "Celu": lambda x, a: (
        np.maximum(x, 0) + np.minimum(0, a["alpha"] * np.expm1(np.minimum(x, 0) / a["alpha"]))
    ),
    "Clip": lambda x, a: np.minimum(np.maximum(x, a["low"]), a["high"]),
    "Cos": lambda x, _: np.cos(x),
    "Cosh": lambda x, _: np.cosh(x),
    "Elu": lambda x, a: _elu(x, a["alpha"]),
    "Erf": lambda x, _: _ERF(x),
    "Exp": lambda x, _: np.exp(x),
    "Floor": lambda x, _: np.floor(x),
    "Gelu": _gelu,
    "HardSigmoid": lambda x, a: np.clip(a["alpha"] * x + a["beta"], 0, 1),
    "HardSwish": lambda x, _: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu": lambda x, a: np.where(x < 0, a["alpha"] * x, x),
    "Log": lambda x, _: np.log(x),
    "Mish": lambda x, _: x * np.tanh(_softplus(x)),
    "Neg": lambda x, _: -x,
    "Reciprocal": lambda x, _: 1 / x,
    "Relu": lambda x, _: np.maximum(x, 0),
    "Round": lambda x, _: np.rint(x),
    "Selu": lambda x, a: a["gamma"] * _elu(x, a["alpha"]),
    "Sigmoid": lambda x, _: _sigmoid(x),
    "Sign": lambda x, _: np.sign(x),
    "Shrink": lambda x, a: np.where(
        x < -a["lambd"], x + a["bias"], np.where(x > a["lambd"], x - a["bias"], 0)
    ),
    "Sin": lambda x, _: np.sin(x),
    "Sinh": lambda x, _: np.sinh(x),
    "Softplus": lambda x, _: _softplus(x),
    "Softsign": lambda x, _: x / (1 + np.abs(x)),
    "Sqrt": lambda x, _: np.sqrt(x),
    "Swish": lambda x, a: x * _sigmoid(a["alpha"] * x),
    "Tan": lambda x, _: np.tan(x),
    "Tanh": lambda x, _: np.tanh(x),
    "ThresholdedRelu": lambda x, a: np.where(x > a["alpha"], x, 0),
}
"""By ONNX's names; given float64, so that a float32 result is rounded once."""

DEFAULTS: Mapping[str, Mapping[str, float | str]] = {
    "Celu": {"alpha": 1.0},
    "Elu": {"alpha": 1.0},
    "Gelu": {"approximate": "none"},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Selu": {"alpha": _SELU_ALPHA, "gamma": _SELU_GAMMA},
    "Shrink": {"bias": 0.0, "lambd": 0.5},
    "Swish": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}
"""Their attributes, with what they are where the file does not say."""


def evaluate(name: str, x: np.ndarray, attributes: Attributes) -> np.ndarray:
    """A function of float32 numbers; infinite or NaN where it has no value."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](x.astype(np.float64), attributes).astype(np.float32)
