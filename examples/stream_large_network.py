"""Runs a network whose weights and activations exceed the chip's memories.

The network is made here: four convolutions with 72 KiB of weights. The configuration has 8 KiB for
activations and 16 KiB for weights. Prints the bytes that cross the link per inference, and checks
the results against a configuration that holds the whole network.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from slipstick import InferenceSession
from slipstick import compile as compile_network
from slipstick.targets import find_target
from slipstick.writers.tflite import TfliteWriter
from slipstick.writers.tflite_operators import Conv2D

rng = np.random.default_rng(0)
writer = TfliteWriter()
writer.tensor("x0", (1, 24, 24, 32), scale=0.1)
for n, (inputs, outputs) in enumerate([(32, 32), (32, 64), (64, 64), (64, 16)]):
    scale = 1 / (70 * np.sqrt(9 * inputs))
    weights = rng.integers(-127, 128, (outputs, 3, 3, inputs))
    scales = np.full(outputs, scale)
    writer.tensor(f"w{n}", weights.shape, scale=scales, axis=0, data=weights)
    bias = rng.integers(-300, 300, outputs)
    writer.tensor(f"b{n}", (outputs,), "int32", scale=scales * 0.1, axis=0, data=bias)
    writer.tensor(f"x{n + 1}", (1, 24, 24, outputs), scale=0.1)
    writer.add(Conv2D(activation="RELU"), [f"x{n}", f"w{n}", f"b{n}"], [f"x{n + 1}"])
Path("large.tflite").write_bytes(writer.to_bytes(["x0"], ["x4"]))

large = find_target("1x8x8").configuration
small = replace(large, activation_bytes=8 << 10, weight_bytes=16 << 10)
image = rng.integers(-128, 128, (1, 24, 24, 32), dtype=np.int8)
results = []
for configuration in (large, small):
    program = compile_network("large.tflite", configuration)
    moved = program.transferred()
    print(
        f"{configuration.weight_bytes >> 10:>4} KiB for weights: streamed {program.is_streamed},"
        f" {moved.loaded:,} bytes of weights, parameters and instructions per inference,"
        f" {moved.uploaded:,} bytes up, {moved.downloaded:,} down"
    )
    with InferenceSession(program, device="model") as session:
        results += session.run(None, {"x0": image})
print(f"results equal: {np.array_equal(*results)}")
