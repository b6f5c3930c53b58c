"""A connection of HTTP: its deadline for the head of a request, and how it sends responses."""

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .joined_writes import JoinedWrites

HEAD_SECONDS = 30.0


class DeadlineProtocol(AutoHTTPProtocol):
    """A connection of HTTP with a deadline for the head of each request.

    uvicorn has one for connections that wait between requests, but none for those that never send
    a request, or send its head a byte at a time. Bodies have their own: ``BodyReader``.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(JoinedWrites(transport))
        self._arm()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come."""
        before = self._current
        super().data_received(data)
        if self._current is not before:
            self._disarm()
        elif self._idle and self._deadline is None:
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._disarm()
        super().connection_lost(exc)

    @property
    def _current(self) -> object:
        """The request whose head was read last."""
        return getattr(self, "cycle", None)

    @property
    def _idle(self) -> bool:
        current = self._current
        return current is None or bool(getattr(current, "response_complete", False))

    def _arm(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._end)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self._deadline = None
        transport = getattr(self, "transport", None)
        if self._idle and transport is not None:
            transport.close()
