"""A faulty Ethernet: hosts at work on the golden model behind the golden port, in imagined time."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from slipstick_rtl.config import Configuration

from ...devices.link.errors import LinkError
from ...devices.link.patience import Patience
from ...devices.link.transport import Transport
from ...devices.udp_claim import claim
from ...devices.udp_transport import UdpTransport
from .datagrams import FaultyNetwork, GoldenBoard, ImaginedNetwork, NetworkFault
from .network import Work
from .suite import FaultSuite, Tally, intrusion
from .transport import RandomPlan

_RATES = (0.003, 0.01, 0.03, 0.1)
"""Probabilities of a fault for a datagram, before the weights."""
_WEIGHTS = {
    NetworkFault.LATE: 3.0,
    NetworkFault.DAMAGE: 0.3,
    NetworkFault.OUTAGE: 0.3,
    NetworkFault.RESTART: 0.5,
    NetworkFault.TAKEN: 0.5,
}
_NAME = "udp:imagined"


class EthernetBoard:
    """A board behind a network that fails while it is not calm; a ``Board`` of the fault suite.

    A host that lost the board takes it again with its next bytes.

    Parameters
    ----------
    configuration : Configuration
    seed : int

    Members
    -------
    network : FaultyNetwork
    claims : int
        How often the board was taken.
    longest_wait_seconds : float
        The longest call of a transport, in imagined time.
    """

    cycles = None
    stall_seconds = 0.0

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self.configuration = configuration
        self.patience = Patience(timeout_seconds=1.0, silence_seconds=0.1)
        self.transport: Transport = self
        self.network = FaultyNetwork(lambda: GoldenBoard(configuration), seed, intruder=intrusion)
        self.claims = 0
        self.longest_wait_seconds = 0.0
        self._imagined = ImaginedNetwork(self.network)
        self._line: UdpTransport | None = None

    @property
    def imagined_seconds(self) -> float:
        """The time that hosts have waited."""
        return self._imagined.time

    def send(self, data: bytes) -> None:
        """Sends to the board, which is taken if it is not this host's."""
        self._owned(lambda line: line.send(data))

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Receives from the board."""
        return self._owned(lambda line: line.receive(count, timeout_seconds))

    def _owned(self, action: Callable[[UdpTransport], Any]) -> Any:
        start = self._imagined.time
        try:
            if self._line is None:
                self._line = claim(self._imagined.connect(), _NAME, take=True)
                self.claims += 1
            return action(self._line)
        except LinkError:
            if self._line is not None:
                self._line.close()
            self._line = None
            raise
        finally:
            waited = self._imagined.time - start
            self.longest_wait_seconds = max(self.longest_wait_seconds, waited)

    def idle(self, seconds: float) -> None:
        """Lets time pass."""
        self._imagined.pass_time(seconds)

    def forget(self) -> None:
        """Half a frame is forgotten."""
        self.idle(1.0)

    def pause(self, seconds: float) -> None:
        """A host's pause."""
        self.idle(seconds)

    def power_cycle(self) -> None:
        """As after configuration."""
        self.network.restart()

    def calm(self, calm: bool) -> None:
        """Ends or begins the network's faults."""
        self.network.calm(calm)

    def close(self) -> None:
        """Gives the board back."""
        if self._line is not None:
            with suppress(LinkError):
                self._line.close()


def disturb_ethernet(
    configuration: Configuration,
    work: Work,
    faults: int,
    seed: int,
    tick: Callable[[int], object] = int,
) -> dict[str, Any]:
    """Hosts at work until each kind of fault of the network came so often.

    Parameters
    ----------
    configuration : Configuration
        As of ``work``.
    work : Work
    faults : int
        Of every kind, at least.
    seed : int
    tick : callable
        Told before every operation how many of the rarest kind there are by now.

    Returns
    -------
    dict
        Figures for people and reports.
    """
    start = time.monotonic()
    draw = random.Random(seed)
    board = EthernetBoard(configuration, seed)
    network = board.network
    # nothing but the network fails
    suite = FaultSuite(board, work, seed, plan=RandomPlan(seed))
    while (rarest := min(network.counts[fault] for fault in NetworkFault)) < faults:
        rate = draw.choice(_RATES)
        network.rates = {
            fault: rate * _WEIGHTS.get(fault, 1.0) * draw.random() for fault in NetworkFault
        }
        suite.episode(beat=partial(tick, rarest))
    board.close()
    return _figures(board, suite.tally) | {"seconds": time.monotonic() - start}


def _figures(board: EthernetBoard, tally: Tally) -> dict[str, Any]:
    return {
        "faults": {fault.value: board.network.counts[fault] for fault in NetworkFault},
        "datagrams": board.network.datagrams,
        "claims": board.claims,
        "longest_wait_seconds": board.longest_wait_seconds,
        "imagined_seconds": board.imagined_seconds,
        **tally.figures(),
    }
