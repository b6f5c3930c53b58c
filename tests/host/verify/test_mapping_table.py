"""The mapping table: what the host multiplies is no work of the device's."""

import json
from pathlib import Path

import numpy as np
from slipstick.compiler import compile_graph
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_operators as basic
from slipstick.writers.tflite import TfliteWriter
from tflm_networks import SMALL


def products() -> bytes:
    """A convolution, then its result times itself as matrices, then code by code."""
    writer = TfliteWriter()
    writer.tensor("x", (1, 6, 6, 4), scale=0.1)
    data = np.ones((6, 3, 3, 4))
    writer.tensor("w", data.shape, scale=0.1, data=data)
    writer.tensor("a", (1, 6, 6, 6), scale=0.2)
    writer.add(basic.Conv2D(), ["x", "w"], ["a"])
    writer.tensor("b", (1, 6, 6, 6), scale=0.3)
    writer.add(functions.BatchMatMul(), ["a", "a"], ["b"])
    writer.tensor("y", (1, 6, 6, 6), scale=0.3)
    writer.add(functions.Mul(), ["a", "b"], ["y"])
    return writer.to_bytes(["x"], ["y"])


def test_products_of_the_host_are_counted_apart(slipstick, tmp_path: Path) -> None:
    program = compile_graph(load_tflite_bytes(products()), SMALL)
    assert [layer.where for layer in program.layers] == ["device", "host", "host"]
    convolution, matrices = 36 * 6 * 3 * 3 * 4, 6 * 36 * 6
    assert [layer.macs for layer in program.layers] == [convolution, matrices, 0]
    assert (program.macs, program.host_macs) == (convolution, matrices)
    path = tmp_path / "products.tflite"
    path.write_bytes(products())
    result = json.loads(slipstick("compile", path, "--json")[1])
    assert (result["macs"], result["host_macs"]) == (convolution, matrices)
    shown = slipstick("compile", path)[1]
    assert f"{convolution:,} MACs in" in shown and f"and {matrices:,} on the host;" in shown
    (line,) = [line for line in shown.splitlines() if "matmul_1" in line]
    assert f"{matrices:,}" not in line
