"""Ways for bytes to reach a device."""

from typing import Protocol


class Transport(Protocol):
    """A byte stream in each direction. What cannot be mended there is a ``DeviceError``.

    One that keeps bytes which came before they were asked for may have a method
    ``take_arrived() -> bytes``, which gives them all.
    """

    def send(self, data: bytes) -> None:
        """Sends all the bytes, or leaves them to something that will."""
        ...

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time; none means that it is over."""
        ...

    def close(self) -> None:
        """Ends the connection."""
        ...


class ByteEndpoint(Protocol):
    """A device in this process, such as ``slipstick_sim.golden.link.Endpoint``."""

    def feed(self, data: bytes) -> bytes:
        """Takes bytes and returns those that it answers."""
        ...


class LoopbackTransport:
    """A device in this process as a transport: nothing ever needs waiting for.

    Parameters
    ----------
    endpoint : ByteEndpoint
    """

    def __init__(self, endpoint: ByteEndpoint) -> None:
        self._endpoint = endpoint
        self._answers = bytearray()

    def send(self, data: bytes) -> None:
        """Feeds the endpoint; its answers wait to be received."""
        self._answers += self._endpoint.feed(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """Up to ``count`` bytes of the answers, at once."""
        taken = bytes(self._answers[:count])
        del self._answers[:count]
        return taken

    def close(self) -> None:
        """Drops what has not been received."""
        self._answers.clear()
