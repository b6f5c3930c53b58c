"""Hosts on disturbed wires: glitches, inverted bits and breaks between the pins of a UART."""

import random
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from slipstick.benchmarks.faults.network import HARDWARE, small_work
from slipstick.benchmarks.faults.wires import DIVISOR, WiredBoard, disturb
from slipstick.devices import open_device
from slipstick.devices.link.errors import CODES, LinkError
from slipstick.devices.pty_server import PseudoTerminal, serve
from slipstick.runtime.executor import Execution
from slipstick_rtl.link.protocol import REQUEST_START, Command, encode
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE
from slipstick_sim.verilated import CompiledCore, serial_library
from slipstick_sim.verilated.endpoint import SerialEndpoint

WORK = small_work()
IDENTIFY = encode(REQUEST_START, Command.IDENTIFY, 1, b"")
BYTE_CYCLES = BITS_PER_BYTE * DIVISOR
BAUD = 38_400
TIMEOUT_CYCLES = 1 << 16
"""Of a board whose time goes slower than the host's."""


@pytest.fixture(scope="module")
def library() -> Path:
    with closing(WiredBoard(HARDWARE, seed=0)) as board:
        return board.library


def answer(library: Path, bit_cycles: float) -> bytes:
    """Returns what comes back for IDENTIFY if the host's bits are so long."""
    with CompiledCore(library) as core:
        core.set_bit_cycles(bit_cycles)
        core.send(IDENTIFY, 100 * BYTE_CYCLES)
        core.run_cycles(100 * BYTE_CYCLES)
        return core.receive(core.available, 0)


@pytest.mark.thorough
def test_rates_may_differ_by_some_percent(library: Path) -> None:
    right = answer(library, DIVISOR)
    assert len(right) > 12
    assert all(answer(library, DIVISOR * (1 + rate)) == right for rate in (-0.02, 0.02))
    assert all(answer(library, DIVISOR * (1 + rate)) != right for rate in (-0.1, 0.1))


def test_a_bit_is_no_shorter_than_a_cycle(library: Path) -> None:
    with CompiledCore(library) as core:
        with pytest.raises(ValueError, match=r"a bit must last at least 1 cycle, not 0\.5"):
            core.set_bit_cycles(0.5)


def test_disturbances_come_as_often_as_they_are_asked_for(library: Path) -> None:
    with CompiledCore(library) as core:
        core.run_cycles(100_000)
        assert not any(core.disturbances.values())
        core.disturb(seed=5, mean_cycles=1000)
        core.run_cycles(100_000)
        first = core.disturbances
        assert 120 < sum(first.values()) < 220 and all(first.values())
        # the board is deaf to an idle line's glitches, and never babbles
        assert core.available == 0 or core.receive(core.available, 0)
        core.disturb(seed=5, mean_cycles=0)
        core.run_cycles(100_000)
        assert core.disturbances == first


@pytest.mark.thorough
def test_all_that_hosts_are_told_over_disturbed_wires_is_right() -> None:
    result = disturb(HARDWARE, WORK, 400, seed=4)
    assert result["wrong"] == 0 and result["without_recovery"] == 0, result
    assert set(result["failed_by_code"]) <= set(CODES)
    assert sum(result["right"].values()) > 0 and result["recoveries"] >= 2


def test_the_whole_host_on_a_disturbed_terminal() -> None:
    endpoint = SerialEndpoint(
        serial_library(HARDWARE, DIVISOR, timeout_cycles=TIMEOUT_CYCLES), DIVISOR
    )
    draw = random.Random(6)
    stop = threading.Event()
    told: list[str] = []
    with PseudoTerminal() as terminal, closing(endpoint):
        server = threading.Thread(target=serve, args=(terminal, endpoint, stop.is_set))
        server.start()
        try:
            place = f"serial:{terminal.path}@{BAUD}"
            for _ in range(6):
                endpoint.disturb(draw.getrandbits(30), draw.choice((500, 3000)) * BYTE_CYCLES)
                told.append(one_session(place, draw.randrange(len(WORK.feeds))))
            endpoint.disturb(0, 0)
            assert one_session(place, 0) == "right"
        finally:
            stop.set()
            server.join()
        assert sum(endpoint.disturbances.values()) > 20
    assert "right" in told and set(told) <= {"right", *CODES}, told


def one_session(place: str, sample: int) -> str:
    """A new host runs the network once: "right", "wrong", or the code of the error."""
    try:
        with closing(open_device(place, HARDWARE)) as device:
            values = Execution(WORK.program, device).infer(WORK.feeds[sample])
    except LinkError as error:
        return error.code
    expected = WORK.expected[sample]
    right = all(np.array_equal(values[name], expected[name]) for name in expected)
    return "right" if right else "wrong"
