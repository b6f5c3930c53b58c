"""Describes the device to a USB host: descriptors of a serial port of the class CDC-ACM."""

from dataclasses import dataclass
from typing import Any

from .luna import part

PACKET_BYTES = 64
"""Largest packet of every endpoint but the notifications'; the most that full speed allows."""

DATA_ENDPOINT = 2
"""Bulk, both ways: the bytes."""

NOTIFICATION_ENDPOINT = 1
"""Interrupt, to the host: the class demands it, and it never has anything to say."""

NOTIFICATION_BYTES = 8
NOTIFICATION_MILLISECONDS = 100

CDC, CDC_DATA, ACM = 0x02, 0x0A, 0x02
NO_PROTOCOL = 0x00
"""Not a modem's AT commands: a port that promises these is probed for a modem."""

MISCELLANEOUS, COMMON, INTERFACE_ASSOCIATION = 0xEF, 0x02, 0x01
LINE_REQUESTS = 0x02
"""Capability: SET and GET_LINE_CODING, SET_CONTROL_LINE_STATE."""
MAXIMUM_POWER = 250
"""In units of 2 mA: a board may live on its USB port."""

TEST_VENDOR, TEST_PRODUCT = 0x1209, 0x0001
"""pid.codes' number for tests and prototypes; a product that is sold needs one of its own."""


@dataclass(frozen=True, kw_only=True)
class UsbIdentity:
    """Who the device says it is.

    Parameters
    ----------
    vendor_id, product_id : int
        16 bits each.
    manufacturer, product, serial_number : str
        What people see; Linux makes the name in ``/dev/serial/by-id`` of them. At most 31 of the
        characters that UTF-16 holds in two bytes: a packet's worth.

    Raises
    ------
    ValueError
        If a number does not fit 16 bits, or a text is empty or too long.
    """

    vendor_id: int = TEST_VENDOR
    product_id: int = TEST_PRODUCT
    manufacturer: str = "Slipstick"
    product: str = "CNN accelerator"
    serial_number: str = "0"

    def __post_init__(self) -> None:
        for name in ("vendor_id", "product_id"):
            value = getattr(self, name)
            if not 0 <= value < 1 << 16:
                raise ValueError(f"{name} must fit 16 bits, not {value:#x}")
        for name in ("manufacturer", "product", "serial_number"):
            text = getattr(self, name)
            if not 0 < len(text.encode("utf-16-le")) <= PACKET_BYTES - 2:
                raise ValueError(
                    f"{name} must have 1 to {PACKET_BYTES // 2 - 1} characters, not {text!r}"
                )


def serial_port_descriptors(identity: UsbIdentity) -> Any:
    """The descriptors of a serial port, as luna takes them."""
    descriptors = part("DeviceDescriptorCollection")()
    with descriptors.DeviceDescriptor() as device:
        device.idVendor = identity.vendor_id
        device.idProduct = identity.product_id
        device.iManufacturer = identity.manufacturer
        device.iProduct = identity.product
        device.iSerialNumber = identity.serial_number
        device.bNumConfigurations = 1
        # the two interfaces are one function: Windows asks for these three to believe it
        device.bDeviceClass = MISCELLANEOUS
        device.bDeviceSubclass = COMMON
        device.bDeviceProtocol = INTERFACE_ASSOCIATION
    with descriptors.ConfigurationDescriptor() as configuration:
        configuration.bMaxPower = MAXIMUM_POWER
        with configuration.InterfaceAssociationDescriptor() as association:
            association.bFirstInterface = 0
            association.bInterfaceCount = 2
            association.bFunctionClass = CDC
            association.bFunctionSubClass = ACM
            association.bFunctionProtocol = NO_PROTOCOL
        _add_control_interface(configuration)
        _add_data_interface(configuration)
    return descriptors


def _add_control_interface(configuration: Any) -> None:
    with configuration.InterfaceDescriptor() as interface:
        interface.bInterfaceNumber = 0
        interface.bInterfaceClass = CDC
        interface.bInterfaceSubclass = ACM
        interface.bInterfaceProtocol = NO_PROTOCOL
        interface.add_subordinate_descriptor(part("HeaderDescriptorEmitter")())
        calls = part("CallManagementFunctionalDescriptorEmitter")()
        calls.bDataInterface = 1
        interface.add_subordinate_descriptor(calls)
        lines = part("ACMFunctionalDescriptorEmitter")()
        lines.bmCapabilities = LINE_REQUESTS
        interface.add_subordinate_descriptor(lines)
        union = part("UnionFunctionalDescriptorEmitter")()
        union.bControlInterface = 0
        union.bSubordinateInterface0 = 1
        interface.add_subordinate_descriptor(union)
        with interface.EndpointDescriptor() as endpoint:
            endpoint.bEndpointAddress = 0x80 | NOTIFICATION_ENDPOINT
            endpoint.bmAttributes = 3  # interrupt
            endpoint.wMaxPacketSize = NOTIFICATION_BYTES
            endpoint.bInterval = NOTIFICATION_MILLISECONDS


def _add_data_interface(configuration: Any) -> None:
    with configuration.InterfaceDescriptor() as interface:
        interface.bInterfaceNumber = 1
        interface.bInterfaceClass = CDC_DATA
        interface.bInterfaceSubclass = 0
        interface.bInterfaceProtocol = NO_PROTOCOL
        for direction in (0x80, 0x00):
            with interface.EndpointDescriptor() as endpoint:
                endpoint.bEndpointAddress = direction | DATA_ENDPOINT
                endpoint.bmAttributes = 2  # bulk
                endpoint.wMaxPacketSize = PACKET_BYTES
                endpoint.bInterval = 0
