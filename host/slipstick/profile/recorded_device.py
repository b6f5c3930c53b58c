"""A simulated device whose transfers are noted, with the clock cycles in which they were made."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from slipstick_rtl.link.protocol import Space

from ..devices.base import Device
from ..devices.forwarding import ForwardingDevice


class ClockedDevice(Device, Protocol):
    """A device that counts its clock and logs the core's pulses: the compiled RTL."""

    @property
    def clock_cycles(self) -> int:
        """Clock cycles since the opening of the device."""
        ...

    def take_events(self) -> dict[str, np.ndarray]:
        """Cycles of each kind of pulse since they were taken last."""
        ...


@dataclass(frozen=True, kw_only=True)
class LinkTransfer:
    """Writes that followed on each other, or reads.

    Parameters
    ----------
    kind : str
        "upload" (activations), "load" (anything else that is written), or "download".
    bytes : int
        Without the frames around them.
    start, end : int
        Clock cycles of the device: from the first byte of the first frame until the last one's
        answer is there.
    """

    kind: str
    bytes: int
    start: int
    end: int


class LoggedDevice(ForwardingDevice[ClockedDevice]):
    """Passes everything on to a device, and notes its transfers.

    Parameters
    ----------
    device : ClockedDevice

    Members
    -------
    transfers : list of LinkTransfer
        In their order; the owner may clear it.
    """

    def __init__(self, device: ClockedDevice) -> None:
        super().__init__(device)
        self.transfers: list[LinkTransfer] = []

    def write(self, space: Space, address: int, data: bytes) -> None:
        start = self._device.clock_cycles
        self._device.write(space, address, data)
        self._note("upload" if space == Space.ACTIVATIONS else "load", len(data), start)

    def read(self, address: int, count: int) -> bytes:
        start = self._device.clock_cycles
        data = self._device.read(address, count)
        self._note("download", count, start)
        return data

    def take_events(self) -> dict[str, np.ndarray]:
        """As the device's."""
        return self._device.take_events()

    def _note(self, kind: str, count: int, start: int) -> None:
        if self.transfers and (last := self.transfers[-1]).kind == kind and last.end == start:
            # no time passes for a simulated core between two transfers of its host
            start, count = last.start, last.bytes + count
            del self.transfers[-1]
        end = self._device.clock_cycles
        self.transfers.append(LinkTransfer(kind=kind, bytes=count, start=start, end=end))
