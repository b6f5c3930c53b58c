"""The golden endpoint: every rule of the protocol, and frames cut and soiled in every way."""

import itertools
import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    AFTER,
    CONTINUES,
    REGIONS,
    REQUEST_START,
    RESPONSE_START,
    SEQUENCE_NUMBERS,
    SILENT,
    UNORDERED,
    WAITING,
    Command,
    DeviceStatus,
    Region,
    Space,
    Status,
    encode,
    pack_status,
    session_of,
    unpack_status,
)
from slipstick_rtl.link.spaces import spaces_of
from slipstick_sim.benches.stimulus.random_regions import random_region, readable_bytes
from slipstick_sim.benches.stimulus.random_requests import RequestSource
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

CONFIGURATION = Configuration(
    rows=16,
    columns=16,
    lanes=8,
    payload_bytes=256,
    activation_bytes=1 << 12,
    weight_bytes=1 << 18,
    instruction_words=1 << 13,
)
COMPACT = Configuration(
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    payload_bytes=256,
    activation_bytes=1 << 12,
    weight_bytes=1 << 14,
    parameter_words=512,
    instruction_words=1 << 13,
)
NINTH = Configuration(
    rows=16,
    columns=8,
    weight_rows=4,
    ninth_bits=1,
    payload_bytes=256,
    activation_bytes=1 << 12,
    weight_bytes=1 << 14,
    instruction_words=1 << 13,
)
"""Its weight words go over the link with their ninth bits."""


MEMORY = CONFIGURATION.activation_bytes
INPUT = Region(address=16, run_bytes=3, runs=2, gap=1, count=6)
"""Bytes 16..18 and 20..22."""


class Recorder:
    """A backend that notes what it is told; ``ends``: a run that is waited for ends."""

    def __init__(self, running: bool = False, ends: bool = True) -> None:
        self.running, self.ends, self.bad = running, ends, False
        self.calls: list[tuple[Any, ...]] = []

    def write(self, space: Space, address: int, data: bytes) -> None:
        if data:
            self.calls.append(("write", space, address, data))

    def read(self, address: int, count: int) -> bytes:
        return bytes((address + index) % 256 for index in range(count))

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        self.calls.append(("run", *pcs, clear))
        self.running = True

    def wait(self) -> bool:
        self.calls.append(("wait",))
        self.running = self.running and not self.ends
        return self.ends

    def status(self) -> DeviceStatus:
        return DeviceStatus(self.running, self.bad, (1, 2), 3, (4, 5))

    def reset(self) -> None:
        self.calls.append(("reset",))
        self.running = False


class Device:
    """An endpoint and its backend; requests get the number that is next, unless they have one."""

    def __init__(self, configuration: Configuration = CONFIGURATION, **backend: bool) -> None:
        self.backend = Recorder(**backend)
        self.endpoint = Endpoint(configuration, self.backend)
        self.calls = self.backend.calls

    @property
    def next(self) -> int:
        return self.endpoint.next_sequence

    def ask(self, command: int, payload: bytes = b"", number: int | None = None) -> bytes:
        """Sends a request; returns the bytes of the answer."""
        sequence = self.next if number is None else number % SEQUENCE_NUMBERS
        return self.endpoint.feed(encode(REQUEST_START, command, sequence, payload))

    def status(self, command: int, payload: bytes = b"", number: int | None = None) -> Status:
        """The status of the answer, whose number is the request's."""
        sequence = self.next if number is None else number % SEQUENCE_NUMBERS
        answer = self.ask(command, payload, number)
        assert answer[2] == sequence
        return Status(answer[1])

    def data(self, command: int, payload: bytes = b"", number: int | None = None) -> bytes:
        """The payload of an answer that is OK."""
        sequence = self.next if number is None else number % SEQUENCE_NUMBERS
        answer = self.ask(command, payload, number)
        assert answer == _response(Status.OK, answer[5:-4], sequence)
        return answer[5:-4]


def _response(status: Status, payload: bytes = b"", sequence: int = 0) -> bytes:
    return encode(RESPONSE_START, status, sequence, payload)


def _write(space: int, address: int, count: int) -> tuple[int, bytes]:
    return Command.WRITE, struct.pack("<BHB", space, address, 0) + bytes(count)


def _read(space: int, address: int, count: int) -> tuple[int, bytes]:
    return Command.READ, struct.pack("<BHBH", space, address, 0, count)


def _run(matrix_pc: int, post_pc: int) -> tuple[int, bytes]:
    return Command.RUN, struct.pack("<BHH", 1, matrix_pc, post_pc)


def _run_get(region: int, matrix_pc: int = 1, post_pc: int = 2) -> tuple[int, bytes]:
    return Command.RUN_GET, struct.pack("<BHH", region, matrix_pc, post_pc)


def _define(number: int, region: Region = INPUT) -> tuple[int, bytes]:
    return Command.DEFINE, bytes([number]) + region.pack()


BROKEN = [
    (0, b"", Status.BAD_COMMAND),
    (13, bytes(3), Status.BAD_COMMAND),
    (63, b"", Status.BAD_COMMAND),
    (13, bytes(257), Status.BAD_LENGTH),
    (Command.OPEN, bytes(3), Status.BAD_LENGTH),
    (Command.IDENTIFY, b"x", Status.BAD_LENGTH),
    (Command.STATUS, b"x", Status.BAD_LENGTH),
    (Command.RESET, b"x", Status.BAD_LENGTH),
    (Command.WRITE, bytes(3), Status.BAD_LENGTH),
    (Command.READ, bytes(5), Status.BAD_LENGTH),
    (Command.READ, bytes(7), Status.BAD_LENGTH),
    (Command.RUN, bytes(4), Status.BAD_LENGTH),
    (Command.DEFINE, bytes(15), Status.BAD_LENGTH),
    (Command.DEFINE, bytes(17), Status.BAD_LENGTH),
    (Command.PUT, b"", Status.BAD_LENGTH),
    (Command.GET, b"", Status.BAD_LENGTH),
    (Command.GET, bytes(2), Status.BAD_LENGTH),
    (Command.RUN_GET, bytes(4), Status.BAD_LENGTH),
    (*_write(4, 0, 1), Status.BAD_SPACE),
    (*_read(Space.WEIGHTS, 0, 16), Status.BAD_SPACE),
    (Command.DEFINE, bytes([REGIONS]) + bytes(15), Status.BAD_SPACE),
    (Command.DEFINE, bytes([0x80]) + bytes(15), Status.BAD_SPACE),
    (Command.PUT, bytes([REGIONS]), Status.BAD_SPACE),
    (Command.GET, bytes([REGIONS]), Status.BAD_SPACE),
    (Command.GET, bytes([0x80]), Status.BAD_SPACE),
    (*_run_get(REGIONS), Status.BAD_SPACE),
    (*_write(Space.INSTRUCTIONS, 0, 5), Status.BAD_LENGTH),
    (*_write(Space.PARAMETERS, 0, 8), Status.BAD_LENGTH),
    (*_read(Space.ACTIVATIONS, 0, 257), Status.BAD_LENGTH),
    (Command.DEFINE, b"\0\1\1" + bytes(13), Status.BAD_LENGTH),
    (*_write(Space.PARAMETERS, 0, 9), Status.BAD_ADDRESS),
    (*_write(Space.WEIGHTS, 1 << 14, 16), Status.BAD_ADDRESS),
    (*_read(Space.ACTIVATIONS, MEMORY - 1, 2), Status.BAD_ADDRESS),
    (*_run(1 << 13, 0), Status.BAD_ADDRESS),
    (*_run(0, 1 << 13), Status.BAD_ADDRESS),
    (*_run_get(0, 1 << 13), Status.BAD_ADDRESS),
    (*_run_get(AFTER, 0, 1 << 13), Status.BAD_ADDRESS),
    (Command.PUT, bytes([CONTINUES]), Status.OUT_OF_ORDER),
]


@pytest.mark.parametrize(("command", "payload", "status"), BROKEN)
def test_what_breaks_a_rule_changes_nothing(command: int, payload: bytes, status: Status) -> None:
    for flags in (0, SILENT, WAITING):
        device = Device()
        assert device.status(command | flags, payload) is status
        assert not device.calls
        assert device.next == 0


@pytest.mark.parametrize(
    ("configuration", "request_", "status"),
    [
        (COMPACT, _write(Space.PARAMETERS, 0, 10), Status.BAD_LENGTH),
        (COMPACT, _write(Space.PARAMETERS, 511, 18), Status.BAD_ADDRESS),
        (COMPACT, _write(Space.WEIGHTS, 1 << 11, 8), Status.BAD_ADDRESS),
        (NINTH, _write(Space.WEIGHTS, 0, 32), Status.BAD_LENGTH),
        (NINTH, _write(Space.WEIGHTS, 511, 72), Status.BAD_ADDRESS),
    ],
)
def test_what_breaks_a_rule_of_other_memories(
    configuration: Configuration, request_: tuple[int, bytes], status: Status
) -> None:
    device = Device(configuration)
    assert device.status(*request_) is status
    assert not device.calls


@pytest.mark.parametrize(
    ("configuration", "units"),
    [
        (CONFIGURATION, {Space.INSTRUCTIONS: 4, Space.WEIGHTS: 16, Space.ACTIVATIONS: 1}),
        (NINTH, {Space.INSTRUCTIONS: 4, Space.WEIGHTS: 36, Space.ACTIVATIONS: 1}),
        (COMPACT, dict(zip(spaces_of(COMPACT), (4, 8, 9, 1), strict=True))),
    ],
    ids=["pipelined", "ninth bits", "compact"],
)
def test_what_is_allowed_while_running(
    configuration: Configuration, units: dict[Space, int]
) -> None:
    """``units``: bytes of a unit of each space that has a memory."""
    device = Device(configuration, running=True)
    short = _write(Space.WEIGHTS, 0, units[Space.WEIGHTS] - 1)
    assert device.status(*short) is Status.BAD_LENGTH
    for starts in (_run(0, 0), _run_get(0), _run_get(AFTER)):
        assert device.status(*starts) is Status.BUSY
    assert not device.calls
    writes = [("write", space, 1, bytes(unit)) for space, unit in units.items()]
    for _, space, address, data in writes:
        assert device.status(*_write(space, address, len(data))) is Status.OK
    assert device.calls == writes
    assert device.data(*_read(Space.ACTIVATIONS, 3, 2)) == b"\3\4"
    expected = DeviceStatus(True, False, (1, 2), 3, (4, 5))
    assert unpack_status(device.data(Command.STATUS)) == (expected, device.next)
    identity = Identity.of(configuration)
    assert device.data(Command.IDENTIFY) == identity.pack()
    assert Identity.unpack(identity.pack()) == identity
    assert device.status(*_define(1)) is device.status(Command.PUT, b"\1abc") is Status.OK
    assert device.data(Command.GET, b"\1") == bytes([16, 17, 18, 20, 21, 22])
    assert device.status(Command.RESET) is Status.OK


# ---- order ----


def test_requests_are_executed_in_the_order_of_their_numbers() -> None:
    device = Device()
    request = _write(Space.ACTIVATIONS, 0, 1)
    for number in range(2 * SEQUENCE_NUMBERS + 3):
        for wrong in (number + 1, number + 7, number - 2):
            assert device.status(*request, wrong) is Status.OUT_OF_ORDER
        assert device.status(*request, number) is Status.OK
    assert len(device.calls) == 2 * SEQUENCE_NUMBERS + 3


def test_nothing_behind_a_refused_request_is_executed() -> None:
    device = Device()
    assert device.status(*_write(Space.ACTIVATIONS, 0, 1), 0) is Status.OK
    assert device.status(*_write(Space.ACTIVATIONS, MEMORY, 1), 1) is Status.BAD_ADDRESS
    assert device.status(*_run(1, 2), 2) is Status.OUT_OF_ORDER
    assert device.status(*_write(Space.ACTIVATIONS, 1, 1), 1) is Status.OK
    assert device.status(*_run(1, 2), 2) is Status.OK
    assert [call[0] for call in device.calls] == ["write", "write", "run"]


@pytest.mark.parametrize("command", sorted(UNORDERED))
def test_some_commands_have_no_place_in_the_order(command: Command) -> None:
    device = Device()
    device.status(*_write(Space.ACTIVATIONS, 0, 0))
    payload = bytes(4) if command is Command.OPEN else b""
    for number in (200, 3, 1, 0):
        assert device.status(command, payload, number) is Status.OK
        assert device.next == (number + 1 if command is Command.OPEN else 1)


@pytest.mark.parametrize(
    ("request_", "effects"),
    [
        (_write(Space.ACTIVATIONS, 0, 3), 1),
        (_run(1, 2), 1),
        (_run_get(1), 1),
        ((Command.PUT, b"\1abcd"), 2),
        (_define(2), 0),
        (_read(Space.ACTIVATIONS, 5, 3), 0),
        ((Command.GET, b"\1"), 0),
    ],
)
def test_a_repeated_request_is_answered_again_and_has_no_second_effect(
    request_: tuple[int, bytes], effects: int
) -> None:
    """Also while its own run goes on."""
    device = Device()
    device.ask(*_define(1))
    first = device.ask(*request_)
    assert first[1] == Status.OK
    assert len(device.calls) == effects
    number = device.next - 1
    for _ in range(3):
        assert device.ask(*request_, number) == first
        device.ask(Command.STATUS)
    assert len(device.calls) == effects
    assert device.next == number + 1


def test_a_number_is_a_repeat_only_until_the_next_request() -> None:
    device = Device()
    device.ask(*_write(Space.ACTIVATIONS, 0, 1))
    device.ask(*_write(Space.ACTIVATIONS, 1, 1))
    assert device.status(*_write(Space.ACTIVATIONS, 0, 1), 0) is Status.OUT_OF_ORDER
    # and OPEN has a number of its own
    assert device.status(Command.OPEN, bytes(4), 77) is Status.OK
    assert device.status(*_write(Space.ACTIVATIONS, 0, 1), 77) is Status.OK
    assert device.calls[-1] == ("reset",), "a repeat of the OPEN's number"
    assert device.status(*_write(Space.ACTIVATIONS, 0, 1), 78) is Status.OK
    assert device.calls[-1] == ("write", Space.ACTIVATIONS, 0, b"\0")


def test_the_status_tells_the_next_number() -> None:
    device = Device()
    idle = DeviceStatus(False, False, (1, 2), 3, (4, 5))
    for number in range(3):
        assert device.data(Command.STATUS, number=99) == pack_status(idle, number)
        device.ask(*_write(Space.ACTIVATIONS, 0, 0))
        device.ask(Command.PUT, b"")
    device.ask(Command.OPEN, bytes(4), 255)
    assert device.data(Command.STATUS, number=99) == pack_status(idle, 0)


# ---- flags ----


def test_a_silent_request_is_answered_only_if_it_is_not_ok() -> None:
    device = Device()
    requests = [
        *(_write(space, 0, 0) for space in spaces_of(CONFIGURATION)),
        _read(Space.ACTIVATIONS, 0, 4),
        _define(1),
        (Command.PUT, b"\1ab"),
        (Command.GET, b"\1"),
        (Command.STATUS, b""),
        (Command.IDENTIFY, b""),
        (Command.RESET, b""),
        _run_get(1),
        (Command.RESET, b""),
        _run(1, 2),
        (Command.OPEN, bytes(4)),
    ]
    for command, payload in requests:
        assert device.ask(command | SILENT, payload) == b""
    assert device.calls.count(("run", 1, 2, True)) == 2
    for command, payload, status in BROKEN:
        assert device.status(command | SILENT, payload) is status
    spoilt = bytearray(encode(REQUEST_START, Command.STATUS | SILENT, 5))
    spoilt[-1] ^= 1
    assert device.endpoint.feed(bytes(spoilt)) == _response(Status.BAD_CRC, sequence=5)


@pytest.mark.parametrize(
    "request_",
    [
        _write(Space.ACTIVATIONS, 0, 1),
        _run(1, 2),
        _run_get(0),
        (Command.GET, b"\0"),
        (Command.STATUS, b""),
        (Command.IDENTIFY, b""),
    ],
)
def test_a_waiting_request_waits_for_the_end_of_a_run(request_: tuple[int, bytes]) -> None:
    command, payload = request_
    device = Device(running=True)
    assert device.status(command | WAITING, payload) is Status.OK
    assert device.calls[0] == ("wait",)
    patient = Device()
    assert patient.status(command | WAITING, payload) is Status.OK
    assert ("wait",) not in patient.calls
    endless = Device(running=True, ends=False)
    assert endless.status(command | WAITING, payload) is Status.BUSY
    assert endless.calls == [("wait",)]
    assert endless.next == 0


def test_what_is_out_of_order_or_unknown_does_not_wait() -> None:
    device = Device(running=True)
    assert device.status(Command.GET | WAITING, b"\0", 5) is Status.OUT_OF_ORDER
    assert device.status(40 | WAITING) is Status.BAD_COMMAND
    assert not device.calls
    assert device.status(Command.GET | WAITING, b"") is Status.BAD_LENGTH
    assert device.calls == [("wait",)], "all other rules come after the wait"


# ---- regions ----


def _bytes_of(region: Region, count: int) -> list[int]:
    """The addresses of its first bytes."""
    every = (start + byte for start, run in region.addresses() for byte in range(run))
    return list(itertools.islice(every, count))


def test_regions_are_remembered() -> None:
    device = Device()
    for number in range(REGIONS):
        device.ask(*_define(number, Region(address=100 * number, run_bytes=4, count=number % 4)))
    device.ask(Command.RESET)
    device.ask(Command.OPEN, bytes(4), 3)
    for number in range(REGIONS):
        expected = bytes((100 * number + k) % 256 for k in range(number % 4))
        assert device.data(Command.GET, bytes([number])) == expected


def test_a_put_goes_on_where_the_one_before_ended() -> None:
    device = Device()
    device.ask(*_define(1))
    device.ask(*_define(2, Region(address=900, run_bytes=9)))
    assert device.status(Command.PUT, b"\1ab") is Status.OK
    device.ask(Command.STATUS)
    device.ask(Command.IDENTIFY)
    device.ask(Command.RESET)
    # whatever number stands there
    assert device.status(Command.PUT, bytes([CONTINUES | 2]) + b"cd") is Status.OK
    assert device.status(Command.PUT, bytes([CONTINUES])) is Status.OK
    assert device.status(Command.PUT, bytes([CONTINUES | 1]) + b"ef") is Status.OK
    written = {
        address + k: data[k]
        for call, _, address, data in filter(lambda call: call[0] == "write", device.calls)
        for k in range(len(data))
    }
    assert written == dict(zip(_bytes_of(INPUT, 6), b"abcdef", strict=True))


@pytest.mark.parametrize(
    "between",
    [
        _write(Space.ACTIVATIONS, 0, 0),
        _write(Space.ACTIVATIONS, MEMORY, 1),
        _define(1),
        (Command.GET, b"\0"),
        (Command.GET, b""),
        (Command.OPEN, bytes(4)),
        (Command.OPEN, b""),
        (Command.PUT, b"\1" + bytes(7)),
        _run(1 << 13, 0),
    ],
)
def test_nothing_of_the_order_may_come_between(between: tuple[int, bytes]) -> None:
    device = Device()
    device.ask(*_define(1))
    device.ask(Command.PUT, b"\1ab")
    device.ask(*between)
    device.calls.clear()
    assert device.status(Command.PUT, bytes([CONTINUES | 1]) + b"c") is Status.OUT_OF_ORDER
    assert not device.calls


def test_what_never_had_its_turn_may_come_between() -> None:
    device = Device()
    device.ask(*_define(1))
    device.ask(Command.PUT, b"\1ab")
    assert device.status(40) is Status.BAD_COMMAND
    assert device.status(Command.GET, b"\0", device.next + 1) is Status.OUT_OF_ORDER
    assert device.status(Command.PUT, b"") is Status.BAD_LENGTH
    assert device.status(Command.PUT, bytes([REGIONS])) is Status.BAD_SPACE
    device.backend.running, device.backend.ends = True, False
    assert device.status(Command.GET | WAITING, b"\0") is Status.BUSY
    assert device.status(Command.PUT, b"\1ab", device.next - 1) is Status.OK
    assert device.status(Command.PUT, bytes([CONTINUES]) + b"c") is Status.OK
    assert device.calls[-1] == ("write", Space.ACTIVATIONS, 18, b"c")


@pytest.mark.parametrize(
    ("region", "data", "places"),
    [
        (INPUT, b"abcdefg", _bytes_of(INPUT, 6)),
        (Region(address=MEMORY - 2, run_bytes=8), b"abc", [MEMORY - 2, MEMORY - 1]),
        (Region(address=MEMORY, run_bytes=8), b"a", []),
        (Region(address=MEMORY - 3, run_bytes=2, runs=2, gap=9), b"abc", [MEMORY - 3, MEMORY - 2]),
    ],
)
def test_bytes_before_one_that_has_no_place_are_written(
    region: Region, data: bytes, places: list[int]
) -> None:
    device = Device()
    device.ask(*_define(1, region))
    assert device.status(Command.PUT, b"\1" + data) is Status.BAD_ADDRESS
    written = [
        (address + k, content[k])
        for _, _, address, content in device.calls
        for k in range(len(content))
    ]
    assert written == list(zip(places, data[: len(places)], strict=True))
    assert device.next == 1, "it does not count"


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 32), cuts=st.lists(st.integers(0, 99), max_size=5))
def test_any_region_takes_and_gives_its_bytes(seed: int, cuts: list[int]) -> None:
    """However a tensor is cut into PUTs, its bytes stand where the region says."""
    generator = random.Random(seed)
    region = random_region(generator, CONFIGURATION)
    size = min(readable_bytes(region, MEMORY), 200)
    region = Region(**{**vars(region), "count": size})
    core = GoldenCore(CONFIGURATION)
    endpoint = Endpoint(CONFIGURATION, core)

    def ask(command: int, payload: bytes) -> bytes:
        sequence = endpoint.next_sequence
        answer = endpoint.feed(encode(REQUEST_START, command, sequence, payload))
        assert answer == _response(Status.OK, answer[5:-4], sequence)
        return answer[5:-4]

    content = generator.randbytes(size)
    ask(*_define(5, region))
    ends = sorted({min(cut, size) for cut in cuts} | {size})
    for begin, end in zip([0, *ends], ends, strict=False):
        ask(Command.PUT, bytes([5 | (CONTINUES if begin else 0)]) + content[begin:end])
    assert ask(Command.GET, b"\5") == content
    expected = dict(zip(_bytes_of(region, size), content, strict=True))
    memory = core.activations[0].view("uint8")
    assert {address: int(memory[address]) for address in expected} == expected
    assert int((memory != 0).sum()) == sum(map(bool, expected.values()))


# ---- runs ----


def test_a_result_is_read_while_the_next_run_goes_on() -> None:
    device = Device()
    device.ask(*_define(1))
    result = bytes([16, 17, 18, 20, 21, 22])
    assert device.data(*_run_get(1)) == result
    assert device.calls == [("run", 1, 2, True)]
    assert device.data(*_run_get(1), device.next - 1) == result
    assert device.status(*_run_get(1)) is Status.BUSY
    assert device.data(Command.RUN_GET | WAITING, _run_get(1)[1]) == result
    assert device.calls == [("run", 1, 2, True), ("wait",), ("run", 1, 2, True)]


def test_a_result_is_read_after_the_run() -> None:
    device = Device()
    device.ask(*_define(1))
    for number in (device.next, device.next):
        assert device.data(*_run_get(1 | AFTER), number) == bytes([16, 17, 18, 20, 21, 22])
        assert device.calls == [("run", 1, 2, True), ("wait",)]


def test_a_run_that_does_not_end_counts_as_executed() -> None:
    device = Device(ends=False)
    device.ask(*_define(1))
    number = device.next
    for _ in range(2):
        assert device.status(*_run_get(1 | AFTER), number) is Status.BUSY
        assert device.next == number + 1
    assert device.calls == [("run", 1, 2, True), ("wait",), ("wait",)]
    device.backend.running = False
    assert device.data(Command.GET, b"\1") == bytes([16, 17, 18, 20, 21, 22])


def test_a_bad_instruction_leaves_no_result() -> None:
    device = Device()
    device.backend.bad = True
    for request in ((Command.GET, b"\0"), _run_get(0)):
        assert device.status(*request) is Status.BAD_INSTRUCTION
    assert not device.calls
    assert device.next == 0
    assert device.status(*_run_get(AFTER)) is Status.BAD_INSTRUCTION
    assert device.next == 1, "it has been run"
    assert device.data(*_read(Space.ACTIVATIONS, 0, 1)) == b"\0"


# ---- sessions and frames ----


def test_a_session_seals_all_frames_but_some() -> None:
    device = Device()
    seal = 0x12345678
    session = session_of(seal)
    opened = device.ask(Command.OPEN, session.to_bytes(4, "little"), 9)
    assert opened == encode(RESPONSE_START, Status.OK, 9, b"", session)
    request = encode(REQUEST_START, Command.WRITE, 10, b"\3\0\0\0x", seal)
    assert device.endpoint.feed(request) == encode(RESPONSE_START, Status.OK, 10, b"", session)
    for wrong in (0, seal ^ 1):
        other = encode(REQUEST_START, Command.STATUS, 11, b"", wrong)
        assert device.endpoint.feed(other) == _response(Status.BAD_CRC, sequence=11)
    assert device.ask(Command.IDENTIFY)[1] == Status.OK
    assert device.ask(Command.OPEN | SILENT, bytes(4), 20) == b""
    assert device.status(Command.STATUS) is Status.OK


def test_answers_do_not_depend_on_how_the_bytes_are_cut() -> None:
    source = RequestSource(CONFIGURATION, seed=1)
    stream = b"".join(source.draw(0.4) for _ in range(300))
    whole = Device().endpoint.feed(stream)
    endpoint, generator, answers, place = Device().endpoint, random.Random(2), b"", 0
    while place < len(stream):
        step = generator.choice([1, 2, 7, 400])
        answers += endpoint.feed(stream[place : place + step])
        place += step
    assert answers == whole


def test_a_flipped_bit_changes_nothing() -> None:
    frame = encode(REQUEST_START, Command.WRITE, 0, _write(Space.ACTIVATIONS, 0, 3)[1])
    for bit in range(8 * len(frame)):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        device = Device()
        device.endpoint.feed(bytes(spoilt))
        assert not device.calls
        assert device.next == 0
        device.endpoint.time_out()
        assert device.endpoint.feed(frame) == _response(Status.OK)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1 << 32), stutter=st.integers(1, 3))
def test_repeats_and_strays_change_nothing(seed: int, stutter: int) -> None:
    """A host that sends each request several times, with others of old and far numbers between."""
    generator = random.Random(seed)
    plain, noisy = Device(), Device()
    for device in (plain, noisy):
        device.ask(*_define(1))
    for _ in range(40):
        command, payload = generator.choice(
            [_write(Space.ACTIVATIONS, 5, 2), _define(1), (Command.PUT, b"\1ab"), _run_get(1)]
        )
        plain.backend.running = noisy.backend.running = False
        expected = plain.ask(command, payload)
        number = noisy.next
        for _ in range(stutter):
            assert noisy.ask(command, payload, number) == expected
            stray = (number + generator.randrange(2, SEQUENCE_NUMBERS)) % SEQUENCE_NUMBERS
            assert noisy.status(*_write(Space.WEIGHTS, 0, 16), stray) is Status.OUT_OF_ORDER
    assert noisy.calls == plain.calls


def test_the_golden_core_is_a_backend() -> None:
    endpoint = Endpoint(CONFIGURATION, GoldenCore(CONFIGURATION))
    command, payload = _write(Space.ACTIVATIONS, 7, 4)
    assert endpoint.feed(encode(REQUEST_START, command, 0, payload)) == _response(Status.OK)
    command, payload = _read(Space.ACTIVATIONS, 7, 4)
    answer = endpoint.feed(encode(REQUEST_START, command, 1, payload))
    assert answer == _response(Status.OK, bytes(4), 1)


def test_what_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="an identity must be 12 bytes, not 3"):
        Identity.unpack(bytes(3))
    with pytest.raises(ValueError, match="a status response must be"):
        unpack_status(bytes(3))
    with pytest.raises(ValueError, match="a region must be 15 bytes, not 3"):
        Region.unpack(bytes(3))


@pytest.mark.parametrize(
    "wrong", [{"address": 1 << 24}, {"run_bytes": 0}, {"runs": 1 << 17}, {"count": 4}, {"gap": -1}]
)
def test_a_region_has_bounds(wrong: dict[str, int]) -> None:
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f"{name} must be within"):
        Region(**{"address": 0, "run_bytes": 3, **wrong})
    assert Region.unpack(INPUT.pack()) == INPUT
