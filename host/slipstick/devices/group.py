"""Several devices under one name: ``pool:D1,D2``, and the stages of a pipeline."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import DeviceStatus, Space

from ..errors import DeviceError
from .base import Device

MOST_MEMBERS = 256


class GroupKind(StrEnum):
    """Ways in which the members of a group share the work."""

    POOL = "pool"
    """Each runs the whole network; images are divided."""
    PIPELINE = "pipeline"
    """Each runs some layers; images pass from one to the next."""
    SPLIT = "split"
    """Each computes some output channels of the layers."""


class DeviceGroup:
    """Open devices that one session uses together.

    Parameters
    ----------
    kind : GroupKind
    names : sequence of str
        One per member, for messages and for opening it again.
    opened : sequence of Device
        The group closes them, unless ``opener`` is None.
    opener : callable, optional
        Opens member number i again after a failure; without it a member is reset instead.

    Members
    -------
    members : list of Device
        As they are now; one that failed is replaced by ``reopen``.
    """

    def __init__(
        self,
        kind: GroupKind,
        names: Sequence[str],
        opened: Sequence[Device],
        opener: Callable[[int], Device] | None = None,
    ) -> None:
        assert len(names) == len(opened) > 0
        self.kind, self.names, self._opener = kind, tuple(names), opener
        self.members = list(opened)
        self._locks = [threading.Lock() for _ in names]
        self._closed = False

    @property
    def configuration(self) -> Configuration:
        """The first member's hardware."""
        return self.members[0].configuration

    def reopen(self, number: int, broken: Device) -> Device:
        """Returns a member that answers in place of one that failed.

        Parameters
        ----------
        number : int
        broken : Device
            The one that failed; if another thread has replaced it already, that one is returned.

        Raises
        ------
        DeviceError
            If it does not answer; the member stays as it is.
        """
        with self._locks[number]:
            if self._closed:
                raise DeviceError(f"device {self.names[number]} is closed")
            if self.members[number] is not broken:
                return self.members[number]
            if self._opener is None:
                broken.reset()
                broken.identify()
                return broken
            with suppress(DeviceError):
                broken.close()
            made = self._opener(number)
            self.members[number] = made
            return made

    def close(self) -> None:
        """Closes all members that the group opened."""
        for number, lock in enumerate(self._locks):
            with lock:
                self._closed = True
                if self._opener is not None:
                    with suppress(DeviceError):
                        self.members[number].close()

    def _refuse(self) -> DeviceError:
        return DeviceError(
            f"device {self.kind}:{','.join(self.names)} is {len(self.names)} devices together: it"
            " runs inferences, and nothing that needs one single device"
        )

    def identify(self) -> Identity:
        """DeviceError, as all that needs a single device."""
        raise self._refuse()

    def write(self, space: Space, address: int, data: bytes) -> None:
        """DeviceError."""
        raise self._refuse()

    def read(self, address: int, count: int) -> bytes:
        """DeviceError."""
        raise self._refuse()

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """DeviceError."""
        raise self._refuse()

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        """DeviceError."""
        raise self._refuse()

    def status(self) -> DeviceStatus:
        """DeviceError."""
        raise self._refuse()

    def reset(self) -> None:
        """DeviceError."""
        raise self._refuse()


def group_of(name: str) -> tuple[GroupKind, tuple[str, ...]] | None:
    """The kind and the members' names of a group's name; None for that of a single device.

    Raises
    ------
    DeviceError
        If it has no member, an empty one, or one that is a group itself.
    """
    word, colon, rest = name.partition(":")
    if word not in set(GroupKind):
        return None
    names = tuple(part.strip() for part in rest.split(","))
    if not colon or not all(names):
        raise DeviceError(f"device {name!r} must name its devices: {word}:DEVICE,DEVICE,...")
    if len(names) > MOST_MEMBERS:
        raise DeviceError(f"device {word} must be of at most {MOST_MEMBERS}, not {len(names)}")
    for each in names:
        if each.partition(":")[0] in set(GroupKind):
            raise DeviceError(f"device {name!r} must be of single devices, not of {each!r}")
    return GroupKind(word), names
