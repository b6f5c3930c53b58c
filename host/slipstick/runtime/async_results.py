"""Results of a stream for an event loop, which never waits for the device."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from contextlib import closing, suppress
from typing import Any, Generic, TypeVar

from .arrivals import READ_AHEAD, Arrivals, Reader

Result = TypeVar("Result")
Stream = Callable[[Arrivals[Any]], Generator[Result, None, None]]


class AsyncResults(Generic[Result]):
    """Runs a stream in one thread, which has the device for its whole life.

    Parameters
    ----------
    stream : callable
        Makes the results of what arrives.
    items : iterable or asynchronous iterable
        Another thread reads the first, a task of the event loop the second.
    """

    def __init__(self, stream: Stream[Result], items: Iterable[Any] | AsyncIterable[Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._results = asyncio.Queue[tuple[Result] | BaseException | None]()
        self._room = threading.Semaphore(READ_AHEAD)
        self._stopped = False
        self._over = asyncio.Event()
        self._feeder: asyncio.Task[None] | None = None
        if isinstance(items, AsyncIterable):
            room = asyncio.Semaphore(READ_AHEAD)
            self._arrivals = Arrivals[Any](lambda: self._tell(room.release))
            self._feeder = self._loop.create_task(self._feed(items, room))
        else:
            self._arrivals = Reader(items)
        self._thread = threading.Thread(
            target=self._run, args=(stream,), name="slipstick-stream", daemon=True
        )
        self._thread.start()

    async def results(self) -> AsyncGenerator[Result, None]:
        """The results, in their order."""
        try:
            while (told := await self._results.get()) is not None:
                if isinstance(told, BaseException):
                    raise told
                self._room.release()
                yield told[0]
        finally:
            await self._leave()

    def close(self) -> None:
        """Ends the stream, and waits until the device is free; blocks the event loop so long."""
        self._stop()
        self._thread.join()

    def _stop(self) -> None:
        self._stopped = True
        self._arrivals.stop()
        self._room.release()

    async def _leave(self) -> None:
        await self._loop.run_in_executor(None, self._stop)
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.wait([self._feeder])
        await self._over.wait()

    async def _feed(self, items: AsyncIterable[Any], room: asyncio.Semaphore) -> None:
        try:
            await room.acquire()
            async for item in items:
                self._arrivals.put(item)
                await room.acquire()
        except BaseException as error:
            self._arrivals.end(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._arrivals.end()

    def _run(self, stream: Stream[Result]) -> None:
        end: BaseException | None = None
        try:
            with closing(stream(self._arrivals)) as results:
                for result in results:
                    self._room.acquire()
                    if self._stopped:
                        break
                    self._tell(self._results.put_nowait, (result,))
        except BaseException as error:
            end = error
        self._tell(self._results.put_nowait, end)
        self._tell(self._over.set)

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        # a loop that is closed has nobody who listens
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)
