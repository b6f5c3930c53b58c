"""What goes wrong on a wire ends in one sentence that says what to do, soon, and in status 2."""

import errno
import os
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slipstick.cli import app
from slipstick.devices import open_device, serial
from slipstick.devices.pty_server import PseudoTerminal, serve
from slipstick.errors import DeviceError
from slipstick.examples.digits import MODEL
from slipstick.targets import TARGETS, find_target
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import RESPONSE_START, Status, encode
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

TARGET = "1x4x4"
CONFIGURATION = find_target(TARGET).configuration
QUICK_SECONDS = 8.0
Refused = Callable[[str], str]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a network on a device, which must fail; returns the sentence."""
    inputs = tmp_path / "inputs.npy"
    np.save(inputs, np.zeros((1, 8, 8, 1), np.int8))

    def run(device: str) -> str:
        start = time.monotonic()
        arguments = ["run", str(MODEL), "--input", str(inputs), "--target", TARGET]
        with pytest.raises(SystemExit) as ended:
            app([*arguments, "--device", device], prog_name="slipstick")
        captured = capsys.readouterr()
        assert ended.value.code == 2, captured.err
        assert time.monotonic() - start < QUICK_SECONDS
        assert captured.err.startswith("slipstick: ")
        assert captured.err.count("\n") == 1
        assert not captured.out
        return captured.err

    return run


class Board:
    """The golden model on a line, which may have a fault.

    ``rate``: it hears and says only noise unless the line is set so. ``lifetime``: it is unplugged
    after so many bytes. ``identity``: what it says of itself instead of the truth.
    """

    idle = True

    def __init__(
        self,
        terminal: PseudoTerminal,
        rate: int | None = None,
        lifetime: int | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._endpoint = Endpoint(CONFIGURATION, GoldenCore(CONFIGURATION))
        self._terminal = terminal
        self._rate = rate
        self._left = lifetime
        self._identity = identity

    def feed(self, data: bytes) -> bytes:
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                raise OSError(errno.EIO, "unplugged")
        if self._rate is not None and self._terminal_rate() != self._rate:
            return bytes(byte ^ 0x5A for byte in data[::3])
        if self._identity is not None and data:
            return encode(RESPONSE_START, Status.OK, data[2], self._identity.pack())
        if not data:
            self._endpoint.time_out()
        return self._endpoint.feed(data)

    def _terminal_rate(self) -> int:
        number = os.open(self._terminal.path, os.O_RDWR | os.O_NOCTTY)
        try:
            return termios.tcgetattr(number)[4]
        finally:
            os.close(number)


@contextmanager
def board(**faults: object) -> Iterator[str]:
    """Serves a board in a thread, until it ends or is unplugged; gives the device's name."""
    stop = threading.Event()
    terminal = PseudoTerminal()
    endpoint = Board(terminal, **faults)  # pyright: ignore[reportArgumentType]

    def run() -> None:
        try:
            serve(terminal, endpoint, stop.is_set)
        except OSError:
            pass
        finally:
            terminal.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"serial:{terminal.path}"
    finally:
        stop.set()
        thread.join()


def test_no_such_port(refused: Refused) -> None:
    error = refused("serial:/dev/ttyNONE")
    assert "there is no port /dev/ttyNONE: plug the board in, and list the ports by" in error
    assert "there is no SPI device /dev/spidev9.9: switch SPI on" in refused("spi:/dev/spidev9.9")


def test_things_that_are_no_ports(refused: Refused, tmp_path: Path) -> None:
    for place in (tmp_path, MODEL, Path("/dev/null")):
        assert f"port {place} cannot be opened as a serial port" in refused(f"serial:{place}")
    for place in (tmp_path, MODEL):
        assert f"{place} is no SPI device: give one such as" in refused(f"spi:{place}")


def test_no_permission(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    assert "may not be opened: add yourself to the group" in refused("serial:/dev/ttyUSB0")


def test_a_port_that_another_process_has(refused: Refused) -> None:
    script = (
        "import serial, sys, time; port = serial.Serial(sys.argv[1], exclusive=True);"
        " print(flush=True); time.sleep(60)"
    )
    with board() as device:
        port = device.removeprefix("serial:")
        command = [sys.executable, "-c", script, port]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert f"port {port} is in use by another program: close that one" in refused(device)
            other.kill()
        open_device(device, CONFIGURATION).close()


def test_other_hardware(refused: Refused) -> None:
    truth = Identity.of(CONFIGURATION)
    versions = (
        ("link protocol", "protocol_version", truth.protocol_version),
        ("ISA", "isa_version", truth.isa_version),
    )
    for what, field, version in versions:
        with board(identity=replace(truth, **{field: version + 7})) as device:
            error = refused(device)
        assert f"must have {what} version {version}, not {version + 7}: build its" in error
    known = TARGETS["ulx3s-12f"]
    for fingerprint, advice in (
        ("0123456789abcdef", "program the board with that target's bitstream, or give"),
        (known.configuration.fingerprint, f"give --target {known.name}, or program"),
    ):
        with board(identity=replace(truth, fingerprint=fingerprint)) as device:
            error = refused(device)
        assert f"fingerprint must be {truth.fingerprint}, not {fingerprint}: {advice}" in error


def test_rates(refused: Refused) -> None:
    with board(rate=termios.B115200) as device:
        for rate in (9600, 230_400):
            error = refused(f"{device}@{rate}")
            assert f"opened at its own rate, 115200 baud, not {rate}: give {device}@115200" in error
        for rate in ("0", "1000000000000"):
            assert f"{device}@115200" in refused(f"{device}@{rate}")
        open_device(f"{device}@115200", CONFIGURATION).close()


@pytest.mark.parametrize("lifetime", [1, 60, 3000])
def test_a_cable_that_is_pulled(refused: Refused, lifetime: int) -> None:
    with board(lifetime=lifetime) as device:
        port = device.removeprefix("serial:")
        assert f"the connection to {port} is lost: check the cable and open" in refused(device)


def test_places_that_are_missing(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    class Port:
        device, product, description, hwid = "/dev/ttyUSB3", "FT231X", "n/a", "USB 0403:6015"

    class Nothing:
        device, product, description, hwid = "/dev/ttyS0", None, "n/a", "n/a"

    monkeypatch.setattr(serial.list_ports, "comports", lambda: [Port, Nothing])
    error = refused("serial:")
    assert "must name a place: this machine has serial:/dev/ttyUSB3 (FT231X)" in error
    monkeypatch.setattr(serial.list_ports, "comports", list)
    assert "this machine has none that serial could use; plug the board in" in refused("serial")
    assert "must name a place: this machine has" in refused("spi:")
    with pytest.raises(DeviceError, match="must be serial:PORT or"):
        open_device("serial:\0")


def test_pins_that_serve_sim_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--physical", "usb"], "usb"),
        (["--physical", "spi", "--baud", "9600"], "--baud is the rate of a UART: leave it out"),
        (["--baud", "99999999"], "--baud: baud must be at most"),
    ):
        with pytest.raises(SystemExit) as ended:
            app(["serve-sim", "--target", TARGET, *arguments], prog_name="slipstick")
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
