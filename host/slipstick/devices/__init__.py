"""Devices: things that execute programs, opened by name."""

from collections.abc import Callable

from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from ..targets import DEFAULT_TARGET, find_target
from .base import Device

__all__ = ["DEVICES", "Device", "open_device"]


# a device loads NumPy models, Verilator or pyserial only when it is opened


def _open_model(configuration: Configuration) -> Device:
    from .model import ModelDevice

    return ModelDevice(configuration)


def _open_simulation(configuration: Configuration) -> Device:
    from .simulation import SimulationDevice

    return SimulationDevice(configuration)


def _open_serial(port: str, configuration: Configuration) -> Device:
    from .serial import open_serial

    return open_serial(port, configuration)


_SIMULATED: dict[str, Callable[[Configuration], Device]] = {
    "model": _open_model,
    "sim": _open_simulation,
}
"""Devices of any target's configuration: ``NAME`` or ``NAME:TARGET``."""

_ATTACHED: dict[str, Callable[[str, Configuration], Device]] = {"serial": _open_serial}
"""Devices at a place of the machine: ``NAME:PLACE``."""

DEVICES = ("model", "model:TARGET", "sim", "sim:TARGET", "serial:PORT[@BAUD]")
"""The forms of name that ``open_device`` takes."""


def open_device(name: str, configuration: Configuration | None = None) -> Device:
    """Opens a device.

    Parameters
    ----------
    name : str
        ``model`` (the golden model), ``sim`` (the compiled RTL), either with ``:TARGET``, or
        ``serial:PORT`` or ``serial:PORT@BAUD`` (a board; 115200 baud unless said otherwise).
    configuration : Configuration, optional
        Without it the target's counts, and that is the default target if the name has none.

    Returns
    -------
    Device

    Raises
    ------
    DeviceError
        If there is no such device, it cannot be opened, or its target is other hardware than
        ``configuration``.
    TargetError
        If the name's target is unknown.
    """
    kind, colon, place = name.partition(":")
    if kind in _SIMULATED:
        return _SIMULATED[kind](_configuration(name, place if colon else None, configuration))
    if kind in _ATTACHED and place:
        return _ATTACHED[kind](place, _configuration(name, None, configuration))
    raise DeviceError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")


def _configuration(
    name: str, target: str | None, configuration: Configuration | None
) -> Configuration:
    if target is None:
        return configuration or find_target(DEFAULT_TARGET).configuration
    named = find_target(target).configuration
    if configuration is not None and configuration.fingerprint != named.fingerprint:
        raise DeviceError(
            f"device {name!r} is hardware {named.fingerprint} ({named.shape}), but"
            f" {configuration.fingerprint} ({configuration.shape}) is asked for: compile for"
            f" target {target!r}"
        )
    return named
