"""Boards on Ethernet for tests: golden models behind UDP ports of this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slipstick.benchmarks.faults.datagrams import FaultyNetwork, GoldenBoard, NetworkFault
from slipstick.devices.udp_server import DatagramBoard, open_port, serve
from slipstick_rtl.config import Configuration

ROUGH = {
    NetworkFault.LOSS: 0.05,
    NetworkFault.REPEAT: 0.05,
    NetworkFault.LATE: 0.25,
    NetworkFault.DAMAGE: 0.01,
}
"""Far worse than any network that works."""


@contextmanager
def served(board: DatagramBoard, port: int = 0) -> Iterator[str]:
    """Serves a board in a thread; gives the device's name."""
    stop = threading.Event()
    connection = open_port(port)
    thread = threading.Thread(target=serve, args=(connection, board, stop.is_set))
    thread.start()
    try:
        yield f"udp:127.0.0.1:{connection.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        connection.close()


def network_of(
    configuration: Configuration, rates: dict[NetworkFault, float] | None = None, seed: int = 1
) -> FaultyNetwork:
    """A golden board at the far end of a network."""
    return FaultyNetwork(lambda: GoldenBoard(configuration), seed, rates)
