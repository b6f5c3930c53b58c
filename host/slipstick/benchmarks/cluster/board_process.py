"""Boards in processes of their own, which can be killed, stopped and started again."""

import multiprocessing
import os
import signal
import socket
from multiprocessing.process import BaseProcess

from slipstick_rtl.config import Configuration

from ...devices.udp_server import LOOPBACK, open_port, serve

_START_SECONDS = 60.0


class BoardProcess:
    """A golden board on a UDP port of this machine.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    device : str
        The name for ``open_device``; it stays the same.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((LOOPBACK, 0))
            self._port = probe.getsockname()[1]
        self.device = f"udp:{LOOPBACK}:{self._port}+take"
        self._process: BaseProcess | None = None
        self.start()

    def start(self) -> None:
        """Switches the board on; returns when it answers."""
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        self._process = context.Process(
            target=_serve, args=(self._configuration, self._port, ready), daemon=True
        )
        self._process.start()
        ready.wait(_START_SECONDS)

    def kill(self) -> None:
        """Pulls the plug: the process ends at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def hang(self) -> None:
        """The process stands still."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """After ``hang``."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it."""
        self.go_on()
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.is_alive() and process.pid is not None:
            os.kill(process.pid, number)


def _serve(configuration: Configuration, port: int, ready: "multiprocessing.Event") -> None:  # pyright: ignore
    from ..faults.datagrams import GoldenBoard

    board = GoldenBoard(configuration, lease_seconds=1.0)
    with open_port(port) as connection:
        ready.set()
        serve(connection, board)
