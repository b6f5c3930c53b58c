"""Brings the answers of boards' threads to the event loop."""

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Answers(Generic[Answer]):
    """Makes futures of threads awaitable, as ``asyncio.wrap_future`` does.

    Waking an event loop costs a system call. Answers that come while it is busy share one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: deque[tuple[Future[Answer], asyncio.Future[Answer]]] = deque()
        self._is_woken = False

    def awaitable(self, computed: "Future[Answer]") -> "asyncio.Future[Answer]":
        """Returns a future of the running loop; to cancel it cancels the thread's.

        Parameters
        ----------
        computed : concurrent.futures.Future
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # what was on its way to another loop has nobody who waits
            self._loop, self._is_woken = loop, False
            self._arrived.clear()
        result: asyncio.Future[Answer] = loop.create_future()
        result.add_done_callback(lambda done: done.cancelled() and computed.cancel())
        computed.add_done_callback(lambda done: self._arrive(loop, done, result))
        return result

    def _arrive(
        self,
        loop: asyncio.AbstractEventLoop,
        computed: "Future[Answer]",
        result: "asyncio.Future[Answer]",
    ) -> None:
        """In any thread."""
        self._arrived.append((computed, result))
        # first there, then looked at: ``_deliver`` does it the other way round
        if not self._is_woken and not loop.is_closed():
            self._is_woken = True
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """In the event loop."""
        self._is_woken = False
        while self._arrived:
            computed, result = self._arrived.popleft()
            if result.done():
                continue
            if computed.cancelled():
                result.cancel()
            elif (error := computed.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(computed.result())
