"""Boards on Ethernet: golden models behind UDP ports of this machine, and networks that fail."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import slipstick
from slipstick.benchmarks.faults.datagrams import GoldenBoard, NetworkFault
from slipstick.devices import Device, open_device, udp, udp_discovery
from slipstick.devices.kinds import KINDS
from slipstick.devices.link.errors import LinkError
from slipstick.devices.udp_discovery import discover
from slipstick.devices.udp_server import LOOPBACK, open_port
from slipstick.errors import DeviceError
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.link.protocol import Space
from udp_boards import ROUGH, network_of, served

MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
TARGET = "1x4x4"
CONFIGURATION = find_target(TARGET).configuration
OTHER = find_target("1x8x8").configuration
COUNT = 20
QUICK_SECONDS = 4.0


@dataclass(frozen=True)
class Digits:
    """The digits network, compiled, with inputs and what the golden model makes of them."""

    program: Program
    images: np.ndarray
    wanted: np.ndarray

    def check(self, device: str | Device) -> None:
        """Runs it on a device."""
        with InferenceSession(self.program, device) as session:
            (outputs,) = session.run(None, {session.get_inputs()[0].name: self.images})
        np.testing.assert_array_equal(outputs, self.wanted)


@pytest.fixture(scope="module")
def digits() -> Digits:
    with InferenceSession(MODEL, "model", TARGET) as golden:
        program, (name,) = golden.program, golden.program.inputs
        shape = (COUNT, *program.tensors[name].shape[1:])
        images = np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)
        return Digits(program, images, golden.run(None, {name: images})[0])


@pytest.fixture
def found_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ports of this machine at which boards are looked for, instead of the usual one."""
    ports: list[int] = []

    def find() -> list[udp_discovery.FoundBoard]:
        return [board for port in ports for board in discover(port, attempts=1)]

    monkeypatch.setattr(udp, "discover", find)
    return ports


def test_a_session_equals_the_golden_model(digits: Digits) -> None:
    with served(GoldenBoard(CONFIGURATION)) as device:
        digits.check(device)
        digits.check(device.replace(LOOPBACK, "localhost"))


@pytest.mark.parametrize("sizes", [(1, 1), (4, 512), (16, 1024)], ids=str)
def test_memories_keep_what_is_written(sizes: tuple[int, int]) -> None:
    slots, slot_bytes = sizes
    board = GoldenBoard(CONFIGURATION, slots=slots, slot_bytes=slot_bytes)
    data = np.random.default_rng(1).bytes(3_000 if slots > 1 else 100)
    with served(board) as name, closing(open_device(name, CONFIGURATION)) as device:
        device.write(Space.ACTIVATIONS, 3, data)
        assert device.read(3, len(data)) == data


def test_images_as_they_come(digits: Digits) -> None:
    with (
        served(GoldenBoard(CONFIGURATION)) as device,
        InferenceSession(digits.program, device) as session,
    ):
        came = [outputs[0] for outputs in session.stream(image[None] for image in digits.images)]
    np.testing.assert_array_equal(np.concatenate(came), digits.wanted)


@pytest.mark.parametrize("fault", [*ROUGH, None], ids=str)
def test_a_network_that_fails_changes_nothing(digits: Digits, fault: NetworkFault | None) -> None:
    network = network_of(CONFIGURATION, ROUGH if fault is None else {fault: ROUGH[fault]})
    draw = np.random.default_rng(1)
    with served(network) as name, closing(open_device(name, CONFIGURATION)) as device:
        for _ in range(5):
            data = draw.bytes(5_000)
            device.write(Space.ACTIVATIONS, 7, data)
            assert device.read(7, len(data)) == data
        digits.check(device)
    assert all(network.counts[each] for each in ([fault] if fault else [*ROUGH])), network.counts


def test_a_cable_that_is_out_for_a_while() -> None:
    network = network_of(CONFIGURATION)
    data = np.random.default_rng(1).bytes(2_000)
    with served(network) as name, closing(open_device(name, CONFIGURATION)) as device:
        device.write(Space.ACTIVATIONS, 0, data)
        network.pull(2.0)
        start = time.monotonic()
        device.write(Space.ACTIVATIONS, 0, data[::-1])
        assert 1.9 < time.monotonic() - start < QUICK_SECONDS
        assert device.read(0, len(data)) == data[::-1]


def test_one_host_at_a_time() -> None:
    with served(GoldenBoard(CONFIGURATION)) as name:
        first = open_device(name, CONFIGURATION)
        message = rf"{name} is in use by {LOOPBACK}:\d+: wait .* --take \(--device {name}\+take\)"
        with pytest.raises(DeviceError, match=message):
            open_device(name, CONFIGURATION)
        first.status()
        with closing(open_device(f"{name}+take", CONFIGURATION)) as second:
            for _ in range(2):
                with pytest.raises(LinkError, match=rf"SESSION_LOST: .* {LOOPBACK}:\d+ took it"):
                    first.status()
            second.status()
            # who has lost it gives nothing back
            first.close()
            with pytest.raises(DeviceError, match="in use by"):
                open_device(name, CONFIGURATION)
        open_device(name, CONFIGURATION).close()


def test_a_lease_that_ran_out() -> None:
    with served(GoldenBoard(CONFIGURATION, lease_seconds=0.2)) as name:
        first = open_device(name, CONFIGURATION)
        first.write(Space.ACTIVATIONS, 0, b"slip")
        time.sleep(0.3)
        # nobody else came
        assert first.read(0, 4) == b"slip"
        time.sleep(0.3)
        with closing(open_device(name, CONFIGURATION)) as second:
            second.status()
            with pytest.raises(LinkError, match=r"SESSION_LOST: .*127\.0\.0\.1:\d+ took it"):
                first.read(0, 4)
        first.close()


def test_a_board_that_restarts() -> None:
    network = network_of(CONFIGURATION)
    with served(network) as name:
        with closing(open_device(name, CONFIGURATION)) as device:
            network.restart()
            with pytest.raises(LinkError, match="SESSION_LOST: .*it was reset, or another host"):
                device.write(Space.ACTIVATIONS, 0, bytes(2_000))
        open_device(name, CONFIGURATION).close()


def test_nobody_there() -> None:
    with closing(open_port(0)) as deaf:
        port = deaf.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(LinkError, match=f"NO_ANSWER: no board answers at udp:{LOOPBACK}:"):
            open_device(f"udp:{LOOPBACK}:{port}", CONFIGURATION)
        assert time.monotonic() - start < QUICK_SECONDS
    with pytest.raises(LinkError, match="NO_ANSWER: .* nothing listens there"):
        open_device(f"udp:{LOOPBACK}:{port}", CONFIGURATION)


def test_another_board_is_refused_and_given_back() -> None:
    with served(GoldenBoard(CONFIGURATION)) as name:
        with pytest.raises(LinkError, match="WRONG_HARDWARE: the board at udp:"):
            open_device(name, OTHER)
        open_device(name, CONFIGURATION).close()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("::1", "must have an IPv4 address or a name, not '::1': boards do not speak IPv6"),
        ("[fe80::1]:21328", "boards do not speak IPv6"),
        ("127.0.0.1:", "must be udp:ADDRESS or udp:ADDRESS:PORT, .* not 'udp:127.0.0.1:'"),
        ("127.0.0.1:0", "must be udp:ADDRESS or"),
        ("127.0.0.1:65536", "must be udp:ADDRESS or"),
        ("127.0.0.1:http", "must be udp:ADDRESS or"),
        (":5", "must be udp:ADDRESS or"),
        ("192.168.1", "'192.168.1' is no IPv4 address: give udp:ADDRESS"),
        ("300.1.1.1", "'300.1.1.1' is no IPv4 address"),
        ("127.0.0.1+grab", r"after the \+ must come take, not 'grab': give udp:127.0.0.1\+take"),
        ("no.such.board.invalid", "there is no computer or board by the name 'no.such.board"),
        ("x" * 70, "there is no computer or board by the name"),
        ("255.255.255.255", "udp:255.255.255.255 cannot be reached"),
    ],
)
def test_places_that_are_none(place: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        open_device(f"udp:{place}", CONFIGURATION)


def test_the_only_board_is_found(digits: Digits, found_here: list[int]) -> None:
    with pytest.raises(DeviceError, match="no board on this network answers: plug it in"):
        open_device("udp:", CONFIGURATION)
    with served(GoldenBoard(CONFIGURATION)) as one, served(GoldenBoard(OTHER)) as other:
        found_here += [int(name.rpartition(":")[2]) for name in (one, other)]
        digits.check("udp:")
        with closing(open_device("udp", OTHER)) as device:
            assert device.identify().fingerprint == OTHER.fingerprint
            told = KINDS["udp"].tell_places()
            assert f"{other} ({OTHER.fingerprint}, in use by {LOOPBACK}:" in told
            assert f"{one} ({CONFIGURATION.fingerprint})" in told
        with pytest.raises(DeviceError, match=f"there is no board of .* but {one} .*, {other}"):
            open_device("udp:", find_target("1x4x8").configuration)
        with served(GoldenBoard(OTHER)) as third:
            found_here.append(int(third.rpartition(":")[2]))
            with pytest.raises(DeviceError, match="there are 2 boards of .* give one of udp:"):
                open_device("udp:", OTHER)


def test_networks_have_broadcasts() -> None:
    networks = udp_discovery._networks()
    assert networks[0] == (LOOPBACK, LOOPBACK)
    for address in {each for pair in networks for each in pair}:
        socket.inet_aton(address)


def test_devices_are_listed(slipstick, found_here: list[int], monkeypatch) -> None:
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [])
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    status, out, _ = slipstick("devices")
    assert status == 0 and out.startswith("no device: ")
    with served(GoldenBoard(OTHER)) as name:
        found_here.append(int(name.rpartition(":")[2]))
        with closing(open_device(name, OTHER)):
            status, out, _ = slipstick("devices", "--json")
        (entry,) = json.loads(out)["devices"]
        assert status == 0 and entry["device"] == name and "sim-small" in entry["targets"]
        assert entry["fingerprint"] == OTHER.fingerprint
        assert entry["owner"].startswith(LOOPBACK)
        status, out, _ = slipstick("devices")
        assert status == 0 and name in out and "sim-small" in out


def test_the_simulated_board_gives_what_the_model_gives(digits: Digits) -> None:
    command = [sys.executable, "-m", "slipstick", "serve-sim", "--target", TARGET, "--json"]
    with subprocess.Popen(
        [*command, "--wire", "ethernet", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            board = json.loads(process.stdout.readline())
            assert board["fingerprint"] == CONFIGURATION.fingerprint
            digits.check(board["device"])
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_the_command_line_takes_a_board(slipstick, tmp_path: Path, digits: Digits) -> None:
    digits.program.save(tmp_path / "digits.slip")
    np.save(tmp_path / "x.npy", digits.images[:1])
    words = ["run", str(tmp_path / "digits.slip"), str(tmp_path / "x.npy"), "--json", "--device"]
    with served(GoldenBoard(CONFIGURATION)) as name:
        with closing(open_device(name, CONFIGURATION)):
            status, _, error = slipstick(*words, name)
            assert status == 2 and "is in use by" in error
            status, out, _ = slipstick(*words, name, "--take")
            assert status == 0 and json.loads(out)["device"] == f"{name}+take"
    status, _, error = slipstick(*words, "model", "--take")
    assert status == 2 and "--take is for boards on Ethernet, udp:, not model" in error


def test_ports_that_cannot_be_served(slipstick) -> None:
    with closing(open_port(0)) as taken:
        port = taken.getsockname()[1]
        for wrong in (port, 65536):
            with pytest.raises(DeviceError, match=f"UDP port {wrong} .* is in use, or none"):
                open_port(wrong)
    status, _, error = slipstick("serve-sim", "--port", "5")
    assert status == 2 and "--port is one of Ethernet: leave it out with --wire uart" in error
