"""Passes everything on to another device: what counts or notes transfers stands on it."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import DeviceStatus, Space

from .base import Device

Inner = TypeVar("Inner", bound=Device)


class ForwardingDevice(Generic[Inner]):
    """A ``Device`` that is another one by every call.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Inner) -> None:
        self._device = device

    @property
    def configuration(self) -> Configuration:
        return self._device.configuration

    def identify(self) -> Identity:
        return self._device.identify()

    def write(self, space: Space, address: int, data: bytes) -> None:
        self._device.write(space, address, data)

    def read(self, address: int, count: int) -> bytes:
        return self._device.read(address, count)

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        self._device.run(pcs, clear)

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        return self._device.wait(timeout_seconds)

    def status(self) -> DeviceStatus:
        return self._device.status()

    def reset(self) -> None:
        self._device.reset()

    def close(self) -> None:
        self._device.close()
