"""Boards on USB for tests: a backend of pyusb whose devices are golden models."""

import errno
from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.usb.descriptors import TEST_PRODUCT, TEST_VENDOR
from slipstick_rtl.phy.usb.high_speed import BULK_ENDPOINT, BULK_PACKET_BYTES, INTERFACE_KIND
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint
from usb.core import USBError, USBTimeoutError

_STRING = 3
_HIGH_SPEED = 3


class UsbBoard:
    """A board; the attributes after ``configuration`` may be changed to make it fail.

    Parameters
    ----------
    configuration : Configuration
    address : int
        On bus 1.
    kind : tuple
        Class, subclass and protocol of its interface.

    Attributes
    ----------
    open_error, claim_error : int
        A number of ``errno``, or 0.
    gone : bool
        It is unplugged.
    stuck : bool
        It takes and gives nothing.
    most : int
        Bytes that a request moves, at most, before its time is over.
    feed : callable
        What it answers to bytes; by default the golden endpoint's.
    reads : list of int
        Sizes of the requests for bytes.
    """

    def __init__(
        self,
        configuration: Configuration,
        address: int = 5,
        kind: tuple[int, int, int] = INTERFACE_KIND,
    ) -> None:
        self.serial = configuration.fingerprint
        self.address, self.kind = address, kind
        self.speed = _HIGH_SPEED
        self.open_error = self.claim_error = 0
        self.gone = self.stuck = False
        self.most = 1 << 20
        self.reads: list[int] = []
        self.feed: Callable[[bytes], bytes]
        self.feed = Endpoint(configuration, GoldenCore(configuration)).feed
        self._answers = bytearray()

    def check(self) -> None:
        """USBError if it is unplugged."""
        if self.gone:
            raise USBError("No such device", -4, errno.ENODEV)

    def write(self, data: bytes) -> int:
        """Takes some bytes; returns how many."""
        self.check()
        if self.stuck:
            raise USBTimeoutError("timed out", -7, errno.ETIMEDOUT)
        self._answers += self.feed(data[: self.most])
        return len(data[: self.most])

    def read(self, size: int) -> bytes:
        """Some bytes of the answers, up to a packet that is not full."""
        self.check()
        self.reads.append(size)
        if self.stuck or not self._answers:
            raise USBTimeoutError("timed out", -7, errno.ETIMEDOUT)
        data = bytes(self._answers[: min(size, self.most)])
        del self._answers[: len(data)]
        return data


class GoldenBackend:
    """Gives pyusb these boards; has those methods of ``usb.backend.IBackend`` that are called.

    Parameters
    ----------
    *boards : UsbBoard
    """

    # never called, but looked up together with bulk_read and bulk_write
    intr_read = intr_write = iso_read = iso_write = None

    def __init__(self, *boards: UsbBoard) -> None:
        self.boards = list(boards)

    def enumerate_devices(self) -> Any:
        return iter(self.boards)

    def get_parent(self, dev: UsbBoard) -> None:
        return None

    def get_device_descriptor(self, dev: UsbBoard) -> Any:
        return SimpleNamespace(
            bLength=18,
            bDescriptorType=1,
            bcdUSB=0x200,
            bDeviceClass=0,
            bDeviceSubClass=0,
            bDeviceProtocol=0,
            bMaxPacketSize0=64,
            idVendor=TEST_VENDOR,
            idProduct=TEST_PRODUCT,
            bcdDevice=0,
            iManufacturer=1,
            iProduct=2,
            iSerialNumber=3,
            bNumConfigurations=1,
            bus=1,
            address=dev.address,
            port_number=None,
            port_numbers=None,
            speed=dev.speed,
        )

    def get_configuration_descriptor(self, dev: UsbBoard, config: int) -> Any:
        if config:
            raise IndexError(config)
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=2,
            wTotalLength=32,
            bNumInterfaces=1,
            bConfigurationValue=1,
            iConfiguration=0,
            bmAttributes=0x80,
            bMaxPower=250,
            extra_descriptors=[],
        )

    def get_interface_descriptor(self, dev: UsbBoard, intf: int, alt: int, config: int) -> Any:
        if intf or alt:
            raise IndexError(intf)
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=4,
            bInterfaceNumber=0,
            bAlternateSetting=0,
            bNumEndpoints=2,
            bInterfaceClass=dev.kind[0],
            bInterfaceSubClass=dev.kind[1],
            bInterfaceProtocol=dev.kind[2],
            iInterface=0,
            extra_descriptors=[],
        )

    def get_endpoint_descriptor(
        self, dev: UsbBoard, ep: int, intf: int, alt: int, config: int
    ) -> Any:
        return SimpleNamespace(
            bLength=7,
            bDescriptorType=5,
            bEndpointAddress=(0x80, 0x00)[ep] | BULK_ENDPOINT,
            bmAttributes=2,
            wMaxPacketSize=BULK_PACKET_BYTES,
            bInterval=0,
            bRefresh=0,
            bSynchAddress=0,
            extra_descriptors=[],
        )

    def open_device(self, dev: UsbBoard) -> UsbBoard:
        if dev.open_error:
            raise USBError("not opened", -3, dev.open_error)
        dev.check()
        return dev

    def close_device(self, dev_handle: UsbBoard) -> None:
        pass

    def set_configuration(self, dev_handle: UsbBoard, config_value: int) -> None:
        dev_handle.check()

    def get_configuration(self, dev_handle: UsbBoard) -> int:
        return 1

    def claim_interface(self, dev_handle: UsbBoard, intf: int) -> None:
        if dev_handle.claim_error:
            raise USBError("not claimed", -6, dev_handle.claim_error)

    def release_interface(self, dev_handle: UsbBoard, intf: int) -> None:
        dev_handle.check()

    def bulk_write(self, dev_handle: UsbBoard, ep: int, intf: int, data: Any, timeout: int) -> int:
        assert ep == BULK_ENDPOINT and timeout > 0
        return dev_handle.write(bytes(data))

    def bulk_read(self, dev_handle: UsbBoard, ep: int, intf: int, buff: Any, timeout: int) -> int:
        assert ep == 0x80 | BULK_ENDPOINT and timeout > 0
        assert len(buff) % BULK_PACKET_BYTES == 0, "a full packet would overflow"
        data = dev_handle.read(len(buff))
        buff[: len(data)] = array("B", data)
        return len(data)

    def ctrl_transfer(
        self,
        dev_handle: UsbBoard,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: Any,
        timeout: int,
    ) -> int:
        assert (bRequest, wValue >> 8) == (6, _STRING)
        text = b"\x09\x04" if wValue & 255 == 0 else dev_handle.serial.encode("utf-16-le")
        answer = bytes([len(text) + 2, _STRING]) + text
        data[: len(answer)] = array("B", answer)
        return len(answer)
