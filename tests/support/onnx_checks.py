"""Holds a network to onnxruntime, and its program on the golden core to the host's kernels."""

import numpy as np
from program_runner import run_program
from slipstick.compiler import compile_graph
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.graph import Graph
from slipstick.kernels import run_graph
from slipstick.verify.onnx_agreement import MEAN
from slipstick.verify.references import LayerRuntime
from slipstick_rtl.config import Configuration

MOST_DIFFERING = 0.002
"""Share of codes that a sum of float32 products may round otherwise, in small tensors."""

MOST_TIES = 0.25
"""Of means of two codes between equal scales half are ties, and a float32 sum's error, which has
either sign, decides about half of those otherwise at most."""


def check(data: bytes, *inputs: np.ndarray, most: float = MOST_DIFFERING) -> Graph:
    """Runs a network every way: each layer as onnxruntime, the program as the kernels.

    Parameters
    ----------
    data : bytes
    inputs : arrays
        With a batch.
    most : float
        Share of codes that may differ, by one; operators of codes agree to the last one.
    """
    graph = load_onnx_bytes(data)
    given = dict(zip(graph.inputs, inputs, strict=True))
    compared: set[str] = set()

    def note(name: str, wanted: np.ndarray, actual: np.ndarray) -> None:
        compared.add(name)
        assert actual.shape == wanted.shape and actual.dtype == wanted.dtype, name
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(actual, wanted, 1e-5, 1e-5, err_msg=name)
            return
        away = np.abs(actual.astype(np.int64) - wanted)
        assert away.max() <= 1, (name, away.max())
        agreement = runtime.agreements.get(name)
        ties = agreement is not None and agreement.reason == MEAN
        assert (away > 0).mean() <= (MOST_TIES if ties else most), (name, (away > 0).sum())
        if agreement is not None and agreement.bound is not None:
            assert away.max() <= agreement.bound, (name, away.max(), agreement)

    runtime = LayerRuntime(data, graph)
    # on a machine where the runtime is wrong, the rule is held to itself alone
    if not runtime.saturating:
        runtime.differences(given, note)
        assert compared >= set(graph.outputs)
    values = run_graph(graph, inputs)
    made = run_program(
        compile_graph(graph, Configuration()), {name: value[:1] for name, value in given.items()}
    )
    for name in graph.outputs:
        np.testing.assert_array_equal(made[name], values[name][:1], name)
    return graph


def operators(graph: Graph) -> list[str]:
    """The graph's operators in their order."""
    return [node.operator for node in graph.nodes]


def on_device(graph: Graph) -> set[str]:
    """Operators that the device runs."""
    program = compile_graph(graph, Configuration())
    return {layer.operator for layer in program.layers if layer.where == "device"}
