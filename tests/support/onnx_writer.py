"""Small ONNX networks for tests, built node by node."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
IR_VERSION = 10
TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


class OnnxWriter:
    """A network under construction; names of tensors are what nodes are joined by."""

    def __init__(self, opset: int = 21) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._inputs: list[Any] = []
        self._count = 0

    def input(self, name: str, shape: Sequence[int | str | None], dtype: str = "float32") -> str:
        """A new input of the network."""
        self._inputs.append(helper.make_tensor_value_info(name, TYPES[dtype], shape))
        return name

    def constant(self, array: Any, dtype: str | None = None, name: str = "") -> str:
        """A new initializer."""
        self._count += 1
        name = name or f"constant_{self._count}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def add(
        self, operator: str, inputs: Sequence[str], name: str = "", domain: str = "", **options: Any
    ) -> str:
        """A new node; returns the name of its output."""
        self._count += 1
        output = name or f"{operator.lower()}_{self._count}"
        self.nodes.append(
            helper.make_node(
                operator, inputs, [output], f"{operator}_{self._count}", domain=domain, **options
            )
        )
        return output

    def scale(self, scale: Any, zero_point: Any, dtype: str = "int8") -> list[str]:
        """Scale and zero point as constants."""
        return [self.constant(scale, "float32"), self.constant(zero_point, dtype)]

    def pair(self, x: str, scale: float, zero_point: int = 0, dtype: str = "int8") -> str:
        """QuantizeLinear and DequantizeLinear."""
        parts = self.scale(scale, zero_point, dtype)
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [x, *parts]), *parts])

    def weights(self, codes: np.ndarray, scale: Any, zero_point: Any = 0, axis: int = 0) -> str:
        """Codes and their DequantizeLinear."""
        points = np.broadcast_to(np.asarray(zero_point), np.shape(scale))
        parts = self.scale(scale, points, codes.dtype.name)
        options: dict[str, Any] = {"axis": axis} if np.ndim(scale) else {}
        return self.add("DequantizeLinear", [self.constant(codes), *parts], **options)

    def to_bytes(
        self, outputs: Sequence[str], dtype: str = "float32", shape: Sequence[int] | None = None
    ) -> bytes:
        """The file."""
        listed = [helper.make_tensor_value_info(name, TYPES[dtype], shape) for name in outputs]
        graph = helper.make_graph(self.nodes, "test", self._inputs, listed, self.constants)
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION)
        return model.SerializeToString()
