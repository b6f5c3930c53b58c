"""Boards on USB at high speed: a backend of pyusb with golden models, and what cannot be opened."""

import errno
import importlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import slipstick
from slipstick.devices import open_device
from slipstick.devices.kinds import KINDS
from slipstick.devices.link.errors import LinkError
from slipstick.devices.usb import UsbTransport, found_boards
from slipstick.errors import DeviceError
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.link.protocol import Space

pytest.importorskip("usb.core")
from usb_boards import GoldenBackend, UsbBoard

MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
TARGET = "1x4x4"
CONFIGURATION = find_target(TARGET).configuration
OTHER = find_target("1x8x8").configuration


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> GoldenBackend:
    """libusb with one board."""
    backend = GoldenBackend(UsbBoard(CONFIGURATION))
    libusb = importlib.import_module("usb.backend.libusb1")
    monkeypatch.setattr(libusb, "get_backend", lambda: backend)
    return backend


def transport_of(backend: GoldenBackend) -> UsbTransport:
    """The transport of the only board."""
    found = importlib.import_module("usb.core").find(backend=backend)
    return UsbTransport(found, "usb:1-5")


@pytest.mark.parametrize("device", ["usb", "usb:", "usb:1-5", f"usb:{CONFIGURATION.fingerprint}"])
def test_a_session_equals_the_golden_model(backend: GoldenBackend, device: str) -> None:
    with (
        InferenceSession(MODEL, device, TARGET) as session,
        InferenceSession(MODEL, "model", TARGET) as golden,
    ):
        name = golden.program.inputs[0]
        shape = (2, *golden.program.tensors[name].shape[1:])
        feeds = {name: np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], golden.run(None, feeds)[0])


@pytest.mark.parametrize("most", [1 << 20, 700, 512, 3])
def test_requests_may_move_a_part(backend: GoldenBackend, most: int) -> None:
    board = backend.boards[0]
    board.most, board.feed = most, lambda data: data
    transport = transport_of(backend)
    data = np.random.default_rng(1).bytes(70_000 if most > 3 else 2_000)
    transport.send(data)
    assert transport.receive(7, 1.0) == data[:7]
    assert transport.receive(len(data) - 7, 1.0) == data[7:]
    assert transport.receive(1, 0.01) == b""
    transport.close()


def test_memories_keep_what_is_written(backend: GoldenBackend) -> None:
    data = np.random.default_rng(1).bytes(5_000)
    with closing(open_device("usb", CONFIGURATION)) as device:
        device.write(Space.ACTIVATIONS, 3, data)
        assert device.read(3, len(data)) == data


def test_the_board_of_the_configuration_is_taken_of_several(backend: GoldenBackend) -> None:
    backend.boards.append(UsbBoard(OTHER, address=6))
    for configuration in (CONFIGURATION, OTHER):
        with closing(open_device("usb", configuration)) as device:
            assert device.identify().fingerprint == configuration.fingerprint
    assert [*map(str, found_boards())] == [
        f"1-5 ({CONFIGURATION.fingerprint})",
        f"1-6 ({OTHER.fingerprint})",
    ]
    backend.boards.append(UsbBoard(OTHER, address=7))
    with pytest.raises(DeviceError, match="there are 2 boards at usb:: give one of usb:1-6, usb:1"):
        open_device("usb", OTHER)
    with closing(open_device("usb:1-7", OTHER)):
        pass


def test_strangers_with_the_same_numbers_are_left_alone(backend: GoldenBackend) -> None:
    backend.boards[:] = [UsbBoard(CONFIGURATION, kind=(2, 2, 0))]
    assert found_boards() == []
    with pytest.raises(DeviceError, match="no Slipstick on USB at high speed: plug the board in"):
        open_device("usb", CONFIGURATION)
    with pytest.raises(DeviceError, match="no Slipstick at usb:1-5: this machine has none"):
        open_device("usb:1-5", CONFIGURATION)


def test_a_number_that_is_not_there(backend: GoldenBackend) -> None:
    backend.boards[0].open_error = errno.EACCES
    with pytest.raises(DeviceError, match=r"at usb:abc: this machine has usb:1-5 \(unknown\)"):
        open_device("usb:abc", CONFIGURATION)
    assert [*map(str, found_boards())] == ["1-5 (may not be opened)"]
    assert KINDS["usb"].tell_places() == "this machine has usb:1-5 (may not be opened)"


@pytest.mark.parametrize(
    ("attribute", "number", "message"),
    [
        ("open_error", errno.EACCES, "usb:1-5 may not be opened: add the udev rule"),
        ("claim_error", errno.EBUSY, "usb:1-5 is in use by another program"),
        ("open_error", errno.ENODEV, "usb:1-5 is gone: plug the board in again"),
        ("open_error", errno.EIO, "usb:1-5 cannot be opened: .*not opened"),
    ],
)
def test_boards_that_cannot_be_opened(
    backend: GoldenBackend, attribute: str, number: int, message: str
) -> None:
    setattr(backend.boards[0], attribute, number)
    with pytest.raises(DeviceError, match=message):
        open_device("usb", CONFIGURATION)


def test_a_port_of_full_speed_is_refused(backend: GoldenBackend) -> None:
    backend.boards[0].speed = 2
    with pytest.raises(DeviceError, match="usb:1-5 is on a port or hub of full speed"):
        open_device("usb", CONFIGURATION)


def test_another_board_is_refused(backend: GoldenBackend) -> None:
    with pytest.raises(LinkError, match="WRONG_HARDWARE: the board at usb:1-5"):
        open_device("usb", OTHER)


def test_a_board_that_is_unplugged(backend: GoldenBackend) -> None:
    board = backend.boards[0]
    device = open_device("usb", CONFIGURATION)
    board.gone = True
    with pytest.raises(LinkError, match="DISCONNECTED: the connection to usb:1-5 is lost"):
        device.status()
    device.close()


def test_a_board_that_takes_nothing(backend: GoldenBackend) -> None:
    board = backend.boards[0]
    device = open_device("usb", CONFIGURATION)
    board.stuck = True
    with pytest.raises(LinkError, match="DISCONNECTED: usb:1-5 does not take bytes any more"):
        device.status()
    device.close()


def test_reads_are_whole_packets_and_end_in_time(backend: GoldenBackend) -> None:
    transport = transport_of(backend)
    assert transport.receive(100_001, 0.0) == b""
    assert backend.boards[0].reads == [100_352]
    assert 0 < transport.seconds(1 << 20) < 1
    transport.close()


def test_without_libusb(monkeypatch: pytest.MonkeyPatch) -> None:
    libusb = importlib.import_module("usb.backend.libusb1")
    monkeypatch.setattr(libusb, "get_backend", lambda: None)
    with pytest.raises(DeviceError, match="usb devices need the library libusb 1.0: apt install"):
        open_device("usb", CONFIGURATION)
    assert found_boards() == []
    assert "plug the board in" in KINDS["usb"].tell_places()


def test_without_pyusb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "usb.core", None)
    with pytest.raises(DeviceError, match=r"usb devices need the Python package pyusb .*\[usb\]'"):
        open_device("usb:", CONFIGURATION)
