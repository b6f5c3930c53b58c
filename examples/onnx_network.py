"""Makes a float ONNX network, quantises it to int8, and runs it.

Writes float.onnx and int8.onnx to the working directory. Prints where each layer runs, and the
largest difference from the float network on onnxruntime.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from slipstick import InferenceSession
from slipstick.quantize import FloatNetwork

rng = np.random.default_rng(1)


def constant(name: str, *shape: int) -> onnx.TensorProto:
    """Returns normally distributed weights; layers keep the size of their inputs."""
    values = rng.normal(0, np.prod(shape[1:]) ** -0.5, shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["x", "w0", "b0"], ["y0"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["y0"], ["y1"]),
    helper.make_node("MaxPool", ["y1"], ["y2"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Flatten", ["y2"], ["y3"]),
    helper.make_node("Gemm", ["y3", "w1", "b1"], ["scores"], transB=1),
]
graph = helper.make_graph(
    nodes,
    "example",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
    [constant("w0", 8, 3, 3, 3), constant("b0", 8), constant("w1", 10, 512), constant("b1", 10)],
)
opset = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), "float.onnx")

samples = rng.normal(0, 1, (64, 3, 16, 16)).astype(np.float32)
Path("int8.onnx").write_bytes(FloatNetwork("float.onnx").quantize(samples))

with InferenceSession("int8.onnx", device="model") as session:
    for layer in session.program.layers:
        print(f"{layer.operator:<24} {layer.where}")
    [scores] = session.run(None, {"x": samples[0]})
[exact] = onnxruntime.InferenceSession("float.onnx").run(None, {"x": samples[:1]})
exact = np.asarray(exact)
difference = np.abs(scores - exact).max()
print(f"largest difference from float32: {difference:.3f}; scores reach {np.abs(exact).max():.3f}")
