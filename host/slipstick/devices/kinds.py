"""The kinds of device: a registry of what stands before the colon of ``--device``.

A new kind is a module of this package and an entry here. Modules are loaded when a device of theirs
is opened: NumPy models, Verilator and pyserial take time, or are not installed.
"""

import importlib
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from .base import Device
from .found import FoundDevice


@dataclass(frozen=True, kw_only=True)
class DeviceKind:
    """A kind of device.

    Parameters
    ----------
    name : str
        Before the colon.
    help : str
        In the help of ``--device``.
    opener : str
        ``module:function`` of this package. A simulated kind takes the configuration; another one
        takes the place, after the colon, and the configuration. Returns an open ``Device``.
    place : str
        The form of the place, such as ``PORT[@BAUD]``; one that begins with a square bracket may be
        left out. Empty: the kind is simulated, and takes the name of a target, or nothing.
    finder : str
        ``module:function`` of this package: returns the places that this machine has, each a
        ``FoundDevice``. Simulated kinds have none.
    system : str
        The system without which the module cannot be imported; empty: any will do.
    """

    name: str
    help: str
    opener: str
    place: str = ""
    finder: str = ""
    system: str = ""

    @property
    def is_simulated(self) -> bool:
        """Tells whether it has any target's configuration, and no place of this machine."""
        return not self.place

    @property
    def needs_place(self) -> bool:
        """Tells whether a place of this machine must be named."""
        return not self.is_simulated and not self.place.startswith("[")

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms of name that open it."""
        return (self.name, f"{self.name}:TARGET") if self.is_simulated else (self._attached,)

    @property
    def _attached(self) -> str:
        return f"{self.name}:{self.place}"

    @property
    def help_text(self) -> str:
        """Form and help; square brackets would be markup for the command line."""
        form = self.name if self.is_simulated else self._attached
        return f"{form.replace('[', '').replace(']', '')} ({self.help})"

    def open(self, place: str, configuration: Configuration) -> Device:
        """Opens a device.

        Parameters
        ----------
        place : str
            Not used by simulated kinds.
        configuration : Configuration

        Raises
        ------
        DeviceError
            If it cannot be opened, or this system cannot have it.
        """
        try:
            opener = _load(self.opener)
        except ImportError as error:
            if not self.system:
                raise
            raise DeviceError(f"{self.name} devices need {self.system} ({error})") from error
        return opener(configuration) if self.is_simulated else opener(place, configuration)

    def find(self) -> list[FoundDevice]:
        """Returns the places that this machine has; none if this system cannot have the kind."""
        if self.is_simulated:
            return []
        try:
            return _load(self.finder)()
        except ImportError:
            return []

    def tell_places(self) -> str:
        """Says which places this machine has."""
        found = self.find()
        if not found:
            return f"this machine has none that {self.name} could use; plug the board in"
        return f"this machine has {', '.join(f'{self.name}:{place}' for place in found)}"


TAKE = "+take"
"""Behind the place of a board on Ethernet: also from another host that has it."""


def _load(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), function)


KINDS: dict[str, DeviceKind] = {
    kind.name: kind
    for kind in (
        DeviceKind(name="model", help="golden model", opener="model:ModelDevice"),
        DeviceKind(name="sim", help="compiled RTL", opener="simulation:SimulationDevice"),
        DeviceKind(
            name="emulated",
            help="golden results after a board's time",
            opener="emulated:open_emulated",
            place="[TARGET][@WIRE][/SLOWER]",
            finder="emulated:found_boards",
        ),
        DeviceKind(
            name="serial",
            help="board on a serial port",
            opener="serial:open_serial",
            place="PORT[@BAUD]",
            finder="serial:found_ports",
        ),
        DeviceKind(
            name="spi",
            help="board on an SPI controller",
            opener="spi:open_spi",
            place="PATH[@HZ]",
            finder="spi:found_controllers",
            system="Linux",
        ),
        DeviceKind(
            name="usb",
            help="board on USB at high speed",
            opener="usb:open_usb",
            place="[SERIAL]",
            finder="usb:found_boards",
        ),
        DeviceKind(
            name="udp",
            help="board on Ethernet",
            opener="udp:open_udp",
            place="[ADDRESS[:PORT]]",
            finder="udp:found_boards",
        ),
    )
}
"""Every kind, by name. :attr:`slipstick_rtl.phy.wire.Wire.device` names those of wires."""

GROUPS = {
    "pool": "several boards, images divided among them",
    "pipeline": "layers divided",
    "split": "channels divided",
}
"""The kinds of group of which a session makes one device, with their help."""

DEVICES = (
    *(form for kind in KINDS.values() for form in kind.forms),
    *(f"{kind}:DEVICE,DEVICE,..." for kind in GROUPS),
)
"""The forms of name that ``open_device`` takes."""


def device_help() -> str:
    """Returns the help of ``--device``."""
    simulated = [kind.help_text for kind in KINDS.values() if kind.is_simulated]
    attached = [kind.help_text for kind in KINDS.values() if not kind.is_simulated]
    groups = [f"{kind}:DEVICE,DEVICE,... ({help})" for kind, help in GROUPS.items()]
    return f"{', '.join(simulated)}, either with :TARGET; {', '.join([*attached, *groups])}."
