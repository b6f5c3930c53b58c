"""The USB port: what it says of itself, what it needs, and what is refused."""

import re
import sys
from typing import Any

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.ecp5.usb_clocks import UsbPll, find_usb_pll
from slipstick_rtl.phy.registry import find_wire
from slipstick_rtl.phy.usb import luna
from slipstick_rtl.phy.usb.descriptors import UsbIdentity, serial_port_descriptors
from slipstick_rtl.phy.usb.serial_port import UsbSerialPort
from slipstick_sim.toolchain import convert_to_rtlil

DEVICE, CONFIGURATION, STRING = 1, 2, 3


def test_the_port_has_its_pins_and_three_clocks() -> None:
    """Elaborated with warnings as errors: luna's are contained."""
    text = convert_to_rtlil(UsbSerialPort(identity=UsbIdentity()), "port")
    top = text[text.index("module \\port\n") :]
    top = top[: top.index("\nend\n")]
    named = set(re.findall(r"wire width \d+ (?:input|output) \d+ +\\(\S+)", top))
    assert {"clk", "usb_clk", "usb_io_clk", "d_p__i", "d_p__o", "d_p__oe", "pullup"} <= named


def test_the_descriptors_are_those_of_a_serial_port() -> None:
    descriptors = serial_port_descriptors(UsbIdentity(product="a product"))
    found = {(int(kind), index): bytes(text) for kind, index, text in descriptors}
    device, configuration = found[DEVICE, 0], found[CONFIGURATION, 0]
    assert device[8:12] == bytes([0x09, 0x12, 0x01, 0x00])
    assert int.from_bytes(configuration[2:4], "little") == len(configuration) == 75
    assert configuration[4] == 2
    assert found[STRING, device[15]][2:].decode("utf-16-le") == "a product"


def test_the_serial_number_is_the_fingerprint() -> None:
    configuration = Configuration(rows=4, columns=4, lanes=4)
    port = find_wire("usb").phy(configuration)
    assert port.identity.serial_number == configuration.fingerprint


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"vendor_id": 1 << 16}, "vendor_id must fit 16 bits, not 0x10000"),
        ({"product_id": -1}, "product_id must fit 16 bits, not -0x1"),
        ({"product": ""}, "product must have 1 to 31 characters, not ''"),
        ({"serial_number": "x" * 32}, "serial_number must have 1 to 31 characters, not 'xxx"),
    ],
)
def test_identities_that_are_refused(field: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UsbIdentity(**field)


def test_a_device_must_leave_before_it_comes() -> None:
    with pytest.raises(ValueError, match="absent_cycles must be at least 1, not 0"):
        UsbSerialPort(identity=UsbIdentity(), absent_cycles=0)


def test_a_missing_luna_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    luna.part.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "luna"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "luna", None)
    with pytest.raises(ImportError, match=r"USB needs the Python package luna-usb .*pip install"):
        luna.part("USBDevice")
    luna.part.cache_clear()


@pytest.mark.parametrize(
    ("input_hz", "pll", "pin_hz"),
    [
        (25_000_000, UsbPll(1, 1, 25, 13), 48_076_923),
        (48_000_000, UsbPll(1, 1, 9, 9), 48_000_000),
        (100_000_000, UsbPll(5, 1, 24, 10), 48_000_000),
    ],
)
def test_plls(input_hz: int, pll: UsbPll, pin_hz: int) -> None:
    assert find_usb_pll(input_hz) == pll
    assert round(pll.pin_hz(input_hz)) == pin_hz


@pytest.mark.parametrize(
    ("input_hz", "message"),
    [
        (32_768, "oscillator of an ECP5's PLL must be within 8..400 MHz, not 0.032768 MHz"),
        (8_100_000, "oscillator must be one of which the PLL makes 48 MHz within 0.2%"),
    ],
)
def test_oscillators_that_are_refused(input_hz: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_usb_pll(input_hz)
