"""A network is compiled, stored, read again, and run: all that comes down must be the kernels'."""

from collections.abc import Sequence

import numpy as np
from program_runner import run_program
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.compiler.transform.spread_vectors import spread_vectors
from slipstick.kernels.dispatch import run_graph
from slipstick.profile.executed import executed_runs
from slipstick.program import Program
from slipstick.program import slip_file as program_file
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MapFlag, Opcode

Way = tuple[str | int, bool]
"""The order of the core's two streams, and whether what overlaps with a run is done before it."""


def products_of(program: Program) -> int:
    """Instructions that multiply activations."""
    post = [each for run in executed_runs(program) for each in run.post]
    return sum(
        each.opcode == Opcode.MAP and bool(each.fields["table_words"] & MapFlag.MULTIPLY)
        for each in post
    )


def check_ways(
    builder: NetworkBuilder,
    configuration: Configuration,
    outputs: tuple[str, ...],
    ways: Sequence[Way],
    *,
    inspect: bool,
) -> Program:
    """Runs a network in several ways; every tensor that comes down must be the kernels'."""
    graph, image = builder.graph(*outputs), builder.images()
    expected = run_graph(spread_vectors(graph, configuration), [image])
    program = compile_graph(graph, configuration, inspect=inspect)
    program = program_file.decode(program_file.encode(program))
    for order, early in ways:
        values = run_program(program, {"input": image}, order=order, early=early)
        assert set(graph.outputs) <= set(values)
        for name, value in values.items():
            message = f"{name}, {order}, early {early}"
            np.testing.assert_array_equal(value, expected[name], message)
    return program
