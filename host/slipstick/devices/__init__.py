"""Devices: things that execute programs, opened by name."""

import glob
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


def _open_spi(path: str, configuration: Configuration) -> Device:
    try:
        from .spi import open_spi
    except ImportError as error:
        raise DeviceError(f"SPI devices need Linux ({error})") from error
    return open_spi(path, configuration)


def _serial_ports() -> list[str]:
    from .serial import found_ports

    return found_ports()


def _spi_devices() -> list[str]:
    return sorted(glob.glob("/dev/spidev*"))


_SIMULATED: dict[str, Callable[[Configuration], Device]] = {
    "model": _open_model,
    "sim": _open_simulation,
}
"""Devices of any target's configuration: ``NAME`` or ``NAME:TARGET``."""

_ATTACHED: dict[str, Callable[[str, Configuration], Device]] = {
    "serial": _open_serial,
    "spi": _open_spi,
}
"""Devices at a place of the machine: ``NAME:PLACE``."""

_PLACES: dict[str, Callable[[], list[str]]] = {"serial": _serial_ports, "spi": _spi_devices}
"""What there is to be named."""

DEVICES = ("model", "model:TARGET", "sim", "sim:TARGET", "serial:PORT[@BAUD]", "spi:PATH[@HZ]")
"""The forms of name that ``open_device`` takes."""


def open_device(name: str, configuration: Configuration | None = None) -> Device:
    """Opens a device.

    Parameters
    ----------
    name : str
        ``model`` (the golden model), ``sim`` (the compiled RTL), either with ``:TARGET``;
        ``serial:PORT`` or ``serial:PORT@BAUD`` (a board; 115200 baud unless said otherwise);
        ``spi:PATH`` or ``spi:PATH@HZ`` (a board; 10 MHz, or what its clock allows, likewise).
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
    if kind in _ATTACHED:
        raise DeviceError(f"device {name!r} must name a place: {_places(kind)}")
    raise DeviceError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")


def _places(kind: str) -> str:
    found = _PLACES[kind]()
    if not found:
        return f"this machine has none that {kind} could use; plug the board in"
    return f"this machine has {', '.join(f'{kind}:{place}' for place in found)}"


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
