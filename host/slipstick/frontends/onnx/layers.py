"""Layers with constant weights: sums of products that wait for the codes of their output."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import Quantization
from .builder import picture_shape
from .operator import Operator
from .values import Activation, Coded, Constant, Pending, Real, Result, Shape, Value

_INT32 = 1 << 31


@dataclass(frozen=True, eq=False)
class Layer:
    """A convolution or fully connected layer of codes.

    Parameters
    ----------
    operator : Operator
    kind : str
        The graph's operator.
    x : Activation
        Quantised, in the layout that the graph's operator wants.
    weights : array of int8, O first
    scale, zero_point : arrays, (O,)
    bias : array of float64, (O,)
        Real numbers.
    attributes : mapping
        The graph's.
    shape : tuple of int
        ONNX's, of the output.
    exact : array of int64, (O,), or None
        The bias in units of the sums, where the file has it so.
    """

    operator: Operator
    kind: str
    x: Activation
    weights: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray
    bias: np.ndarray
    attributes: Mapping[str, Any]
    shape: Shape
    exact: np.ndarray | None = None
    dtype: str = "float32"

    def pending(self) -> Pending:
        """As a value that may still be scaled, offset and clamped."""
        axis = len(self.shape) - 1 if self.kind == "fully_connected" else 1
        return Pending(
            self.operator.output,
            self.shape,
            self.emit,
            affine=self.affine,
            channel_axis=axis,
            dtype=self.dtype,
        )

    def affine(self, factor: np.ndarray, offset: np.ndarray) -> Pending | None:
        """The same times real factors plus real offsets; None where a weight would not fit."""
        outputs = len(self.weights)
        factor, offset = (np.broadcast_to(item, outputs) for item in (factor, offset))
        if not (factor > 0).all() or not np.isfinite(factor).all():
            return None
        changed = (factor != 1).any() or offset.any()
        layer = dataclasses.replace(
            self,
            scale=(self.scale * factor).astype(np.float32),
            bias=self._real_bias() * factor + offset,
            exact=None if changed else self.exact,
            dtype="float32",
        )
        return layer.pending()

    def _unit(self) -> np.ndarray:
        """Returns the real number that 1 in the sums means, in each channel."""
        quantization = self.operator.builder.tensors[self.x.tensor].quantization
        assert quantization is not None
        unit = quantization.scale[0] * self.scale.astype(np.float64)
        arithmetic = self.operator.builder.arithmetic
        return unit if arithmetic is None else unit * arithmetic.unit

    def _real_bias(self) -> np.ndarray:
        return self.bias if self.exact is None else self.exact * self._unit()

    def emit(self, result: Result) -> Activation:
        """Puts the layer into the graph."""
        builder, name = self.operator.builder, self.operator.name
        layer = self._with_room_for_bias()
        bias = layer.exact
        if bias is None:
            bias = np.rint(layer.bias / layer._unit())
        worst = bias[np.abs(bias).argmax()]
        if not -_INT32 <= worst < _INT32:
            self.operator.refuse(f"the bias over its scales must be 32 bits, not {worst:.0f}")
        layer._check_sums(bias)
        weights, quantization = layer._laid_weights()
        inputs = [self.x.tensor, builder.constant(f"{name}/weights", weights, quantization), ""]
        if bias.any():
            inputs[2] = builder.constant(f"{name}/bias", bias.astype(np.int32))
        picture = self.kind != "fully_connected"
        shape = picture_shape(self.shape) if picture else self.shape
        made = builder.tensor(result.name, shape, result.dtype, result.quantization)
        attributes = {**self.attributes, "activation": "none"}
        if result.clamp is not None:
            attributes["clamp"] = result.clamp
        builder.node(name, self.kind, tuple(inputs), made, attributes)
        return Activation(made, self.shape, "picture" if picture else "natural")

    def _check_sums(self, bias: np.ndarray) -> None:
        """Refuses logarithmic weights whose sums could pass 32 bits: products are not small."""
        arithmetic = self.operator.builder.arithmetic
        if arithmetic is None:
            return
        products = arithmetic.multiply(self.weights, arithmetic.lns.largest_code)
        sums = np.abs(products).reshape(len(bias), -1).sum(axis=1, dtype=np.int64) + np.abs(bias)
        if sums.max() >= _INT32:
            self.operator.refuse(
                f"a channel's largest sum of products and bias must be below 2^31, not"
                f" {sums.max():.0f}: its weights want smaller codes and a larger scale"
            )

    def _with_room_for_bias(self) -> "Layer":
        """With larger scales in channels whose weights are all zero: there they mean nothing, and
        quantisers leave them so small that the bias overflows."""
        if self.exact is not None:
            return self
        sums = np.abs(self.bias / self._unit())
        still = (self.weights == self._column(self.zero_point)).reshape(len(self.weights), -1)
        idle = still.all(axis=1) & (sums >= _INT32 // 2)
        scale = np.where(idle, self.scale * sums / (1 << 20), self.scale)
        return dataclasses.replace(self, scale=scale.astype(np.float32))

    def _column(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, *(1,) * (self.weights.ndim - 1))

    def _laid_weights(self) -> tuple[np.ndarray, Quantization]:
        """Weights as the graph wants them, without zero points where they fit so."""
        weights, zero_point = self.weights, self.zero_point
        centred = weights.astype(np.int16) - self._column(zero_point)
        if centred.min() >= -128 and centred.max() <= 127:
            weights, zero_point = centred.astype(np.int8), np.zeros_like(zero_point)
        axis = 0
        if self.kind == "depthwise_conv2d":
            # O x y x x x 1 as 1 x y x x x O
            weights, axis = weights.transpose(3, 1, 2, 0), 3
        one = len(set(self.scale.tolist())) == 1 and len(set(zero_point.tolist())) == 1
        count = 1 if one else len(self.scale)
        quantization = Quantization(
            self.scale[:count].astype(np.float64),
            zero_point[:count].astype(np.int64),
            None if one else axis,
        )
        return weights, quantization


def coded_weights(value: Coded, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Weights with the output channels first, their scales and zero points, one a channel.

    None if they are no int8 codes or have scales along another axis.
    """
    if value.codes.dtype != np.int8 or value.axis not in (None, axis):
        return None
    codes = np.moveaxis(value.codes, axis, 0)
    count = len(codes)
    scale = np.broadcast_to(value.scale, (count,))
    return codes, scale, np.broadcast_to(value.zero_point, (count,))


def bias_values(operator: Operator, value: Value | None, outputs: int) -> np.ndarray:
    """A constant bias as real numbers, one an output channel."""
    if value is None:
        return np.zeros(outputs)
    if not isinstance(value, Constant | Coded):
        operator.refuse("the bias must be a constant, and is computed")
    array = value.array
    if isinstance(value, Coded) and value.codes.dtype == np.int32:
        # float32 would lose the last bits of large ones
        centred = value.codes.astype(np.float64) - value.along(value.zero_point)
        array = centred * value.along(value.scale.astype(np.float64))
    if array.size not in (1, outputs) or array.dtype.kind not in "fi":
        operator.refuse(f"the bias must be {outputs} numbers, not {array.dtype} {array.shape}")
    if not np.isfinite(array).all():
        operator.reject("the bias must be finite")
    return np.broadcast_to(array.astype(np.float64).reshape(-1), (outputs,)).copy()


def quantised(operator: Operator, value: Value) -> Activation | None:
    """The activation whose codes mean the value, None if there is none."""
    return value.activation if isinstance(value, Real) and value.linear else None


def real_layer(
    operator: Operator,
    kind: str,
    x: Activation,
    operands: tuple[np.ndarray, np.ndarray],
    attributes: Mapping[str, Any],
    shape: Shape,
) -> Pending:
    """A layer in float32 on the host, where an operand has no codes; weights as the graph's."""
    weights, bias = operands
    builder, name = operator.builder, operator.name

    def emit(result: Result) -> Activation:
        inputs = [x.tensor, builder.constant(f"{name}/weights", weights.astype(np.float32)), ""]
        if bias.any():
            inputs[2] = builder.constant(f"{name}/bias", bias.astype(np.float32))
        picture = kind != "fully_connected"
        laid = picture_shape(shape) if picture else shape
        made = builder.tensor(result.name, laid, result.dtype, result.quantization)
        given = {**attributes, "activation": "none"}
        if result.clamp is not None:
            given["clamp"] = result.clamp
        builder.node(name, kind, tuple(inputs), made, given)
        return Activation(made, shape, "picture" if picture else "natural")

    return Pending(operator.output, shape, emit)
