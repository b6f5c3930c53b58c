"""Defines what every device can do: the model, the compiled simulation and boards alike."""

from collections.abc import Sequence
from typing import Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import DeviceStatus, Space


class Device(Protocol):
    """A core at the other end of a link. Whatever goes wrong there is a ``DeviceError``."""

    @property
    def configuration(self) -> Configuration:
        """The hardware that it is taken for; ``identify`` tells whether it is."""
        ...

    def identify(self) -> Identity:
        """Asks the device for its identity; DeviceError if it is other hardware."""
        ...

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Stores whole units of a memory, of any number, from unit ``address`` on."""
        ...

    def read(self, address: int, count: int) -> bytes:
        """``count`` bytes of activation memory, of any number."""
        ...

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """Starts each instruction stream at its word; ``clear``: with counters at 0."""
        ...

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        """Returns when the run is over; DeviceError if it does not end or met a bad instruction."""
        ...

    def status(self) -> DeviceStatus:
        """The state of the run, at once."""
        ...

    def reset(self) -> None:
        """Stops a run; memories keep their contents."""
        ...

    def close(self) -> None:
        """Ends the connection; the device is of no more use."""
        ...
