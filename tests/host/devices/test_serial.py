"""Boards on serial ports: pseudo-terminals with the simulated board, the model, or strangers."""

import dataclasses
import errno
import json
import os
import random
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import serial
import slipstick
from slipstick.benchmarks.wire import wire_benchmark
from slipstick.devices import open_device
from slipstick.devices.link import LinkDevice
from slipstick.devices.pty_server import Endpoint, PseudoTerminal, serve
from slipstick.devices.serial import SerialTransport
from slipstick.errors import DeviceError
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.link.protocol import REQUEST_START, Command, Space, encode
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint as GoldenEndpoint

MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
TARGET = "1x4x4"
CONFIGURATION = find_target(TARGET).configuration
QUICK_SECONDS = 8.0
STRANGER_SECONDS = 16.0
"""The greeting at the usual rate, and a quarter of a second at each other one."""
GARBAGE_SECONDS = 4.0
"""The greeting's three attempts, and what 4,000 bytes take on the line."""


class GoldenBoard:
    """The golden model at the end of a line; silence makes it forget half a frame."""

    idle = True

    def __init__(self) -> None:
        self._endpoint = GoldenEndpoint(CONFIGURATION, GoldenCore(CONFIGURATION))

    def feed(self, data: bytes) -> bytes:
        if not data:
            self._endpoint.time_out()
        return self._endpoint.feed(data)


class Stranger:
    """Something that answers each byte with some others, and may talk unasked."""

    def __init__(self, answer: bytes | None, unasked: bytes = b"") -> None:
        self.idle = not unasked
        self._answer = answer
        self._unasked = unasked

    def feed(self, data: bytes) -> bytes:
        time.sleep(0.001)
        return (data if self._answer is None else self._answer * len(data)) + self._unasked


class OneRateTerminal(PseudoTerminal):
    """Nothing can be made of bytes that come at another rate."""

    def __init__(self, rate: int) -> None:
        super().__init__()
        self._speed = getattr(termios, f"B{rate}")

    def read(self, timeout_seconds: float) -> bytes:
        data = super().read(timeout_seconds)
        return data if termios.tcgetattr(self._slave)[5] == self._speed else b""


@contextmanager
def board(endpoint: Endpoint, rate: int | None = None) -> Iterator[str]:
    """Serves an endpoint in a thread, at one rate or at any; gives the device's name."""
    stop = threading.Event()
    with PseudoTerminal() if rate is None else OneRateTerminal(rate) as terminal:
        thread = threading.Thread(target=serve, args=(terminal, endpoint, stop.is_set))
        thread.start()
        try:
            yield f"serial:{terminal.path}"
        finally:
            stop.set()
            thread.join()


@contextmanager
def served_simulation(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """``slipstick serve-sim`` as users start it."""
    command = [sys.executable, "-m", "slipstick", "serve-sim", "--target", TARGET, "--json"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def images(session: InferenceSession, count: int) -> dict[str, np.ndarray]:
    """Random inputs of the digits network."""
    name = session.program.inputs[0]
    shape = (count, *session.program.tensors[name].shape[1:])
    return {name: np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)}


def check_session(device: str) -> None:
    """The digits network on a device equals the golden model."""
    with (
        InferenceSession(MODEL, device, TARGET) as session,
        InferenceSession(MODEL, "model", TARGET) as golden,
    ):
        feeds = images(golden, 2)
        outputs, wanted = session.run(None, feeds), golden.run(None, feeds)
    np.testing.assert_array_equal(outputs[0], wanted[0])


def test_the_simulated_board_gives_what_the_model_gives() -> None:
    with served_simulation() as (process, served):
        assert served["fingerprint"] == CONFIGURATION.fingerprint
        port = str(served["port"])
        check_session(str(served["device"]))
        # a host that dies within a frame
        with serial.Serial(port) as half:
            half.write(encode(REQUEST_START, Command.WRITE, 7, bytes(900))[:500])
            half.flush()
        check_session(str(served["device"]))
        # garbage has beginnings of frames, with lengths of up to 64 KiB
        for seed in range(2):
            with serial.Serial(port) as stranger:
                stranger.write(random.Random(seed).randbytes(4000))
                stranger.flush()
            start = time.monotonic()
            open_device(str(served["device"]), CONFIGURATION).close()
            assert time.monotonic() - start < GARBAGE_SECONDS
        # two hosts on one port
        with closing(SerialTransport(port)), pytest.raises(DeviceError, match="in use by another"):
            open_device(f"serial:{port}", CONFIGURATION)
        with closing(open_device(str(served["device"]), CONFIGURATION)) as device:
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
            with pytest.raises(DeviceError, match=f"connection to {port} is lost: check the cable"):
                device.status()
            assert time.monotonic() - start < QUICK_SECONDS


def test_a_session_on_a_line() -> None:
    with board(GoldenBoard()) as device:
        check_session(device)


def test_a_host_that_dies_within_a_frame_does_no_harm() -> None:
    with board(GoldenBoard()) as device:
        frame = encode(REQUEST_START, Command.WRITE, 7, bytes(900))
        for size in (1, 4, 500):
            with serial.Serial(device.removeprefix("serial:")) as half:
                half.write(frame[:size])
                half.flush()
            with closing(open_device(device, CONFIGURATION)) as opened:
                opened.write(Space.ACTIVATIONS, 5, b"slip")
                assert opened.read(5, 4) == b"slip"


@pytest.mark.parametrize(
    "stranger",
    [Stranger(b""), Stranger(None), Stranger(b"\x5a\x00"), Stranger(b"", b"\x5a\x00\x00\x0c\x00")],
    ids=["silence", "echo", "nonsense", "noise"],
)
def test_strangers_are_known_quickly(stranger: Stranger) -> None:
    start = time.monotonic()
    with board(stranger) as device, pytest.raises(DeviceError, match="no Slipstick answers at /"):
        open_device(device, CONFIGURATION)
    assert time.monotonic() - start < STRANGER_SECONDS


def test_a_port_that_takes_nothing_is_given_up() -> None:
    with PseudoTerminal() as terminal:
        transport = SerialTransport(terminal.path, 115_200)
        start = time.monotonic()
        with pytest.raises(DeviceError, match="does not take bytes any more"):
            transport.send(bytes(1 << 16))
        transport.close()
        assert time.monotonic() - start < QUICK_SECONDS


def test_other_hardware_is_refused() -> None:
    other = dataclasses.replace(CONFIGURATION, payload_bytes=256)
    message = f"fingerprint must be {other.fingerprint}, not {CONFIGURATION.fingerprint}"
    with board(GoldenBoard()) as device:
        with pytest.raises(DeviceError, match=message):
            open_device(device, other)
        # and the port is free again
        open_device(device, CONFIGURATION).close()


def test_an_unplugged_board_is_an_error() -> None:
    terminal = PseudoTerminal()
    transport = SerialTransport(terminal.path)
    device = LinkDevice(transport, configuration=CONFIGURATION)
    terminal.close()
    start = time.monotonic()
    for use in (device.status, lambda: device.write(Space.ACTIVATIONS, 0, bytes(5000))):
        with pytest.raises(DeviceError, match="connection to /dev/.* is lost"):
            use()
    device.close()
    with pytest.raises(DeviceError, match="is lost"):
        device.status()
    assert time.monotonic() - start < QUICK_SECONDS


def test_ports_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DeviceError, match=r"there is no port .*: plug the board in"):
        open_device(f"serial:{tmp_path / 'none'}")
    with pytest.raises(DeviceError, match="file cannot be opened as a serial port"):
        open_device(f"serial:{file}@9600")

    def refuse(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DeviceError, match=r"may not be opened: add yourself .* dialout"):
        open_device("serial:/dev/ttyUSB0")


def test_the_rate_is_found() -> None:
    with board(GoldenBoard(), 460_800) as device:
        with closing(open_device(device, CONFIGURATION)) as opened:
            opened.write(Space.ACTIVATIONS, 5, b"slip")
            assert opened.read(5, 4) == b"slip"
        port = device.removeprefix("serial:")
        message = f"opened at its own rate, 460800 baud, not 9600: give serial:{port}@460800"
        with pytest.raises(DeviceError, match=message):
            open_device(f"{device}@9600", CONFIGURATION)
        open_device(f"{device}@460800", CONFIGURATION).close()


def test_adapters_are_asked_for_short_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(serial.Serial, "set_low_latency_mode", lambda port, on: asked.append(on))
    with PseudoTerminal() as terminal:
        SerialTransport(terminal.path).close()
    assert asked == [True]


@pytest.mark.parametrize("place", ["/dev/ttyUSB0@fast", "/dev/ttyUSB0@", "@9600", "port@-1"])
def test_rates_must_be_numbers(place: str) -> None:
    with pytest.raises(DeviceError, match=f"must be serial:PORT or .* not 'serial:{place}'"):
        open_device(f"serial:{place}")


def test_rates_that_a_port_refuses() -> None:
    with PseudoTerminal() as terminal:
        for rate in (0, 299, 10**12):
            with pytest.raises(DeviceError, match=rf"baud.*serial:{terminal.path}@115200"):
                open_device(f"serial:{terminal.path}@{rate}")


def test_the_benchmark_of_the_line() -> None:
    figures = wire_benchmark("uart", TARGET, 1 << 13)
    assert figures["read_equals_written"]
    # how near to 1 depends on what else the machine does
    for share in (figures["write_share"], figures["read_share"]):
        assert 0.2 < share < 1
