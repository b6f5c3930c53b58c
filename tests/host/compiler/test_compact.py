"""Networks in the one memory of a compact engine, on the golden core against the reference."""

from pathlib import Path

import numpy as np
import pytest
from program_runner import run_program
from shared_data import shared
from slipstick.compiler import compile_graph
from slipstick.examples.digits import MODEL
from slipstick.frontends import load
from slipstick.targets import find_target
from slipstick.verify.tflm_reference import TflmReference

RESNET8 = "models/ic01_resnet8_int8.tflite"
DS_CNN = "models/kws01_dscnn_int8.tflite"


@pytest.mark.parametrize("inspect", [False, True])
@pytest.mark.parametrize(
    ("model", "target", "least_use"),
    [
        (RESNET8, "icebreaker", 0.6),
        # its depthwise layers use a row of four
        (DS_CNN, "tang-nano-20k", 0.2),
        (MODEL, "tang-nano-9k", 0.3),
    ],
    ids=lambda value: Path(value).stem if isinstance(value, str | Path) else None,
)
@pytest.mark.borrows
def test_every_layer_is_the_reference(
    model: str | Path, target: str, least_use: float, inspect: bool
) -> None:
    path = model if isinstance(model, Path) else shared(model)
    graph = load(path)
    shape = graph.tensors[graph.inputs[0]].shape
    image = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
    expected = TflmReference(path).run_layers(image)
    configuration = find_target(target).configuration
    program = compile_graph(graph, configuration, inspect=inspect)
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
    use = program.macs / program.predicted_cycles / configuration.macs_per_cycle
    assert use > least_use
