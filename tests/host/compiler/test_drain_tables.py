"""Functions of one code behind a layer: the layer's results go through the table themselves."""

from dataclasses import replace

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.profile.executed import executed_runs
from slipstick.program import Program
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode

SMALL = replace(find_target("1x4x4").configuration, drain_tables=1)
WIDE = replace(
    SMALL, rows=16, columns=8, lanes=8, weight_rows=4, ninth_bits=1, weight_bytes=1 << 15
)
TINY = replace(WIDE, activation_bytes=1 << 10, weight_bytes=1 << 12)
"""Nearly all networks are cut for it, and streamed."""

BEHIND = "table of results"


def _layers_with_functions(program: Program) -> list[str]:
    return [layer.name for layer in program.layers if BEHIND in layer.why]


def _opcodes(program: Program) -> list[tuple[Opcode, int]]:
    """The post stream, as (opcode, use_table)."""
    post = [each for run in executed_runs(program) for each in run.post]
    return [(each.opcode, each.fields["use_table"]) for each in post]


@pytest.mark.parametrize("configuration", [SMALL, WIDE, TINY], ids=["small", "wide", "cut"])
def test_random_networks(configuration: Configuration) -> None:
    behind = cut = 0
    for seed in range(30):
        builder = random_network(seed, functions=True)
        outputs, inspect = some_outputs(builder), bool(seed % 2)
        ways = [("matrix_first", False), (seed, True)]
        program = check_ways(builder, configuration, outputs, ways, inspect=inspect)
        behind += len(_layers_with_functions(program))
        cut += program.is_streamed
    assert behind > 20
    assert (cut > 10) == (configuration is TINY)


def _network() -> NetworkBuilder:
    builder = NetworkBuilder(5, 8, 8, 8)
    builder.same_conv2d(3, 16)
    return builder


def test_a_function_costs_no_map() -> None:
    builder = _network()
    builder.unary("hard_swish")
    plain = compile_graph(builder.graph(), replace(WIDE, drain_tables=0))
    program = compile_graph(builder.graph(), WIDE)
    assert len(_layers_with_functions(program)) == 1 and not _layers_with_functions(plain)
    assert {code for code, _ in _opcodes(plain)} == {Opcode.TABLE, Opcode.DRAIN, Opcode.MAP}
    found = _opcodes(program)
    assert {code for code, _ in found} == {Opcode.TABLE, Opcode.DRAIN}
    assert all(use_table == 1 for code, use_table in found if code == Opcode.DRAIN)
    assert program.predicted_cycles < plain.predicted_cycles
    check_ways(builder, WIDE, (builder.last,), [("post_first", True)], inspect=False)


def test_what_is_read_or_put_out_before_its_function_stays() -> None:
    builder = _network()
    made = builder.last
    behind = builder.unary("logistic")
    for outputs in ((made, behind), (behind, made)):
        assert not _layers_with_functions(compile_graph(builder.graph(*outputs), WIDE))
    builder.last = made
    builder.same_conv2d(1, 16)
    builder.add(behind)
    program = check_ways(builder, WIDE, (builder.last,), [("post_first", True)], inspect=False)
    assert not _layers_with_functions(program)


def test_functions_that_meet_again_cost_no_map() -> None:
    """SiLU, and a sum of two functions."""
    for operator, join in (("logistic", "mul"), ("tanh", "add")):
        builder = _network()
        made = builder.last
        builder.unary(operator)
        getattr(builder, join)(made)
        program = check_ways(builder, WIDE, (builder.last,), [("post_first", True)], inspect=False)
        assert len(_layers_with_functions(program)) == 1
        assert {code for code, _ in _opcodes(program)} == {Opcode.TABLE, Opcode.DRAIN}


def test_a_sum_behind_a_function_has_a_table_of_its_own() -> None:
    """The sum cannot follow each tile of the layer: there is one table for both."""
    builder = _network()
    shortcut = builder.last
    builder.same_conv2d(1, 16)
    builder.unary("hard_swish")
    builder.add(shortcut)
    builder.unary("hard_swish")
    check_ways(builder, WIDE, (builder.last,), [("matrix_first", False)], inspect=False)
    program = compile_graph(builder.graph(), WIDE, double_buffer=False)
    assert len(_layers_with_functions(program)) == 1
    found = [code for code, _ in _opcodes(program)]
    assert found.count(Opcode.TABLE) == 3


def test_what_the_host_runs_has_its_function_apart() -> None:
    """A layer that does not fit even in parts loses no function."""
    builder = NetworkBuilder(2, 7, 6, 9)
    builder.depthwise((4, 3), 3)
    layer = builder.nodes[-1].name
    builder.unary("hard_swish")
    builder.same_conv2d(1, 8)
    program = check_ways(builder, TINY, (builder.last,), [("matrix_first", False)], inspect=False)
    assert layer in [each.name for each in program.layers if each.where == "host"]


def test_the_same_function_is_loaded_once() -> None:
    builder = NetworkBuilder(9, 4, 4, 8)
    for _ in range(3):
        builder.fully_connected(16)
        builder.unary("tanh", same_scale=True)
    graph = builder.graph()
    functions = [node for node in graph.nodes if node.operator == "tanh"]
    beside = {name for node in functions for name in (*node.inputs, *node.outputs)}
    same = graph.tensors[functions[0].inputs[0]].quantization
    tensors = {
        name: replace(tensor, quantization=same) if name in beside else tensor
        for name, tensor in graph.tensors.items()
    }
    program = compile_graph(graph.replace(tensors=tensors), WIDE, double_buffer=False)
    assert len(_layers_with_functions(program)) == 3
    assert [code for code, _ in _opcodes(program)].count(Opcode.TABLE) == 1
