"""Products of two activations, on hardware whose maps multiply."""

from dataclasses import replace

import numpy as np
import pytest
from compiler_checks import check_ways, products_of
from program_runner import run_program
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.graph import Graph, Node, Quantization, Tensor
from slipstick.kernels.dispatch import run_graph
from slipstick.profile.executed import executed_runs
from slipstick.program import Program
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import PRODUCT_TAPS

SMALL = replace(find_target("1x4x4").configuration, products=1)
WIDE = replace(
    SMALL, rows=16, columns=8, lanes=8, weight_rows=4, ninth_bits=1, weight_bytes=1 << 15
)
HALVED = replace(WIDE, halved_tables=1)
TINY = replace(WIDE, activation_bytes=1 << 10, weight_bytes=1 << 12, drain_tables=1)
"""Nearly all networks are cut for it, and streamed."""


def _on_host(program: Program) -> list[str]:
    return [layer.name for layer in program.layers if layer.where == "host"]


@pytest.mark.parametrize(
    "configuration",
    [
        SMALL,
        pytest.param(WIDE, marks=pytest.mark.thorough),
        pytest.param(HALVED, marks=pytest.mark.thorough),
        TINY,
    ],
    ids=["small", "wide", "halved", "cut"],
)
def test_random_networks(configuration: Configuration) -> None:
    multiplying = cut = 0
    for seed in range(30):
        builder = random_network(seed, products=True)
        ways = [("matrix_first", False), (seed, True)]
        program = check_ways(builder, configuration, some_outputs(builder), ways, inspect=False)
        multiplying += products_of(program) > 0
        cut += program.is_streamed
    assert multiplying > 15
    assert (cut > 10) == (configuration is TINY)


def _gated(*, vector: bool) -> NetworkBuilder:
    builder = NetworkBuilder(3, 6, 5, 8)
    builder.same_conv2d(3, 12)
    block = builder.last
    if vector:
        builder.mean(keep_dimensions=True)
    builder.same_conv2d(1, 12)
    builder.unary("logistic")
    builder.mul(block)
    return builder


@pytest.mark.parametrize("vector", [False, True], ids=["of maps", "of a map and a vector"])
def test_all_of_it_is_on_the_device(vector: bool) -> None:
    builder = _gated(vector=vector)
    program = check_ways(builder, WIDE, (builder.last,), [("post_first", True)], inspect=False)
    assert not _on_host(program) and products_of(program)
    (run,) = executed_runs(program)
    assert run.post


@pytest.mark.parametrize("vector", [False, True], ids=["of maps", "of a map and a vector"])
def test_without_products_the_host_multiplies(vector: bool) -> None:
    builder = _gated(vector=vector)
    program = compile_graph(builder.graph(), replace(WIDE, products=0))
    assert len(_on_host(program)) == 1 and not products_of(program)


def test_one_vector_multiplies_several_pictures() -> None:
    builder = NetworkBuilder(8, 6, 6, 8)
    first = builder.same_conv2d(3, 8)
    builder.depthwise((2, 2), 1)
    smaller = builder.last
    builder.last = first
    builder.mean(keep_dimensions=True)
    vector = builder.same_conv2d(1, 8)
    builder.mul(first)
    one = builder.last
    builder.last = vector
    builder.mul(smaller)
    outputs = (one, builder.last)
    program = check_ways(builder, WIDE, outputs, [("matrix_first", False)], inspect=False)
    assert products_of(program) == 2 and not _on_host(program)


def _onnx_product(scales: tuple[float, float, float]) -> Graph:
    """Two inputs of all pairs of codes, and their product, in ONNX's arithmetic."""
    rng = np.random.default_rng(5)
    quantizations = [
        Quantization(np.array([scale], np.float32), np.array([rng.integers(-128, 128)]))
        for scale in scales
    ]
    tensors = {
        name: Tensor(name, (1, 16, 16, 256), "int8", quantization)
        for name, quantization in zip("abc", quantizations, strict=True)
    }
    return Graph(
        "onnx", ("a", "b"), ("c",), tensors, (Node("c", "mul", ("a", "b"), ("c",)),), "onnx"
    )


def _all_pairs() -> dict[str, np.ndarray]:
    codes = np.arange(-128, 128, dtype=np.int8)
    pairs = {"a": np.repeat(codes, 256), "b": np.tile(codes, 256)}
    return {name: value.reshape(1, 16, 16, 256) for name, value in pairs.items()}


@pytest.mark.parametrize("power", [-9, -6, -3])
def test_every_pair_of_codes_in_onnx_arithmetic(power: int) -> None:
    """The host multiplies where one rounding does not give every code."""
    large = replace(WIDE, activation_bytes=1 << 18)
    where = set()
    for seed in range(12):
        scales = np.random.default_rng(seed).uniform(0.5, 1, 3) * (0.02, 0.02, 0.04 * 2.0**power)
        if not seed:
            scales = np.array([0.125, 0.25, 0.125 * 2.0**power])
        graph = _onnx_product(tuple(scales / (1, 1, 0.05)))
        program = compile_graph(graph, large)
        where.add(products_of(program) > 0)
        pairs = _all_pairs()
        values = run_program(program, pairs)
        np.testing.assert_array_equal(values["c"], run_graph(graph, list(pairs.values()))["c"])
    assert True in where


def test_a_square_is_a_table() -> None:
    graph = _onnx_product((0.02, 0.02, 0.04))
    square = replace(graph.nodes[0], inputs=("a", "a"))
    graph = graph.replace(nodes=(square,), inputs=("a",))
    program = compile_graph(graph, replace(WIDE, activation_bytes=1 << 18, products=0))
    pairs = {"a": _all_pairs()["a"]}
    assert not _on_host(program)
    values = run_program(program, pairs)
    np.testing.assert_array_equal(values["c"], run_graph(graph, [pairs["a"]])["c"])


def test_a_factor_beyond_the_requantiser_is_the_hosts() -> None:
    builder = _gated(vector=False)
    graph = builder.graph()
    result = graph.tensors[builder.last]
    assert result.quantization is not None
    fine = replace(result.quantization, scale=np.array([1e-9]))
    tensors = {**graph.tensors, result.name: replace(result, quantization=fine)}
    program = compile_graph(graph.replace(tensors=tensors), WIDE)
    (layer,) = [layer for layer in program.layers if layer.where == "host"]
    assert "beyond the requantiser" in layer.why


def test_the_third_tap_is_counted() -> None:
    """Three reads and a write of a slice share a port."""
    builder = NetworkBuilder(2, 9, 9, 64)
    first = builder.same_conv2d(1, 64)
    builder.same_conv2d(1, 64)
    builder.mul(first)
    plain, product = builder.graph(first), builder.graph()
    configuration = replace(WIDE, activation_bytes=1 << 16)
    cycles = [compile_graph(g, configuration).predicted_cycles for g in (plain, product)]
    slices = 9 * 9 * 64 // configuration.lanes
    assert cycles[1] - cycles[0] >= (PRODUCT_TAPS + 1) * slices
