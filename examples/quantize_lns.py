"""Quantises a float ONNX network to logarithmic codes of 5, 6 and 8 bits, and runs each.

The network is a random convolution with a global mean, made here. Prints the predicted cycles on
an array of that number format, and the error relative to the float network on onnxruntime. The
formats of 5 and 6 bits have the same fraction bits; they differ in range only.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from slipstick import InferenceSession
from slipstick.quantize import FloatNetwork
from slipstick.targets import find_target

rng = np.random.default_rng(2)
weights = rng.normal(0, 0.3, (16, 3, 3, 3)).astype(np.float32)
nodes = [
    helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["y"], ["z"]),
    helper.make_node("GlobalAveragePool", ["z"], ["mean"]),
]
graph = helper.make_graph(
    nodes,
    "example",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
    [helper.make_tensor_value_info("mean", TensorProto.FLOAT, [1, 16, 1, 1])],
    [numpy_helper.from_array(weights, "w")],
)
opset = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), "float.onnx")

samples = rng.normal(0, 1, (32, 3, 12, 12)).astype(np.float32)
reference = onnxruntime.InferenceSession("float.onnx")
exact = np.concatenate(
    [np.asarray(reference.run(None, {"x": sample[None]})[0]) for sample in samples]
)
for name in ("lns8", "lns6", "lns5"):
    target = find_target(f"sim-{name}")
    arithmetic = target.configuration.logarithmic
    assert arithmetic is not None
    data = FloatNetwork("float.onnx").quantize_logarithmic(samples, arithmetic)
    path = Path(f"{name}.onnx")
    path.write_bytes(data)
    with InferenceSession(path, device="model", target=target) as session:
        [means] = session.run(None, {"x": samples})
        cycles = session.program.predicted_cycles
    error = np.linalg.norm(means - exact) / np.linalg.norm(exact)
    print(f"{name} ({arithmetic.lns.name}): {cycles:,} cycles predicted, error {error:.1%}")
