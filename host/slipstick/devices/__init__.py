"""Devices: things that execute programs, opened by name."""

from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from ..targets import DEFAULT_TARGET, find_target
from .base import Device
from .kinds import DEVICES, KINDS

__all__ = ["DEVICES", "KINDS", "Device", "open_device"]


def open_device(name: str, configuration: Configuration | None = None) -> Device:
    """Opens a device.

    Parameters
    ----------
    name : str
        ``model`` (the golden model), ``sim`` (the compiled RTL), either with ``:TARGET``;
        ``serial:PORT`` or ``serial:PORT@BAUD`` (a board; without a rate the board's is found);
        ``spi:PATH`` or ``spi:PATH@HZ`` (a board; 10 MHz, or what its clock allows, likewise);
        ``usb:`` or ``usb:SERIAL`` (a board on USB at high speed; the only one, or by its number);
        ``udp:`` or ``udp:ADDRESS`` (a board on Ethernet; the only one of its configuration on the
        network, or by its IPv4 address or name; ``+take`` behind it takes it from another host).
        ``KINDS`` has all of them.
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
    word, colon, place = name.partition(":")
    if word not in KINDS:
        raise DeviceError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")
    kind = KINDS[word]
    if kind.is_simulated:
        return kind.open("", _configuration(name, place if colon else None, configuration))
    if kind.needs_place and not place:
        raise DeviceError(f"device {name!r} must name a place: {kind.tell_places()}")
    return kind.open(place, _configuration(name, None, configuration))


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
