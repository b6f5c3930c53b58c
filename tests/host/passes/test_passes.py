"""The passes: each rewrites what it may, and nothing else."""

import dataclasses

import numpy as np
import pytest
from random_networks import NetworkBuilder, join_functions
from slipstick.graph import Graph, Quantization, Tensor
from slipstick.kernels.dispatch import run_graph
from slipstick.passes import optimize
from slipstick.passes.clean import drop_dead_nodes, drop_identities
from slipstick.passes.fold_padding import fold_padding
from slipstick.passes.fuse_activation import fuse_activation
from slipstick.passes.order_shortcuts import order_shortcuts
from slipstick.passes.skip_flattening import skip_flattening
from slipstick.passes.tabulate_functions import tabulate_functions


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def same_results(builder: NetworkBuilder, graph: Graph) -> None:
    """The rewritten graph makes the same outputs."""
    image = builder.images()
    before, after = run_graph(builder.graph(), [image]), run_graph(graph, [image])
    for name in graph.outputs:
        np.testing.assert_array_equal(before[name], after[name])


def test_padding_is_folded_into_convolutions():
    builder = NetworkBuilder(1, 6, 5, 3)
    builder.pad(1)
    builder.pad(2)
    builder.conv2d(4, (3, 3))
    builder.pad(1)
    builder.depthwise((2, 2), 2)
    folded = fold_padding(builder.graph())
    assert operators(folded) == ["conv2d", "depthwise_conv2d"]
    same_results(builder, folded)


def test_padding_stays_where_no_convolution_can_do_it():
    builder = NetworkBuilder(2, 6, 5, 3)
    builder.pad(1)
    builder.pool("max_pool2d", (2, 2))
    assert "pad" in operators(fold_padding(builder.graph()))
    builder = NetworkBuilder(2, 6, 5, 3)
    builder.pad(1)
    builder.conv2d(4, (3, 3))
    pad = builder.nodes[0]
    attributes = {**pad.attributes, "value": (pad.attributes["value"] + 1) % 100}
    builder.nodes[0] = dataclasses.replace(pad, attributes=attributes)
    assert "pad" in operators(fold_padding(builder.graph()))
    builder.nodes[0] = pad
    assert "pad" in operators(fold_padding(builder.graph("t0", "t1")))


@pytest.mark.parametrize("activation", ["relu", "relu6", "relu_n1_to_1"])
def test_activation_is_fused(activation):
    builder = NetworkBuilder(3, 5, 5, 3)
    builder.conv2d(4, (3, 3), activation="none")
    builder.unary(activation, same_scale=True)
    fused = fuse_activation(builder.graph())
    assert operators(fused) == ["conv2d"]
    same_results(builder, fused)


def test_activation_stays_where_it_is_no_clamp():
    def network(activation: str, *, same_scale: bool) -> NetworkBuilder:
        builder = NetworkBuilder(4, 5, 5, 3)
        builder.conv2d(4, (3, 3), activation=activation)
        builder.unary("relu", same_scale=same_scale)
        return builder

    for builder in (
        network("none", same_scale=False),
        network("relu6", same_scale=True),
    ):
        assert operators(fuse_activation(builder.graph())) == ["conv2d", "relu"]
    builder = network("none", same_scale=True)
    assert "relu" in operators(fuse_activation(builder.graph("t0", "t1")))
    builder.add("t0")
    assert "relu" in operators(fuse_activation(builder.graph()))


def test_identities_and_dead_nodes_go():
    builder = NetworkBuilder(5, 4, 4, 4)
    builder.pad(0)
    builder.unary("quantize", same_scale=True)
    kept = builder.conv2d(4, (1, 1))
    builder.unary("tanh")
    builder.last = kept
    builder.reshape(builder.shape())
    graph = drop_dead_nodes(drop_identities(builder.graph()))
    # the last reshape makes the output: it keeps the name
    assert operators(graph) == ["conv2d", "reshape"]
    assert "t0" not in graph.tensors and "t3" not in graph.tensors
    same_results(builder, graph)
    builder.unary("quantize")
    assert operators(drop_identities(builder.graph()))[-1] == "quantize"


def test_lighter_convolution_goes_first():
    builder = NetworkBuilder(6, 6, 6, 4)
    block = builder.same_conv2d(3, 4)
    main = builder.same_conv2d(3, 8)
    builder.last = block
    builder.same_conv2d(1, 8)
    builder.add(main)
    graph = order_shortcuts(builder.graph())
    assert [node.name for node in graph.nodes] == ["conv2d_0", "conv2d_2", "conv2d_1", "add_3"]
    same_results(builder, graph)
    # one that depends on the other stays behind it
    builder = NetworkBuilder(6, 6, 6, 4)
    main = builder.same_conv2d(3, 4)
    builder.same_conv2d(1, 4)
    builder.add(main)
    graph = order_shortcuts(builder.graph())
    assert [node.name for node in graph.nodes] == ["conv2d_0", "conv2d_1", "add_2"]
    same_results(builder, optimize(builder.graph()))


@pytest.mark.parametrize("shape", [(1, 1, 1, 12), (1, 12)], ids=["axes stay", "a row"])
def test_a_vector_needs_no_reshape_before_a_layer(shape: tuple[int, ...]) -> None:
    builder = NetworkBuilder(4, 5, 6, 12)
    builder.mean(keep_dimensions=True)
    builder.reshape(shape)
    builder.fully_connected(7)
    skipped = drop_dead_nodes(skip_flattening(builder.graph()))
    assert operators(skipped) == ["mean", "fully_connected"]
    same_results(builder, skipped)


def test_a_picture_is_flattened_before_a_layer() -> None:
    builder = NetworkBuilder(4, 2, 3, 4)
    builder.reshape((1, 24))
    builder.fully_connected(7)
    graph = builder.graph()
    assert skip_flattening(graph).nodes == graph.nodes


@pytest.mark.parametrize("seed", range(40))
def test_functions_that_meet_again_are_one_table(seed: int) -> None:
    builder = NetworkBuilder(seed, 3, 4, 5)
    if seed % 2:
        builder.same_conv2d(1, 6)
    convolutions = len(builder.nodes)
    join_functions(builder)
    tabulated = drop_dead_nodes(tabulate_functions(builder.graph()))
    assert operators(tabulated)[convolutions:] == ["lookup"]
    same_results(builder, tabulated)


def test_what_else_is_read_stays_beside_the_table() -> None:
    builder = NetworkBuilder(1, 3, 4, 5)
    sigmoid = builder.unary("logistic")
    product = builder.mul("input")
    tabulated = drop_dead_nodes(tabulate_functions(builder.graph(sigmoid, product)))
    assert operators(tabulated) == ["logistic", "lookup"]
    same_results(builder, tabulated)


def test_constants_and_steps_are_in_the_table() -> None:
    """Hard-swish as x relu6(x + 3) / 6: four operators."""
    builder = NetworkBuilder(2, 3, 4, 5)
    three = Tensor("three", (1, 1, 1, 1), "int8", Quantization(np.array([0.03]), np.array([0])))
    codes = np.array([100], np.int8).reshape(1, 1, 1, 1)
    builder.tensors["three"] = dataclasses.replace(three, data=codes)
    for operator in ("add", "relu6", "mul"):
        if operator == "relu6":
            builder.unary(operator)
        else:
            result = builder.activation(f"{operator}_made", builder.shape())
            builder.node(operator, (builder.last, "three"), result, activation="none")
    builder.mul("input")
    tabulated = drop_dead_nodes(tabulate_functions(builder.graph()))
    assert operators(tabulated) == ["lookup"]
    same_results(builder, tabulated)


def test_a_gate_of_another_layer_is_no_table() -> None:
    builder = NetworkBuilder(3, 3, 4, 5)
    block = builder.same_conv2d(1, 5)
    builder.same_conv2d(1, 5)
    builder.unary("logistic")
    builder.mul(block)
    graph = builder.graph()
    assert operators(tabulate_functions(graph)) == operators(graph)
    builder = NetworkBuilder(3, 3, 4, 5)
    builder.mean(keep_dimensions=True)
    builder.unary("logistic")
    builder.mul("input")
    graph = builder.graph()
    assert operators(tabulate_functions(graph)) == operators(graph)
