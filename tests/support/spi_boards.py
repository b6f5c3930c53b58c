"""Boards on SPI for tests: the golden model of the peripheral before that of the device."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from slipstick.devices.pty_server import TransferEndpoint, TransferSocket, serve_transfers
from slipstick_rtl.config import Configuration
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint
from slipstick_sim.golden.spi import SpiPeripheral

REPLAY_BITS = 12


class GoldenBoard:
    """The golden model behind the golden peripheral; a bus and a served device at once."""

    hz = 10_000_000
    longest = 4096
    idle = True

    def __init__(self, configuration: Configuration, receive_depth: int = 1 << 13) -> None:
        self._configuration = configuration
        self._receive_depth = receive_depth
        self._core = GoldenCore(configuration)
        self.transfers = 0
        self.reset()

    def reset(self) -> None:
        """What a reset of the gateware forgets; the memories stay."""
        self._peripheral = SpiPeripheral(self._receive_depth, REPLAY_BITS, self._answer)
        self._endpoint = Endpoint(self._configuration, self._core)
        self._answers = bytearray()

    def transfer(self, data: bytes) -> bytes:
        """One transfer; the device works afterwards."""
        self.transfers += 1
        answer = self._peripheral.transfer(data)
        self.rest()
        return answer

    def rest(self) -> None:
        """Lets the device work."""
        received = bytes(self._peripheral.received)
        self._peripheral.received.clear()
        self._answers += self._endpoint.feed(received)
        self._peripheral.send(self._answer(self._peripheral.room))

    def close(self) -> None:
        """Nothing to free."""

    def _answer(self, room: int) -> bytes:
        data = bytes(self._answers[:room])
        del self._answers[:room]
        return data


class FaultyBus:
    """A board whose transfers are cut short, spoilt on their way, or reach a reset device.

    Parameters
    ----------
    board : GoldenBoard
    seed : int
    rate : float
        How probable each fault is in a transfer.
    resets : bool
        Whether the device is reset now and then.
    """

    hz = 10_000_000
    longest = 4096

    def __init__(self, board: GoldenBoard, seed: int, rate: float, resets: bool = False) -> None:
        self._board = board
        self._random = random.Random(seed)
        self.rate = rate
        self.resets = resets

    def transfer(self, data: bytes) -> bytes:
        """One transfer: a select that ends early, bits that flip, clock edges too many, a reset."""
        whole = self._random.randrange(len(data)) if self._chance() else len(data)
        if self._chance():
            data = self._flip(data)
        if self._chance():
            place = self._random.randrange(len(data))
            data = data[:place] + bytes(byte >> 1 for byte in data[place:])
        answer = self._board.transfer(data[:whole]).ljust(len(data), b"\xff")
        if self.resets and self._chance():
            self._board.reset()
        return self._flip(answer) if self._chance() else answer

    def _chance(self) -> bool:
        return self._random.random() < self.rate

    def _flip(self, data: bytes) -> bytes:
        place = self._random.randrange(8 * len(data))
        return (int.from_bytes(data) ^ 1 << place).to_bytes(len(data))

    def close(self) -> None:
        """Nothing to free."""


@contextmanager
def served(endpoint: TransferEndpoint) -> Iterator[str]:
    """Serves a board in a thread; gives the device's name."""
    stop = threading.Event()
    with TransferSocket() as wires:
        thread = threading.Thread(target=serve_transfers, args=(wires, endpoint, stop.is_set))
        thread.start()
        try:
            yield f"spi:{wires.path}"
        finally:
            stop.set()
            thread.join()
