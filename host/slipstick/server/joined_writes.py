"""Sends the head and the body of a response together."""

import asyncio
from typing import Any


class JoinedWrites(asyncio.Transport):
    """A connection that joins two writes which follow each other at once.

    uvicorn writes a response in two parts. Each part costs a system call, and wakes the client.

    Parameters
    ----------
    transport : Transport
        The connection itself.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends bytes: at once if others wait already, else before the event loop goes on."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(b"".join((held, data)))
        elif data:
            self._held = bytes(data)
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)

    def close(self) -> None:
        """Sends what waits, and ends the connection."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._held = b""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Tells whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns a piece of information about the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """No data is received until ``resume_reading``."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Data is received again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Whom the connection calls."""
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Whom the connection calls now."""
        return self._transport.get_protocol()
