"""ResNet-8 in the 128 KiB of a compact engine, on the golden core against the reference."""

import numpy as np
import pytest
from program_runner import run_program
from shared_data import DATA
from slipstick.compiler import compile_graph
from slipstick.frontends import load
from slipstick.reference import TflmReference
from slipstick.targets import find_target


@pytest.mark.parametrize("inspect", [False, True])
def test_every_layer_of_resnet8_is_the_reference(inspect: bool) -> None:
    path = DATA / "models" / "ic01_resnet8_int8.tflite"
    if not path.exists():
        pytest.skip(f"{path} is not there (SLIPSTICK_DATA)")
    graph = load(path)
    shape = graph.tensors[graph.inputs[0]].shape
    image = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
    expected = TflmReference(path).run_layers(image)
    program = compile_graph(graph, find_target("icebreaker").configuration, inspect=inspect)
    # whichever stream goes first: what is written over an input is proved by its waits
    for order in ("matrix_first", "post_first"):
        values = run_program(program, {graph.inputs[0]: image}, order=order)
        compared = set(values) & set(expected)
        assert set(graph.outputs) <= compared
        if inspect:
            assert len(compared) == len(graph.nodes)
        for tensor in compared:
            np.testing.assert_array_equal(
                values[tensor].reshape(-1), expected[tensor].reshape(-1), tensor
            )
    assert program.macs / program.predicted_cycles / 16 > 0.6
