"""Devices whose openers worker processes import: slow ones, and ones that fail."""

import itertools
import time
from typing import Any

from slipstick.devices import Device
from slipstick.devices.model import ModelDevice
from slipstick.errors import DeviceError
from slipstick.targets import DEFAULT_TARGET, find_target
from slipstick_rtl.config import Configuration

SECONDS = 0.05
"""Of a slow device, per 16 images."""
FAILING = frozenset((3, 8, 15, 24, 35, 48))
"""Calls that fail, with more and more between them: a fast machine's tasks have many calls."""


def open_slow(name: str, configuration: Configuration | None) -> Device:
    """Opens the golden model, slowed down."""
    return _Slow(configuration or find_target(DEFAULT_TARGET).configuration)


def open_failing(name: str, configuration: Configuration | None) -> Device:
    """Opens a golden model that fails now and then."""
    return _Failing(configuration or find_target(DEFAULT_TARGET).configuration)


def open_broken(name: str, configuration: Configuration | None) -> Device:
    """Opens a golden model that never gives a result."""
    return _Broken(configuration or find_target(DEFAULT_TARGET).configuration)


def open_absent(name: str, configuration: Configuration | None) -> Device:
    """Finds no device."""
    raise DeviceError(f"device {name} is not there")


class _Slow(ModelDevice):
    def batch_core(self, batch: int, *, shared: bool = True) -> Any:
        time.sleep(SECONDS)
        return super().batch_core(batch, shared=shared)


class _Failing(ModelDevice):
    _calls = itertools.count(1)
    """Of the process: a device that is opened again goes on."""

    def batch_core(self, batch: int, *, shared: bool = True) -> Any:
        if next(self._calls) in FAILING:
            raise DeviceError("the answer makes no sense")
        return super().batch_core(batch, shared=shared)


class _Broken(ModelDevice):
    def batch_core(self, batch: int, *, shared: bool = True) -> Any:
        raise DeviceError("the answer makes no sense")
