"""Devices: things that execute programs, opened by name."""

from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from ..targets import DEFAULT_TARGET, find_target
from .base import Device
from .emulated_name import emulated_place
from .group import DeviceGroup, group_of
from .kinds import DEVICES, KINDS

__all__ = ["DEVICES", "KINDS", "Device", "DeviceGroup", "hardware_of", "open_device"]


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
        ``emulated:TARGET@WIRE/SLOWER`` (golden results after a board's time); ``KINDS`` has all
        of them. ``pool:D1,D2,...``: several of these, a ``DeviceGroup``.
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
    group = group_of(name)
    if group is not None:
        return open_group(name, configuration)
    word, colon, place = name.partition(":")
    if word not in KINDS:
        raise DeviceError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")
    kind = KINDS[word]
    if kind.is_simulated:
        return kind.open("", _configuration(name, place if colon else None, configuration))
    if kind.needs_place and not place:
        raise DeviceError(f"device {name!r} must name a place: {kind.tell_places()}")
    return kind.open(place, _configuration(name, None, configuration or hardware_of(name)))


def open_group(name: str, configuration: Configuration | None = None) -> DeviceGroup:
    """Opens the devices of a group's name, one after the other.

    Parameters
    ----------
    name : str
        Such as ``pool:udp:192.168.1.50,udp:192.168.1.51``.
    configuration : Configuration, optional
        The hardware of those whose names have no target.

    Raises
    ------
    DeviceError, TargetError
        As ``open_device``; those that were opened are closed again.
    """
    group = group_of(name)
    if group is None:
        raise DeviceError(f"device {name!r} is no group of devices")
    kind, names = group

    def open_member(number: int) -> Device:
        return open_device(names[number], hardware_of(names[number]) or configuration)

    opened: list[Device] = []
    try:
        for number in range(len(names)):
            opened.append(open_member(number))
    except BaseException:
        for device in opened:
            device.close()
        raise
    return DeviceGroup(kind, names, opened, open_member)


def hardware_of(name: str) -> Configuration | None:
    """The hardware that a device's name has in it; of a group, the first one; None: none has.

    Raises
    ------
    TargetError
        If there is no such target.
    """
    group = group_of(name)
    if group is not None:
        named = (hardware_of(each) for each in group[1])
        return next((each for each in named if each is not None), None)
    word, _, place = name.partition(":")
    if word == "emulated":
        place = emulated_place(place).target
    elif word not in KINDS or not KINDS[word].is_simulated:
        return None
    return find_target(place).configuration if place else None


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
