"""The golden endpoint: every status by its rule, and frames cut and soiled in every way."""

import random
import struct
from collections.abc import Sequence

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    REQUEST_START,
    RESPONSE_START,
    Command,
    DeviceStatus,
    Space,
    Status,
    encode,
)
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


class Recorder:
    """A backend that notes what it is told."""

    def __init__(self, running: bool = False) -> None:
        self.running = running
        self.calls: list[Sequence[object]] = []

    def write(self, space: Space, address: int, data: bytes) -> None:
        self.calls.append(("write", space, address, data))

    def read(self, address: int, count: int) -> bytes:
        return bytes((address + index) % 256 for index in range(count))

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        self.calls.append(("run", *pcs, clear))

    def status(self) -> DeviceStatus:
        return DeviceStatus(self.running, False, (1, 2), 3, (4, 5))

    def reset(self) -> None:
        self.calls.append(("reset",))


def _request(command: int, payload: bytes = b"", sequence: int = 9) -> bytes:
    return encode(REQUEST_START, command, sequence, payload)


def _response(status: Status, payload: bytes = b"", sequence: int = 9) -> bytes:
    return encode(RESPONSE_START, status, sequence, payload)


def _write(space: int, address: int, count: int) -> bytes:
    return _request(Command.WRITE, struct.pack("<BHB", space, address, 0) + bytes(count))


def _read(space: int, address: int, count: int) -> bytes:
    return _request(Command.READ, struct.pack("<BHBH", space, address, 0, count))


def _run(matrix_pc: int, post_pc: int, sequence: int = 9) -> bytes:
    return _request(Command.RUN, struct.pack("<BHH", 1, matrix_pc, post_pc), sequence)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (_request(0), Status.BAD_COMMAND),
        (_request(8, bytes(3)), Status.BAD_COMMAND),
        (_request(8, bytes(257)), Status.BAD_LENGTH),
        (_request(Command.OPEN, bytes(3)), Status.BAD_LENGTH),
        (_request(Command.IDENTIFY, b"x"), Status.BAD_LENGTH),
        (_request(Command.WRITE, bytes(3)), Status.BAD_LENGTH),
        (_request(Command.READ, bytes(5)), Status.BAD_LENGTH),
        (_request(Command.READ, bytes(7)), Status.BAD_LENGTH),
        (_request(Command.RUN, bytes(4)), Status.BAD_LENGTH),
        (_write(4, 0, 1), Status.BAD_SPACE),
        (_read(Space.WEIGHTS, 0, 16), Status.BAD_SPACE),
        (_write(Space.INSTRUCTIONS, 0, 5), Status.BAD_LENGTH),
        (_write(Space.PARAMETERS, 0, 8), Status.BAD_LENGTH),
        (_write(Space.PARAMETERS, 0, 9), Status.BAD_ADDRESS),
        (_read(Space.ACTIVATIONS, 0, 257), Status.BAD_LENGTH),
        (_write(Space.WEIGHTS, 1 << 14, 16), Status.BAD_ADDRESS),
        (_read(Space.ACTIVATIONS, (1 << 12) - 1, 2), Status.BAD_ADDRESS),
        (_run(1 << 13, 0), Status.BAD_ADDRESS),
        (_run(0, 1 << 13), Status.BAD_ADDRESS),
    ],
)
def test_what_breaks_a_rule_changes_nothing(request_bytes: bytes, status: Status) -> None:
    backend = Recorder()
    assert Endpoint(CONFIGURATION, backend).feed(request_bytes) == _response(status)
    assert not backend.calls


@pytest.mark.parametrize(
    ("configuration", "request_bytes", "status"),
    [
        (COMPACT, _write(Space.PARAMETERS, 0, 10), Status.BAD_LENGTH),
        (COMPACT, _write(Space.PARAMETERS, 511, 18), Status.BAD_ADDRESS),
        (COMPACT, _write(Space.WEIGHTS, 1 << 11, 8), Status.BAD_ADDRESS),
        (NINTH, _write(Space.WEIGHTS, 0, 32), Status.BAD_LENGTH),
        (NINTH, _write(Space.WEIGHTS, 511, 72), Status.BAD_ADDRESS),
    ],
)
def test_what_breaks_a_rule_of_other_memories(
    configuration: Configuration, request_bytes: bytes, status: Status
) -> None:
    backend = Recorder()
    assert Endpoint(configuration, backend).feed(request_bytes) == _response(status)
    assert not backend.calls


@pytest.mark.parametrize(
    ("configuration", "units"),
    [
        (CONFIGURATION, {Space.INSTRUCTIONS: 4, Space.WEIGHTS: 16, Space.ACTIVATIONS: 1}),
        (NINTH, {Space.INSTRUCTIONS: 4, Space.WEIGHTS: 36, Space.ACTIVATIONS: 1}),
        (COMPACT, dict(zip(Space, (4, 8, 9, 1), strict=True))),
    ],
    ids=["pipelined", "ninth bits", "compact"],
)
def test_what_is_allowed_while_running(
    configuration: Configuration, units: dict[Space, int]
) -> None:
    """``units``: bytes of a unit of each space that has a memory."""
    backend = Recorder(running=True)
    endpoint = Endpoint(configuration, backend)
    short = _write(Space.WEIGHTS, 0, units[Space.WEIGHTS] - 1)
    assert endpoint.feed(short) == _response(Status.BAD_LENGTH)
    assert endpoint.feed(_run(0, 0)) == _response(Status.BUSY)
    assert not backend.calls
    writes = [("write", space, 1, bytes(unit)) for space, unit in units.items()]
    for _, space, address, data in writes:
        assert endpoint.feed(_write(space, address, len(data))) == _response(Status.OK)
    assert backend.calls == writes
    assert endpoint.feed(_read(Space.ACTIVATIONS, 3, 2)) == _response(Status.OK, b"\3\4")
    status = DeviceStatus(True, False, (1, 2), 3, (4, 5)).pack()
    assert endpoint.feed(_request(Command.STATUS)) == _response(Status.OK, status)
    identity = Identity.of(configuration)
    assert endpoint.feed(_request(Command.IDENTIFY)) == _response(Status.OK, identity.pack())
    assert Identity.unpack(identity.pack()) == identity
    assert endpoint.feed(_request(Command.RESET)) == _response(Status.OK)


def test_a_repeated_run_is_run_once() -> None:
    backend = Recorder()
    endpoint = Endpoint(CONFIGURATION, backend)
    for _ in range(3):
        assert endpoint.feed(_run(1, 2)) == _response(Status.OK)
        backend.running = True
        endpoint.feed(_request(Command.STATUS, sequence=10))
    assert backend.calls == [("run", 1, 2, True)]
    backend.running = False
    for forgets in (_write(Space.ACTIVATIONS, 0, 0), _request(Command.RESET)):
        backend.calls.clear()
        endpoint.feed(forgets + _run(1, 2))
        assert backend.calls[-1] == ("run", 1, 2, True)
    backend.calls.clear()
    endpoint.feed(_run(3, 4, sequence=10) + _run(1, 2) + _run(1, 2))
    assert backend.calls == [("run", 3, 4, True), ("run", 1, 2, True)]


def test_answers_do_not_depend_on_how_the_bytes_are_cut() -> None:
    source = RequestSource(CONFIGURATION, seed=1)
    stream = b"".join(source.draw(0.4) for _ in range(300))
    whole = Endpoint(CONFIGURATION, Recorder()).feed(stream)
    endpoint, generator, answers, place = (
        Endpoint(CONFIGURATION, Recorder()),
        random.Random(2),
        b"",
        0,
    )
    while place < len(stream):
        step = generator.choice([1, 2, 7, 400])
        answers += endpoint.feed(stream[place : place + step])
        place += step
    assert answers == whole


def test_a_flipped_bit_changes_nothing() -> None:
    frame = _write(Space.ACTIVATIONS, 0, 3)
    for bit in range(8 * len(frame)):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        backend = Recorder()
        endpoint = Endpoint(CONFIGURATION, backend)
        endpoint.feed(bytes(spoilt))
        assert not backend.calls
        endpoint.time_out()
        assert endpoint.feed(frame) == _response(Status.OK)


def test_the_golden_core_is_a_backend() -> None:
    endpoint = Endpoint(CONFIGURATION, GoldenCore(CONFIGURATION))
    assert endpoint.feed(_write(Space.ACTIVATIONS, 7, 4)) == _response(Status.OK)
    assert endpoint.feed(_read(Space.ACTIVATIONS, 7, 4)) == _response(Status.OK, bytes(4))


def test_a_frame_must_hold_a_unit_of_each_space() -> None:
    small = Configuration(payload_bytes=64, rows=64, columns=64, lanes=64)
    with pytest.raises(ValueError, match=r"payload_bytes must hold a unit of WEIGHTS \(64 bytes\)"):
        Endpoint(small, Recorder())
    with pytest.raises(ValueError, match="an identity must be 12 bytes, not 3"):
        Identity.unpack(bytes(3))
