"""Writes a trained network as .onnx: float operators between codes (QDQ)."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ...errors import UnsupportedError
from ..interface import IMAGE_SCALE, Interface
from ..network import INPUT, Kind, Layer
from .trained import (
    Names,
    TrainedNetwork,
    bias_codes,
    code_steps,
    is_dense,
    is_flat,
    is_global,
    meanings,
    weight_scale,
)

OPSET = 17
IR_VERSION = 8
_TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
}
_BATCH = "batch"


def write_onnx(trained: TrainedNetwork) -> bytes:
    """The bytes of an .onnx file: int8 codes with zero point 0, one scale per tensor.

    Scales are powers of two but behind averages of other counts, so that float32 computes sums and
    their rounding exactly as the training does. The input is as the interface has it, pictures are
    N x C x H x W, the batch is free. The output is float32.

    Raises
    ------
    UnsupportedError
        If a layer reads a row of numbers of a picture otherwise than as a whole.
    """
    return _Writer(trained).run()


class _Writer:
    def __init__(self, trained: TrainedNetwork) -> None:
        self._trained, self._network = trained, trained.network
        interface = trained.interface
        self._names = Names(interface.input, interface.output)
        self._meanings = meanings(trained, IMAGE_SCALE, rescaled_averages=True)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._numbers: dict[str, str] = {}
        """Real numbers of tensors, by the training's names."""

    def run(self) -> bytes:
        interface, network = self._trained.interface, self._network
        shape = self._input_shape()
        self._numbers[INPUT] = self._images(shape)
        for layer in network.layers:
            self._take(layer)
        logits = self._numbers[network.layers[-1].name]
        if interface.softmax:
            self._add("Softmax", [logits], interface.output, axis=-1)
        else:
            self._nodes[-1].output[0] = interface.output
        inputs = [self._value(interface.input, interface.dtype, shape[1:])]
        outputs = [self._value(interface.output, "float32", (network.classes,))]
        graph = helper.make_graph(self._nodes, network.name, inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="slipstick"
        )
        onnx.checker.check_model(model)
        return model.SerializeToString()

    def _value(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        return helper.make_tensor_value_info(name, _TYPES[dtype], (_BATCH, *shape))

    def _input_shape(self) -> tuple[int, ...]:
        height, width, channels = self._network.shape
        given = self._trained.interface.shape
        if self._trained.interface.channels_first and given[1:] == (channels, height, width):
            return given
        return 1, channels, height, width

    def _images(self, shape: tuple[int, ...]) -> str:
        """Real numbers of the codes that the training reads."""
        interface: Interface = self._trained.interface
        name = interface.input
        steps = code_steps(interface)
        scale, zero_point = interface.scale, interface.zero_point
        plain = len(steps) == 1 and not interface.halved and interface.dtype == "uint8"
        if scale == IMAGE_SCALE and (not steps or plain):
            # uint8 codes are read as they are
            return self._real(name, IMAGE_SCALE, zero_point or 0, interface.dtype)
        dtype = interface.dtype
        for step in steps or [(interface.image_scale, 0)]:
            if dtype != "float32":
                assert scale is not None and zero_point is not None
                name = self._real(name, scale, zero_point, dtype)
            scale, zero_point = step
            name, dtype = self._codes(name, "images/codes", scale, zero_point), "int8"
        return self._real(name, IMAGE_SCALE)

    def _add(self, operator: str, inputs: list[str], output: str, **options: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], output, **options))
        return output

    def _constant(self, name: str, values: np.ndarray) -> str:
        made = self._names.new(name)
        self._constants.append(numpy_helper.from_array(values, made))
        return made

    def _pair(self, name: str, scale: float, zero_point: int, dtype: str) -> list[str]:
        return [
            self._constant(f"{name}/scale", np.array(scale, np.float32)),
            self._constant(f"{name}/zero_point", np.array(zero_point, dtype)),
        ]

    def _real(self, name: str, scale: float, zero_point: int = 0, dtype: str = "int8") -> str:
        """DequantizeLinear."""
        pair = self._pair(name, scale, zero_point, dtype)
        return self._add("DequantizeLinear", [name, *pair], self._names.new(f"{name}/real"))

    def _codes(self, name: str, made: str, scale: float, zero_point: int = 0) -> str:
        """QuantizeLinear to int8."""
        made = self._names.new(made)
        return self._add(
            "QuantizeLinear", [name, *self._pair(made, scale, zero_point, "int8")], made
        )

    def _finish(self, layer: Layer, made: str) -> None:
        """Codes of a layer's real output, and what they stand for."""
        if layer.relu:
            made = self._add("Relu", [made], self._names.new(f"{layer.name}/relu"))
        scale = self._meanings[layer.name].scale
        codes = self._codes(made, layer.name, scale)
        self._numbers[layer.name] = self._real(codes, scale)

    def _take(self, layer: Layer) -> None:
        made = self._names.new(f"{layer.name}/exact")
        inputs = [self._numbers[name] for name in layer.inputs]
        if layer.learns:
            self._product(layer, inputs[0], made)
        elif layer.kind is Kind.ADD:
            self._add("Add", inputs, made)
        elif layer.kind is Kind.FLATTEN:
            self._check_row(layer)
            self._add("Flatten", inputs, made)
        elif layer.kind is Kind.AVERAGE_POOL and is_global(self._network, layer):
            self._add("GlobalAveragePool", inputs, made)
        else:
            operator = "MaxPool" if layer.kind is Kind.MAX_POOL else "AveragePool"
            self._add(operator, inputs, made, **_window(layer))
        self._finish(layer, made)

    def _check_row(self, layer: Layer) -> None:
        """The format's rows have another order, which only weights behind them can make good."""
        if self._network.shapes[layer.inputs[0]][:2] == (1, 1):
            return
        for reader in self._network.layers:
            if layer.name in reader.inputs and not is_dense(self._network, reader):
                raise UnsupportedError(
                    f"layer {reader.name!r} must be fully connected behind {layer.name!r}, not"
                    f" {reader.kind}"
                )

    def _product(self, layer: Layer, read: str, made: str) -> None:
        codes = self._trained.layers[layer.name]
        source = self._meanings[layer.inputs[0]]
        scale = np.float32(weight_scale(codes, source))
        weights = codes.weights
        dense = is_dense(self._network, layer)
        if dense:
            weights = self._row_weights(layer, weights)
            if not is_flat(self._network, layer.inputs[0]):
                read = self._add("Flatten", [read], self._names.new(f"{layer.name}/row"))
        elif is_flat(self._network, layer.inputs[0]):
            raise UnsupportedError(
                f"layer {layer.name!r} must not have windows of a row of numbers"
            )
        elif layer.kind is Kind.DEPTHWISE:
            weights = weights.transpose(3, 0, 1, 2)
        else:
            weights = weights.transpose(0, 3, 1, 2)
        name = self._constant(f"{layer.name}/weights", np.ascontiguousarray(weights))
        bias = self._constant(f"{layer.name}/bias", bias_codes(codes, source))
        constants = [
            self._real(name, float(scale)),
            self._real(bias, float(np.float32(source.scale) * scale), dtype="int32"),
        ]
        if dense:
            self._add("Gemm", [read, *constants], made, transB=1)
            return
        groups = codes.weights.shape[3] if layer.kind is Kind.DEPTHWISE else 1
        self._add("Conv", [read, *constants], made, group=groups, **_window(layer))

    def _row_weights(self, layer: Layer, weights: np.ndarray) -> np.ndarray:
        """Weights (O, I) of a row, whose pictures were flattened channel by channel."""
        outputs = len(weights)
        before = self._network.by_name.get(layer.inputs[0])
        if before is None or before.kind is not Kind.FLATTEN:
            return weights.reshape(outputs, -1)
        if is_flat(self._network, before.inputs[0]):
            return weights.reshape(outputs, -1)
        height, width, channels = self._network.shapes[before.inputs[0]]
        turned = weights.reshape(outputs, height, width, channels).transpose(0, 3, 1, 2)
        return turned.reshape(outputs, -1)


def _window(layer: Layer) -> dict[str, Any]:
    top, bottom, left, right = layer.padding
    return {
        "kernel_shape": list(layer.kernel),
        "strides": list(layer.stride),
        "pads": [top, left, bottom, right],
    }
