"""Simulated boards with DRAM, pins included: networks run from it over each wire."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest
from random_networks import random_network
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_list import find_dram_program
from slipstick.devices import open_device
from slipstick.devices.simulated_boards import Physical, open_board
from slipstick.kernels.dispatch import run_graph
from slipstick.runtime.executor import Execution
from slipstick_rtl.config import Configuration
from small_dram_core import SMALL

WIRES = [
    pytest.param(wire, marks=[] if wire is Physical.UART else pytest.mark.thorough)
    for wire in Physical
]


@contextmanager
def served(wire: Physical, configuration: Configuration) -> Iterator[str]:
    """Serves a simulated board in a thread; gives the device's name."""
    stop = threading.Event()
    port = 0 if wire is Physical.ETHERNET else None
    with closing(open_board(wire, configuration, udp_port=port)) as board:
        thread = threading.Thread(target=board.serve, args=(stop.is_set,))
        thread.start()
        try:
            yield board.device
        finally:
            stop.set()
            thread.join()


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
def test_networks_run_from_a_board_s_dram(wire: Physical) -> None:
    """As on the RTL without pins: the lists of networks that do not fit, and their results."""
    listed = 0
    with served(wire, SMALL) as name, closing(open_device(name, SMALL)) as device:
        for seed in range(200, 225):
            builder = random_network(seed)
            graph, images = builder.graph(builder.last), builder.images()
            program = compile_graph(graph, SMALL)
            if find_dram_program(program) is None:
                continue
            listed += 1
            execution = Execution(program, device)
            assert execution.lists
            found, wanted = execution.infer({"input": images}), run_graph(graph, [images])
            for output in program.outputs:
                np.testing.assert_array_equal(found[output], wanted[output])
    assert listed > 2
