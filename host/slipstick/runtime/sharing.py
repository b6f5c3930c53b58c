"""Lets several sessions and threads use one open device: one inference at a time.

A device holds one program, and its memories, its link and its session belong to whoever runs. So
each device has a lock, and remembers whose program it holds.
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from ..devices.base import Device
from ..devices.turns import TURNS
from ..errors import DeviceError


class Sharing:
    """Who uses a device.

    Members
    -------
    lock : RLock
        Held for a whole inference, or a whole batch of them.
    unfinished : bool
        A run was begun, and nobody waited for its end.
    waiters : int
        Threads that wait for the device.
    consumer : int or None
        The thread that takes the results of the stream that is open on the device.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.unfinished = False
        self.waiters = 0
        self.consumer: int | None = None
        self._owner: weakref.ref[object] | None = None

    @property
    def owner(self) -> object | None:
        """Returns the owner of the program on the device; None: there is none, or it is gone."""
        return None if self._owner is None else self._owner()

    def owned_by(self, user: object) -> bool:
        """Tells whether the device holds this user's program."""
        return self.owner is user

    def give_to(self, user: object | None) -> None:
        """Notes whose program the device is about to hold; None: nobody's."""
        self._owner = None if user is None else weakref.ref(user)


_SHARINGS: "weakref.WeakKeyDictionary[Device, Sharing]" = weakref.WeakKeyDictionary()
_SHARINGS_LOCK = threading.Lock()


def sharing_of(device: Device) -> Sharing:
    """Returns what is known of the users of a device; the same for all of them."""
    with _SHARINGS_LOCK:
        return _SHARINGS.setdefault(device, Sharing())


@contextmanager
def exclusive(device: Device) -> Iterator[Sharing]:
    """Waits until nobody else uses the device, and keeps others out during the body.

    Raises
    ------
    DeviceError
        If this thread has a stream open on the device: it would wait for itself.
    """
    sharing = sharing_of(device)
    if sharing.consumer == threading.get_ident():
        raise DeviceError(
            "a stream is open on the device: take all of its results or close it first"
        )
    if not sharing.lock.acquire(blocking=False):
        with _SHARINGS_LOCK:
            sharing.waiters += 1
        try:
            TURNS.wait(sharing.lock.acquire)
        finally:
            with _SHARINGS_LOCK:
                sharing.waiters -= 1
    try:
        yield sharing
    finally:
        sharing.lock.release()
