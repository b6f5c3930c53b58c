"""An emulated board: the golden model's results, after the time that the board would take."""

from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from ..targets import find_target
from .emulated_name import emulated_place
from .found import FoundDevice
from .model import ModelDevice


class EmulatedDevice(ModelDevice):
    """A golden model that knows how long the board would take; see ``runtime.emulation``.

    Parameters
    ----------
    configuration : Configuration
    wire : str
    slower : float
    """

    def __init__(self, configuration: Configuration, wire: str = "", slower: float = 1.0) -> None:
        super().__init__(configuration)
        self.wire, self.slower = wire, slower


def open_emulated(place: str, configuration: Configuration) -> EmulatedDevice:
    """Opens one for ``emulated:``; DeviceError if its target is other hardware."""
    named = emulated_place(place)
    if named.target:
        own = find_target(named.target).configuration
        if own.fingerprint != configuration.fingerprint:
            raise DeviceError(
                f"device 'emulated:{place}' is hardware {own.fingerprint} ({own.shape}), but"
                f" {configuration.fingerprint} ({configuration.shape}) is asked for: compile for"
                f" target {named.target!r}"
            )
    return EmulatedDevice(configuration, named.wire, named.slower)


def found_boards() -> list[FoundDevice]:
    """None: they are made when they are opened."""
    return []
