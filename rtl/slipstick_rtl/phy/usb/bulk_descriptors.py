"""Describes the device to a USB host of high speed: bytes in bulk, by an interface of its own."""

from typing import Any

from .descriptors import MAXIMUM_POWER, UsbIdentity
from .high_speed import BULK_ENDPOINT, BULK_PACKET_BYTES, INTERFACE_KIND
from .luna import part

CONTROL_PACKET_BYTES = 64
DEVICE_QUALIFIER = 6
USB_2_0 = 0x0200


def bulk_descriptors(identity: UsbIdentity) -> Any:
    """The descriptors of one bulk endpoint each way, as luna takes them.

    The qualifier says that there is no configuration at full speed: packets of 512 bytes are not
    allowed there.
    """
    descriptors = part("DeviceDescriptorCollection")()
    with descriptors.DeviceDescriptor() as device:
        device.idVendor = identity.vendor_id
        device.idProduct = identity.product_id
        device.iManufacturer = identity.manufacturer
        device.iProduct = identity.product
        device.iSerialNumber = identity.serial_number
        device.bNumConfigurations = 1
    with descriptors.ConfigurationDescriptor() as configuration:
        configuration.bMaxPower = MAXIMUM_POWER
        with configuration.InterfaceDescriptor() as interface:
            interface.bInterfaceNumber = 0
            kind = INTERFACE_KIND
            interface.bInterfaceClass, interface.bInterfaceSubclass = kind[:2]
            interface.bInterfaceProtocol = kind[2]
            for direction in (0x80, 0x00):
                with interface.EndpointDescriptor() as endpoint:
                    endpoint.bEndpointAddress = direction | BULK_ENDPOINT
                    endpoint.bmAttributes = 2  # bulk
                    endpoint.wMaxPacketSize = BULK_PACKET_BYTES
                    endpoint.bInterval = 0
    head = bytes([10, DEVICE_QUALIFIER]) + USB_2_0.to_bytes(2, "little")
    qualifier = head + bytes([0, 0, 0, CONTROL_PACKET_BYTES, 0, 0])
    descriptors.add_descriptor(qualifier, index=0, descriptor_type=DEVICE_QUALIFIER)
    return descriptors
