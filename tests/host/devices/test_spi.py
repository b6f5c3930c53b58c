"""Boards on SPI: sound and broken wires, simulated boards, and what cannot be opened."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import slipstick
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick.benchmarks.wire import wire_benchmark
from slipstick.devices import open_device
from slipstick.devices.link import LinkDevice, LinkError, Patience
from slipstick.devices.spi import SpiTransport, open_spi
from slipstick.devices.spi_bus import BANNER, SpidevBus
from slipstick.errors import DeviceError
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.link.protocol import REQUEST_START, Command, Space, encode
from slipstick_rtl.phy.spi_protocol import HostHeader
from spi_boards import FaultyBus, GoldenBoard, served

MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
TARGET = "1x4x4"
CONFIGURATION = find_target(TARGET).configuration
QUICK_SECONDS = 8.0
HASTY = Patience(timeout_seconds=0.02, retries=60, silence_seconds=0.0)


def check_session(device: str) -> None:
    """The digits network on a device equals the golden model."""
    with (
        InferenceSession(MODEL, device, TARGET) as session,
        InferenceSession(MODEL, "model", TARGET) as golden,
    ):
        name = golden.program.inputs[0]
        shape = (2, *golden.program.tensors[name].shape[1:])
        feeds = {name: np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], golden.run(None, feeds)[0])


@pytest.mark.parametrize("receive_depth", [1 << 13, 20])
def test_memories_keep_what_is_written(receive_depth: int) -> None:
    board = GoldenBoard(CONFIGURATION, receive_depth)
    device = LinkDevice(SpiTransport(board), configuration=CONFIGURATION)
    data = np.random.default_rng(1).bytes(40_000)
    device.write(Space.ACTIVATIONS, 3, data)
    assert device.read(3, len(data)) == data


def test_the_wire_is_filled() -> None:
    """Transfers are as long as they may be one way, and as what the board keeps the other."""
    board = GoldenBoard(CONFIGURATION)
    device = LinkDevice(SpiTransport(board), configuration=CONFIGURATION)
    data = bytes(60_000)
    device.status()
    before = board.transfers
    device.write(Space.ACTIVATIONS, 0, data)
    assert board.transfers - before <= 1.2 * len(data) / 4096 + 4
    before = board.transfers
    device.read(0, len(data))
    assert board.transfers - before <= 1.1 * len(data) / 2048 + 4


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32), rate=st.sampled_from([0.01, 0.05, 0.2]))
def test_faults_on_the_wires_cost_only_time(seed: int, rate: float) -> None:
    bus = FaultyBus(GoldenBoard(CONFIGURATION), seed, rate)
    device = LinkDevice(SpiTransport(bus), configuration=CONFIGURATION, patience=HASTY)
    data = np.random.default_rng(seed).bytes(6000)
    device.write(Space.ACTIVATIONS, 1, data)
    assert device.read(1, len(data)) == data


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_resets_end_in_an_error_or_in_the_truth(seed: int) -> None:
    bus = FaultyBus(GoldenBoard(CONFIGURATION), seed, 0.02, resets=True)
    data = np.random.default_rng(seed).bytes(3000)
    for _ in range(3):
        device = LinkDevice(SpiTransport(bus), configuration=CONFIGURATION, patience=HASTY)
        try:
            device.write(Space.ACTIVATIONS, 1, data)
            assert device.read(1, len(data)) == data
        except LinkError as error:
            assert error.code in ("NO_ANSWER", "SESSION_LOST")
    bus.rate = 0.0
    device = LinkDevice(SpiTransport(bus), configuration=CONFIGURATION, patience=HASTY)
    device.write(Space.ACTIVATIONS, 1, data)
    assert device.read(1, len(data)) == data


def test_a_session_over_wires() -> None:
    with served(GoldenBoard(CONFIGURATION)) as device:
        check_session(device)
        # a second host
        with closing(open_device(device, CONFIGURATION)):
            with pytest.raises(DeviceError, match="in use by another program: close that one"):
                open_device(device, CONFIGURATION)
        check_session(device)


def test_a_host_that_dies_within_a_transfer_does_no_harm() -> None:
    with served(GoldenBoard(CONFIGURATION)) as device:
        frame = encode(REQUEST_START, Command.WRITE, 7, bytes(900))
        wires = (500).to_bytes(4, "little") + HostHeader(0, 0, 400, 482).pack() + b"\0" + frame
        for size in (0, 3, 20, 400, 504):
            with socket.socket(socket.AF_UNIX) as half:
                half.connect(device.removeprefix("spi:"))
                assert half.recv(len(BANNER)) == BANNER
                half.sendall(wires[:size])
            with closing(open_device(device, CONFIGURATION)) as opened:
                opened.write(Space.ACTIVATIONS, 5, b"slip")
                assert opened.read(5, 4) == b"slip"


class Stranger:
    """Wires that stay at a level, go round, or talk."""

    hz, longest, idle = 10_000_000, 4096, True

    def __init__(self, pattern: bytes | None) -> None:
        self._pattern = pattern

    def transfer(self, data: bytes) -> bytes:
        return data if self._pattern is None else (self._pattern * len(data))[: len(data)]

    def rest(self) -> None:
        pass


@pytest.mark.parametrize("pattern", [b"\0", b"\xff", None, b"\x63\x0b", b"\x5a\0\0\x0c\0"])
def test_strangers_are_known_quickly(pattern: bytes | None) -> None:
    start = time.monotonic()
    message = "no Slipstick answers at /.*: check that the board is programmed, and that its pins"
    with served(Stranger(pattern)) as device, pytest.raises(DeviceError, match=message):
        open_device(device, CONFIGURATION)
    assert time.monotonic() - start < QUICK_SECONDS


class FakeSpidev:
    """The package's class, before a golden board; ``refuse`` names what raises."""

    def __init__(self, board: GoldenBoard, refuse: str = "") -> None:
        self._board = board
        self._refuse = refuse
        self._number = -1

    def open_path(self, path: str) -> None:
        self._check("open_path", errno.EACCES)
        self._number = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
        self._number = -1

    def xfer2(self, values: list[int], hz: int) -> list[int]:
        self._check("xfer2", errno.ESHUTDOWN)
        assert len(values) <= 4096
        return list(self._board.transfer(bytes(values)))

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            self._check(name, errno.EINVAL)
        super().__setattr__(name, value)

    def _check(self, name: str, number: int) -> None:
        if name == self._refuse:
            raise OSError(number, os.strerror(number))


@pytest.fixture
def spidev(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The package ``spidev``, and ``path``: some character device that nobody else uses."""
    ends = os.openpty()
    path = os.ttyname(ends[1])
    package = SimpleNamespace(refuse="", board=GoldenBoard(CONFIGURATION), path=path)
    package.SpiDev = lambda: FakeSpidev(package.board, package.refuse)
    monkeypatch.setitem(sys.modules, "spidev", package)
    yield package
    for end in ends:
        os.close(end)


def test_a_board_on_a_controller_of_linux(spidev: SimpleNamespace) -> None:
    name = f"spi:{spidev.path}"
    check_session(name)
    check_session(f"{name}@5000000")
    with closing(open_device(name, CONFIGURATION)) as device:
        with pytest.raises(DeviceError, match=f"{spidev.path} is in use by another program: close"):
            open_device(name, CONFIGURATION)
        device.status()
    assert spidev.board.transfers


@pytest.mark.parametrize(
    ("refuse", "message"),
    [
        ("open_path", ".* may not be opened: add yourself to the group .* spi"),
        ("mode", ".* cannot be opened as an SPI device: Invalid argument"),
        ("max_speed_hz", ".* cannot do 10000000 Hz: give another rate, as spi:.*@HZ"),
        ("xfer2", "connection to .* is lost .*: open the device anew"),
    ],
)
def test_controllers_that_refuse(spidev: SimpleNamespace, refuse: str, message: str) -> None:
    spidev.refuse = refuse
    with pytest.raises(DeviceError, match=message):
        open_device(f"spi:{spidev.path}", CONFIGURATION)


def test_places_that_are_no_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DeviceError, match=r"there is no SPI device .*none: switch SPI on"):
        open_device(f"spi:{tmp_path / 'none'}")
    with pytest.raises(DeviceError, match=r"file is no SPI device: give one such as spi:/dev/spi"):
        open_device(f"spi:{file}@20000")
    with pytest.raises(DeviceError, match="must name a place: this machine has"):
        open_device("spi:")
    monkeypatch.setitem(sys.modules, "spidev", None)
    with pytest.raises(DeviceError, match="need the package spidev: pip install spidev"):
        SpidevBus("/dev/null", 1)
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        with pytest.raises(DeviceError, match="nobody serves .* any more: start `slipstick serve"):
            open_device(f"spi:{path}")


@pytest.mark.parametrize("place", ["/dev/spidev0.0@fast", "/dev/spidev0.0@", "@9600", "path@-1"])
def test_rates_must_be_numbers(place: str) -> None:
    with pytest.raises(DeviceError, match=f"must be spi:PORT or .* not 'spi:{place}'"):
        open_device(f"spi:{place}")


@pytest.mark.parametrize("rate", [0, 9_999, 25_000_001])
def test_rates_must_be_within_reach_of_the_clock(rate: int) -> None:
    with pytest.raises(DeviceError, match=rf"within 10000\.\.25000000 Hz, .* not {rate}: give"):
        open_spi(f"/dev/spidev0.0@{rate}", CONFIGURATION)


@contextmanager
def served_simulation() -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """``slipstick serve-sim --physical spi`` as users start it."""
    command = [sys.executable, "-m", "slipstick", "serve-sim", "--target", TARGET, "--json"]
    with subprocess.Popen(
        [*command, "--physical", "spi"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.thorough
def test_the_simulated_board_gives_what_the_model_gives() -> None:
    with served_simulation() as (process, board):
        assert board["fingerprint"] == CONFIGURATION.fingerprint
        device = str(board["device"])
        check_session(device)
        with closing(open_device(device, CONFIGURATION)) as opened:
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
            with pytest.raises(DeviceError, match=f"connection to {board['port']} is lost"):
                opened.status()
            assert time.monotonic() - start < QUICK_SECONDS
    assert not Path(str(board["port"])).exists()


def test_the_benchmark_of_the_wires() -> None:
    figures = wire_benchmark("spi", TARGET, 1 << 14)
    assert figures["read_equals_written"]
    for way in ("write", "read"):
        # how near to the other depends on what else the machine does
        assert 0.1 < figures[f"{way}_share"] <= figures[f"{way}_share_busy"] < 1
        # the few transfers that only ask weigh more than in a larger one
        assert figures[f"{way}_share_busy"] > 0.9
