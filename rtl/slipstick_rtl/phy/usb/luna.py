"""luna's classes, imported when they are asked for: only what has a USB port needs the package."""

import importlib
import warnings
from functools import cache
from typing import Any

_HOMES = {
    "ACMFunctionalDescriptorEmitter": "usb_protocol.emitters.descriptors.cdc",
    "CallManagementFunctionalDescriptorEmitter": "usb_protocol.emitters.descriptors.cdc",
    "DeviceDescriptorCollection": "usb_protocol.emitters",
    "EndpointInterface": "luna.gateware.usb.usb2.endpoint",
    "GatewarePHY": "luna.gateware.interface.gateware_phy",
    "HeaderDescriptorEmitter": "usb_protocol.emitters.descriptors.cdc",
    "RequestHandlerInterface": "luna.gateware.usb.usb2.request",
    "StandardRequestHandler": "luna.gateware.usb.request.standard",
    "StreamSerializer": "luna.gateware.stream.generator",
    "USBControlEndpoint": "luna.gateware.usb.usb2.control",
    "USBDevice": "luna.gateware.usb.usb2.device",
    "USBInStreamInterface": "luna.gateware.usb.stream",
    "USBStreamInEndpoint": "luna.gateware.usb.usb2.endpoints.stream",
    "USBStreamOutEndpoint": "luna.gateware.usb.usb2.endpoints.stream",
    "UTMITranslator": "luna.gateware.interface.ulpi",
    "UnionFunctionalDescriptorEmitter": "usb_protocol.emitters.descriptors.cdc",
}
"""The parts in use, and the modules that hold them."""


@cache
def part(name: str) -> Any:
    """A class of luna-usb, or of the usb-protocol package that it brings.

    Parameters
    ----------
    name : str
        One of those listed above.

    Raises
    ------
    ImportError
        If luna-usb is not installed; the message says how to install it.
    """
    with warnings.catch_warnings():
        # luna 0.2 is written for Amaranth 0.4: importing it asks Amaranth 0.5 for names, such as
        # Record, that 0.6 will drop. Making and elaborating its parts warns of nothing.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            home = importlib.import_module(_HOMES[name])
        except ModuleNotFoundError as error:
            raise ImportError(
                f"USB needs the Python package luna-usb ({error}): pip install 'slipstick[build]'"
            ) from error
        return getattr(home, name)
