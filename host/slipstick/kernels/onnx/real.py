"""ONNX operators in float32 on the host, between codes or real numbers on either side."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph import Tensor
from ..tflite.scaling import scalar
from .scaling import code_range


def to_real(x: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Codes as float32; what is not quantised stays what it is."""
    if tensor.quantization is None:
        return x if x.dtype == np.float32 else x.astype(np.float32)
    scale, zero_point = scalar(tensor.quantization)
    return (x.astype(np.int32) - zero_point).astype(np.float32) * np.float32(scale)


def from_real(value: np.ndarray, output: Tensor, attributes: Mapping[str, Any]) -> np.ndarray:
    """Float32 as the output has it: codes, ties to even, or float32 itself.

    NaN has no code: it becomes the zero point's.
    """
    if output.quantization is None:
        return value.astype(output.dtype)
    scale, zero_point = scalar(output.quantization)
    # beyond float32 a quotient is infinite, and clamps like any large one
    with np.errstate(over="ignore", invalid="ignore"):
        codes = np.rint(value.astype(np.float32) / np.float32(scale)).astype(np.float64)
    codes = np.nan_to_num(codes, nan=0.0, posinf=1e9, neginf=-1e9) + zero_point
    return np.clip(codes, *code_range(attributes, output.dtype)).astype(output.dtype)


def softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """exp(x) over the sum of it along an axis, or some."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def log_softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """The logarithm of ``softmax``."""
    centred = x - x.max(axis=axis, keepdims=True)
    return centred - np.log(np.exp(centred).sum(axis=axis, keepdims=True))


def layer_normalization(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray | None,
    axes: tuple[int, ...],
    epsilon: float,
    *,
    centred: bool = True,
) -> np.ndarray:
    """x less its mean over its deviation, both along some axes, times scale plus bias.

    Without ``centred`` the mean counts as 0.
    """
    middle = x.mean(axis=axes, keepdims=True) if centred else np.float32(0)
    rest = x - middle
    variance = np.mean(rest * rest, axis=axes, keepdims=True)
    value = rest / np.sqrt(variance + np.float32(epsilon)) * scale
    return value if bias is None else value + bias


def reduce(x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Numbers over some axes as one: their sum, product, ..., in float64 on the way."""
    axes, keep = tuple(attributes["axes"]), bool(attributes["keep_dimensions"])
    value = x.astype(np.float64)
    match attributes["function"]:
        case "product":
            return value.prod(axis=axes, keepdims=keep)
        case "mean":
            return value.mean(axis=axes, keepdims=keep)
        case "scale":
            # what layer normalisation multiplies by
            return 1 / np.sqrt(value.var(axis=axes, keepdims=keep) + attributes["epsilon"])
        case "absolute":
            return np.abs(value).sum(axis=axes, keepdims=keep)
        case "square":
            return (value * value).sum(axis=axes, keepdims=keep)
        case "length":
            return np.sqrt((value * value).sum(axis=axes, keepdims=keep))
        case "log":
            return np.log(value.sum(axis=axes, keepdims=keep))
        case "log_exp":
            largest = value.max(axis=axes, keepdims=True)
            total = np.log(np.exp(value - largest).sum(axis=axes, keepdims=keep))
            return total + (largest if keep else largest.squeeze(axes))
        case _:
            return value.sum(axis=axes, keepdims=keep)
