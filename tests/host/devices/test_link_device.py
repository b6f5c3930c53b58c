"""The host's end of the link, over lines that are sound, broken, silent and hostile."""

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import slipstick
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick.devices.base import Device
from slipstick.devices.link import LinkDevice, LinkError, LostAnswerError, Patience, Request
from slipstick.devices.link.errors import CODES
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.errors import DeviceError
from slipstick_rtl.config import PROTOCOL_VERSION, Configuration
from slipstick_rtl.dma.transfer import DmaStatus
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    RESPONSE_START,
    DeviceStatus,
    Region,
    Space,
    Status,
    encode,
)
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, unit_count
from slipstick_sim.golden.link import Endpoint

CONFIGURATION = Configuration(
    rows=8,
    columns=8,
    lanes=4,
    activation_bytes=1 << 14,
    weight_bytes=1 << 12,
    instruction_words=1 << 13,
    payload_bytes=64,
)
HASTY = Patience(timeout_seconds=5.0, silence_seconds=0.0)


class Memories:
    """A backend that stores bytes and counts runs; a run ends after some looks at it."""

    def __init__(self) -> None:
        self.spaces = {
            space: bytearray(unit_count(CONFIGURATION, space) * unit_bytes(CONFIGURATION, space))
            for space in spaces_of(CONFIGURATION)
        }
        self.runs: list[tuple[int, ...]] = []
        self.looks = 0
        self.looks_per_run = 0
        self.bad_instruction = False

    def write(self, space: Space, address: int, data: bytes) -> None:
        begin = address * unit_bytes(CONFIGURATION, space)
        self.spaces[space][begin : begin + len(data)] = data

    def read(self, address: int, count: int) -> bytes:
        return bytes(self.spaces[Space.ACTIVATIONS][address : address + count])

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        self.runs.append((*pcs, clear))
        self.looks = self.looks_per_run

    def status(self) -> DeviceStatus:
        self.looks = max(0, self.looks - 1)
        return DeviceStatus(self.looks > 0, self.bad_instruction, (1, 2), 300, (200, 100))

    def wait(self) -> bool:
        """The link waits for a while only."""
        self.looks = max(0, self.looks - 5)
        return self.looks == 0

    def reset(self) -> None:
        self.looks = 0


class Inverter(Memories):
    """A run leaves the input's bytes, inverted, in the output; each pair of pcs has a place of its
    own. While it goes on, whoever touches the place breaks the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.place: int | None = None
        self.broken: list[str] = []

    def write(self, space: Space, address: int, data: bytes) -> None:
        if self.looks and self.place is not None and address // PLACE == self.place:
            self.broken.append(f"wrote {address} while it was computed with")
        super().write(space, address, data)

    def read(self, address: int, count: int) -> bytes:
        if self.looks and address // PLACE == self.place:
            self.broken.append(f"read {address} while it was computed")
        return super().read(address, count)

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        super().run(pcs, clear)
        self.place = pcs[0]
        memory, first = self.spaces[Space.ACTIVATIONS], self.place * PLACE
        inverted = bytes(value ^ 0xFF for value in memory[first : first + IMAGE])
        memory[first + IMAGE : first + 2 * IMAGE] = inverted


IMAGE, PLACE = 200, 1024


class HostileTransport:
    """Spoils what is sent and what is answered: flips, losses, repetitions, garbage, cuts."""

    def __init__(self, endpoint: Endpoint, seed: int, rate: float) -> None:
        self._endpoint = endpoint
        self._random = random.Random(seed)
        self._rate = rate
        self._answers = bytearray()
        self._faults: tuple[Callable[[bytes, int], bytes], ...] = (
            lambda data, at: data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :],
            lambda data, at: data[:at] + data[at + 1 :],
            lambda data, at: data[:at] + data[at + self._random.randint(1, 200) :],
            lambda data, at: data[:at],
            lambda data, at: data[at:],
            lambda data, at: data + data,
            lambda data, at: data[:at] + self._random.randbytes(1 + at % 40) + data[at:],
            lambda data, at: b"",
        )

    def seconds(self, count: int) -> float:
        return count * 1e-5

    def send(self, data: bytes) -> None:
        self._answers += self._spoil(self._endpoint.feed(self._spoil(data)))

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        if not self._answers and self._random.random() < 0.5:
            self._endpoint.time_out()
        count = self._random.randint(1, count)
        taken = bytes(self._answers[:count])
        del self._answers[:count]
        return taken

    def close(self) -> None:
        self._answers.clear()

    def _spoil(self, data: bytes) -> bytes:
        while data and self._random.random() < self._rate:
            data = self._random.choice(self._faults)(data, self._random.randrange(len(data)))
        return data


def _device(memories: Memories | None = None) -> tuple[LinkDevice, Memories]:
    memories = memories or Memories()
    transport = LoopbackTransport(Endpoint(CONFIGURATION, memories))
    return LinkDevice(transport, configuration=CONFIGURATION, patience=HASTY), memories


def test_memories_of_any_size_and_a_run() -> None:
    device, memories = _device()
    typed: Device = device
    assert typed.identify().fingerprint == CONFIGURATION.fingerprint
    spaces = [space for space in Space if unit_count(CONFIGURATION, space)]
    for space in spaces:
        data = random.Random(space).randbytes(len(memories.spaces[space]))
        device.write(space, 0, data)
        assert memories.spaces[space] == data
    assert device.read(0, 1 << 14) == memories.spaces[Space.ACTIVATIONS]
    assert device.read(5, 0) == b""
    memories.looks_per_run = 9
    device.run((7, 9), clear=False)
    assert device.status().running
    for space in spaces:
        device.write(space, 1, bytes(72))
    assert device.status().running
    assert device.wait() == DeviceStatus(False, False, (1, 2), 300, (200, 100))
    assert memories.runs == [(7, 9, False)]
    device.reset()
    device.close()


def test_states_are_asked_between_many_requests() -> None:
    """Numbers of unordered requests in flight are all different, however many go on between."""
    device, memories = _device()
    for between in (0, 7, 8):
        asked = []
        for _ in range(200):
            for address in range(between):
                device.submit_write(Space.ACTIVATIONS, address, bytes([between]))
            asked.append(device.submit_status())
        for request in asked:
            assert not device.state_of(request).bad_instruction
        device.finish()
        assert memories.spaces[Space.ACTIVATIONS][:between] == bytes([between]) * between


def test_a_run_is_run_once_for_each_call() -> None:
    device, memories = _device()
    for count in range(1, 600):
        device.run((0, 0))
        device.status()
        assert len(memories.runs) == count
    # another session, whose numbers begin anew, on the device that remembers the last RUN
    for skipped in range(3):
        transport = LoopbackTransport(Endpoint(CONFIGURATION, memories))
        again = LinkDevice(transport, configuration=CONFIGURATION)
        for _ in range(skipped):
            again.status()
        again.run((0, 0))
    assert len(memories.runs) == 602


def test_two_sessions_on_one_endpoint_run_twice() -> None:
    memories = Memories()
    endpoint = Endpoint(CONFIGURATION, memories)
    for _ in range(2):
        LinkDevice(LoopbackTransport(endpoint), configuration=CONFIGURATION).run((0, 0))
    assert len(memories.runs) == 2


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda device: device.write(Space.WEIGHTS, 0, bytes(9)), "BAD_LENGTH"),
        (lambda device: device.write(Space.WEIGHTS, 511, bytes(16)), "BAD_ADDRESS"),
        (lambda device: device.write(Space.WEIGHTS, -1, bytes(8)), "BAD_ADDRESS"),
        (lambda device: device.read(1 << 14, 1), "BAD_ADDRESS"),
        (lambda device: device.read(0, -1), "BAD_ADDRESS"),
        (lambda device: device.run((1 << 13, 0)), "BAD_ADDRESS"),
        (lambda device: device.run((0, 0)) or device.run((0, 0)), "BUSY"),
        (lambda device: device.run((0, 0)) or device.wait(0.01), "RUN_TIMEOUT"),
    ],
)
def test_what_is_refused(act: Callable[[LinkDevice], None], code: str) -> None:
    memories = Memories()
    memories.looks_per_run = 1 << 30
    device, _ = _device(memories)
    with pytest.raises(DeviceError, match=f"^{code}: ") as caught:
        act(device)
    assert isinstance(caught.value, LinkError)
    assert caught.value.code == code


def test_a_bad_instruction_ends_a_wait() -> None:
    device, memories = _device()
    memories.bad_instruction = True
    device.run((0, 0))
    with pytest.raises(LinkError, match="BAD_INSTRUCTION: the device met a bad instruction"):
        device.wait()


def test_other_hardware_is_named_with_both_values() -> None:
    device, _ = _device()
    other = Configuration(rows=16, columns=16)
    with pytest.raises(DeviceError) as caught:
        device.check(other)
    assert other.fingerprint in str(caught.value)
    assert CONFIGURATION.fingerprint in str(caught.value)


class OtherEndpoint:
    """Answers every request with one identity."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def feed(self, data: bytes) -> bytes:
        return encode(RESPONSE_START, Status.OK, data[2], self._identity.pack())


def test_another_protocol_version_is_named() -> None:
    identity = replace(Identity.of(CONFIGURATION), protocol_version=7)
    transport = LoopbackTransport(OtherEndpoint(identity))
    device = LinkDevice(transport, configuration=CONFIGURATION)
    with pytest.raises(
        DeviceError, match=f"link protocol version must be {PROTOCOL_VERSION}, not 7"
    ) as caught:
        device.identify()
    assert isinstance(caught.value, LinkError)
    assert caught.value.code == "WRONG_HARDWARE"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 30), rate=st.sampled_from([0.02, 0.1, 0.3, 0.6, 1.0]))
def test_a_hostile_line_gives_what_is_right_or_an_error(seed: int, rate: float) -> None:
    memories = Memories()
    transport = HostileTransport(Endpoint(CONFIGURATION, memories), seed, min(rate, 0.95))
    device = LinkDevice(transport, configuration=CONFIGURATION, patience=HASTY)
    choose = random.Random(seed)
    for _ in range(12):
        address, count = choose.randrange(1 << 13), choose.choice([1, 63, 400, 3000])
        content = choose.randbytes(count)
        expected_runs = len(memories.runs)
        try:
            match choose.randrange(4):
                case 0:
                    device.write(Space.ACTIVATIONS, address, content)
                    assert memories.read(address, count) == content
                case 1:
                    assert device.read(address, count) == memories.read(address, count)
                case 2:
                    device.run((1, 2))
                    assert len(memories.runs) == expected_runs + 1
                case _:
                    device.identify()
                    assert device.status() == memories.status()
        except LinkError as error:
            assert error.code in ("NO_ANSWER", "SESSION_LOST")
            assert expected_runs <= len(memories.runs) <= expected_runs + 1
            if error.code == "SESSION_LOST":
                break


def submit(device: LinkDevice, place: int, image: bytes, before: int | None) -> Request:
    """An image into one of two places; the answer is the image's, or that of the other place."""
    first = place * PLACE
    device.submit_put(Region(address=first, run_bytes=50, runs=4), image)
    if before is None:
        return device.submit_run((place, 0), run_seconds=0.001)
    output = Region(address=before * PLACE + IMAGE, run_bytes=32, count=32)
    return device.submit(device.run_get(output, (place, 0), waiting=True, run_seconds=0.001))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    rate=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    window=st.sampled_from([1, 500, 3000, 1 << 16]),
    receive=st.sampled_from([None, 0, 256]),
    looks=st.sampled_from([0, 3, 40]),
)
def test_no_image_is_lost_or_swapped(
    seed: int, rate: float, window: int, receive: int | None, looks: int
) -> None:
    """Two places, images one behind the other, on any line: each answer is its own image's."""
    memories = Inverter()
    memories.looks_per_run = looks
    transport = HostileTransport(Endpoint(CONFIGURATION, memories), seed, rate)
    patience = replace(HASTY, window_bytes=window, receive_bytes=receive)
    device = LinkDevice(transport, configuration=CONFIGURATION, patience=patience)
    choose = random.Random(seed)
    images = [choose.randbytes(IMAGE) for _ in range(9)]
    expected = [bytes(value ^ 0xFF for value in image[:32]) for image in images]
    found: list[bytes | None] = []
    try:
        requests = [
            submit(device, number % 2, image, None if number == 0 else 1 - number % 2)
            for number, image in enumerate(images)
        ][1:]
        last = Region(address=(len(images) - 1) % 2 * PLACE + IMAGE, run_bytes=32, count=32)
        requests.append(device.submit(device.get(last, waiting=True)))
        for request in requests:
            try:
                found.append(device.answer(request))
            except LostAnswerError:
                found.append(None)
    except LinkError as error:
        assert rate and error.code in ("NO_ANSWER", "SESSION_LOST")
    assert not memories.broken
    assert all(answer in (None, right) for answer, right in zip(found, expected, strict=False))
    if not rate:
        assert found == expected
        assert len(memories.runs) == len(images)
        # one of them is the session's
        assert device.round_trips == 2 or window < 1 << 16 or receive is not None or looks


def test_a_refused_request_takes_all_behind_it_along() -> None:
    """Nothing behind it is executed, each is told, and the device is of use again."""
    device, memories = _device()
    beyond = Region(address=(1 << 14) - 10, run_bytes=20, count=20)
    device.submit_put(beyond, bytes(20))
    request = submit(device, 1, bytes(IMAGE), before=0)
    with pytest.raises(LinkError, match="BAD_ADDRESS: the device refused PUT"):
        device.answer(request)
    assert not memories.runs
    device.write(Space.ACTIVATIONS, 0, b"well")
    assert device.read(0, 4) == b"well"


def test_the_error_of_a_silent_request_comes_with_the_next_call() -> None:
    device, _ = _device()
    device.submit_put(Region(address=(1 << 14) - 10, run_bytes=20), bytes(20))
    with pytest.raises(LinkError, match="BAD_ADDRESS: the device refused PUT"):
        device.finish()
    device.finish()
    assert device.read(0, 4) == bytes(4)


def test_a_run_that_never_ends_is_told() -> None:
    memories = Inverter()
    memories.looks_per_run = 1 << 30
    transport = LoopbackTransport(Endpoint(CONFIGURATION, memories))
    patience = replace(HASTY, run_seconds=0.05)
    device = LinkDevice(transport, configuration=CONFIGURATION, patience=patience)
    submit(device, 0, bytes(IMAGE), None)
    request = submit(device, 1, bytes(IMAGE), before=0)
    with pytest.raises(LinkError, match="RUN_TIMEOUT: the run must end within 0.05 s"):
        device.answer(request)
    device.reset()
    assert not device.status().running
    assert not memories.broken


def test_a_region_is_described_once() -> None:
    device, _ = _device()
    for _ in range(5):
        device.submit_put(Region(address=0, run_bytes=8), bytes(8))
    device.finish()
    once = device.bytes_up
    device.submit_put(Region(address=0, run_bytes=8), bytes(8))
    device.submit(device.get(Region(address=0, run_bytes=8, count=8)))
    device.finish()
    assert device.bytes_up - once == (9 + 1 + 8) + (9 + 16) + (9 + 1)


class EndlessTransport:
    """Gives bytes for ever, of one value, at some pace; or none."""

    def __init__(self, value: int | None) -> None:
        self._value = value

    def send(self, data: bytes) -> None:
        pass

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        time.sleep(min(timeout_seconds, 0.001))
        return b"" if self._value is None else bytes([self._value]) * count

    def close(self) -> None:
        pass


class BusyTransport(LoopbackTransport):
    """A machine so busy that answers are looked at long after they came."""

    def send(self, data: bytes) -> None:
        super().send(data)
        time.sleep(0.03)


def test_answers_count_however_late_they_are_looked_at() -> None:
    patience = Patience(timeout_seconds=0.01, retries=0, silence_seconds=0.0)
    memories = Memories()
    transport = BusyTransport(Endpoint(CONFIGURATION, memories))
    device = LinkDevice(transport, configuration=CONFIGURATION, patience=patience)
    data = bytes(range(200))
    device.write(Space.ACTIVATIONS, 7, data)
    assert device.read(7, len(data)) == data
    device.run((0, 0))
    assert memories.runs == [(0, 0, True)]


@pytest.mark.parametrize("value", [None, 0, 0x5A, 0xFF])
def test_no_line_holds_the_host_for_ever(value: int | None) -> None:
    patience = Patience(timeout_seconds=0.02, retries=3, silence_seconds=0.001)
    device = LinkDevice(EndlessTransport(value), configuration=CONFIGURATION, patience=patience)
    begin = time.monotonic()
    with pytest.raises(LinkError, match="NO_ANSWER: the device did not answer OPEN"):
        device.status()
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"timeout_seconds": 0.0}, "timeout_seconds must be above 0, not 0.0"),
        ({"retries": -1}, "retries must be at least 0, not -1"),
        ({"silence_seconds": -1.0}, "silence_seconds must be at least 0, not -1.0"),
        ({"wait_seconds": -1.0}, "wait_seconds must be at least 0, not -1.0"),
        ({"run_seconds": 0.0}, "run_seconds must be above 0, not 0.0"),
        ({"window_bytes": 0}, "window_bytes must be at least 1, not 0"),
        ({"receive_bytes": -1}, "receive_bytes must be at least 0, not -1"),
    ],
)
def test_patience_is_checked(fields: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Patience(**fields)


def test_every_code_is_documented() -> None:
    table = (Path(__file__).parents[3] / "docs" / "reference" / "link.md").read_text()
    for code, advice in CODES.items():
        assert f"| `{code}` | {advice} |" in table
    sources = Path(slipstick.__file__).parent.rglob("*.py")
    raised = {
        code
        for source in sources
        for code in re.findall(r'LinkError\(\s*"(\w+)"', source.read_text())
    }
    refusals = {status.name for status in Status} - {"OK", "BAD_CRC"}
    # how a list in DRAM ends
    ends = {status.name for status in DmaStatus} - {"OK"}
    assert raised | refusals | ends == set(CODES)
    with pytest.raises(ValueError, match="the code of a link error must be one of .* not 'ODD'"):
        LinkError("ODD", "an error")
