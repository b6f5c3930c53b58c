"""Items between a source that gives them as they come and a device that takes them."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Given_co = TypeVar("Given_co", covariant=True)

MOST_AHEAD = 64
"""Images that are submitted before the first one's results are looked at."""
READ_AHEAD = 16
"""Items that a source may be ahead of the device."""
_LEAVE_SECONDS = 0.2
"""Longest wait of a closed stream for its source: one that waits for a camera is left alone."""


class Source(Protocol[Given_co]):
    """Gives an execution its samples."""

    @property
    def ahead(self) -> int:
        """Samples that may be on their way to the device, besides one."""
        ...

    def wait(self, seconds: float | None = None) -> bool:
        """Waits so many seconds for an item (None: to the end); tells whether one is there."""
        ...

    def take(self) -> Given_co:
        """The next item, after ``wait`` has said that it is there."""
        ...

    def check(self) -> None:
        """Raises the error with which the source ended, if it did."""
        ...


class Ready(Generic[Item]):
    """A source whose items are there whenever they are asked for.

    Parameters
    ----------
    items : iterable
    """

    ahead = MOST_AHEAD

    def __init__(self, items: Iterable[Item]) -> None:
        self._items: Iterator[Item] = iter(items)
        self._next = deque[Item]()

    def wait(self, seconds: float | None = None) -> bool:
        """Tells whether there is another item."""
        if not self._next:
            for item in self._items:
                self._next.append(item)
                break
        return bool(self._next)

    def take(self) -> Item:
        """The next item."""
        return self._next.popleft()

    def check(self) -> None:
        """Errors come out of ``wait``."""


class Arrivals(Generic[Item]):
    """Items that one thread puts and another one takes, in their order.

    Parameters
    ----------
    on_take : callable, optional
        Called in the taking thread for each item that it takes.
    """

    ahead = MOST_AHEAD

    def __init__(self, on_take: Callable[[], None] | None = None) -> None:
        self._changed = threading.Condition()
        self._items = deque[Item]()
        self._ended = self._stopped = False
        self._error: BaseException | None = None
        self._on_take = on_take

    def put(self, item: Item) -> bool:
        """Waits for room, and puts an item; False if nobody takes it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or len(self._items) < READ_AHEAD)
            if not self._stopped:
                self._items.append(item)
                self._changed.notify_all()
            return not self._stopped

    def end(self, error: BaseException | None = None) -> None:
        """No more will come; ``error``: since the source raised it."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody wants what is left; for the taker this is the end."""
        with self._changed:
            self._stopped = self._ended = True
            self._items.clear()
            self._changed.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits so many seconds for an item (None: to the end); tells whether one is there."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or bool(self._items), seconds)
            return bool(self._items)

    def take(self) -> Item:
        """The next item, after ``wait`` has said that it is there."""
        with self._changed:
            item = self._items.popleft()
            self._changed.notify_all()
        if self._on_take is not None:
            self._on_take()
        return item

    def check(self) -> None:
        """Raises the error with which the source ended, if it did."""
        if self._error is not None and not self._stopped:
            raise self._error


class Reader(Arrivals[Item]):
    """Reads an iterable in a thread of its own, some items ahead.

    Parameters
    ----------
    items : iterable
    """

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        self._given = items
        # one that waits for its camera must not keep the process alive
        self._thread = threading.Thread(target=self._read, name="slipstick-source", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for item in self._given:
                if not self.put(item):
                    break
        except BaseException as error:
            self.end(error)
        else:
            self.end()

    def stop(self) -> None:
        """Nobody wants what is left; the thread ends when the source has given its next item."""
        super().stop()
        self._thread.join(_LEAVE_SECONDS)
