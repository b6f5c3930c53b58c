"""Real networks, compiled, on the golden core against TensorFlow Lite Micro, layer by layer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from program_runner import run_program
from shared_data import shared
from slipstick.compiler import compile_graph
from slipstick.frontends import load
from slipstick.targets import find_target
from slipstick.verify.tflm_reference import TflmReference
from slipstick_rtl.config import Configuration

pytestmark = pytest.mark.borrows

NETWORKS = ("ic01_resnet8_int8", "kws01_dscnn_int8", "vww01_mobilenetv1_025_int8", "ad01_int8")

LARGE = find_target("ecpix5-85f").configuration
WIDE = replace(LARGE, lanes=LARGE.columns, packed_rows=13, halved_tables=1)

HARDWARE = {
    "roomy": Configuration(
        activation_bytes=1 << 17, weight_bytes=1 << 19, weight_rows=2, instruction_words=1 << 14
    ),
    "85F": LARGE,
}


def model(name: str) -> Path:
    return shared(f"models/{name}.tflite")


@pytest.mark.parametrize("hardware", HARDWARE)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_is_the_reference(name, hardware):
    path = model(name)
    graph = load(path)
    shape = graph.tensors[graph.inputs[0]].shape
    image = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    reference = TflmReference(path)
    expected = reference.run_layers(image)
    for inspect in (False, True):
        program = compile_graph(graph, HARDWARE[hardware], inspect=inspect)
        # inspection takes more instructions; of the autoencoder's weights, 258 KiB, a few layers'
        # are ninth bits
        if not inspect:
            assert not program.is_streamed
            on_host = {layer.operator for layer in program.layers if layer.where == "host"}
            assert on_host <= {"softmax", "reshape"}
        values = run_program(program, {graph.inputs[0]: image}, order="post_first")
        compared = set(values) & set(expected)
        assert set(graph.outputs) <= compared
        if inspect:
            assert len(compared) == len(graph.nodes)
        for tensor in compared:
            np.testing.assert_array_equal(
                values[tensor].reshape(-1), expected[tensor].reshape(-1), tensor
            )


@pytest.mark.parametrize(
    ("hardware", "least"),
    [(find_target("sim-medium").configuration, 0.96), (LARGE, 0.88), (WIDE, 0.95)],
    ids=("sim-medium", "8 lanes", "16 lanes"),
)
def test_prediction_of_resnet8(hardware, least):
    program = compile_graph(load(model("ic01_resnet8_int8")), hardware)
    share = program.macs / program.predicted_cycles / hardware.macs_per_cycle
    assert program.macs == 12_501_632
    assert share > least
