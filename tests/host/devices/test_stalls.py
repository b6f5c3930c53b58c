"""When a device on a wire that cannot hold back is taken for busy, and when no more."""

import pytest
from slipstick.devices.link.request import Request
from slipstick.devices.link.stalls import Stalls
from slipstick_rtl.link.protocol import AFTER, Command

ROOM = 256
RUN_SECONDS = 0.05


class Wire:
    """300,000 bytes per second, and a clock that stands still unless told."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def seconds(self, count: int) -> float:
        return count / 300_000


def run(*, after: bool, waiting: bool = False) -> Request:
    payload = bytes((AFTER if after else 0, 0, 0, 0, 0))
    command = Command.RUN_GET if after else Command.RUN
    return Request(command, payload, answer_bytes=10, waiting=waiting, run_seconds=RUN_SECONDS)


def put(size: int, *, waiting: bool = False) -> Request:
    return Request(Command.PUT, bytes(size), silent=True, waiting=waiting)


def test_a_run_that_answers_stalls_until_its_predicted_end() -> None:
    wire = Wire()
    stalls = Stalls(wire, ROOM)
    request = run(after=True)
    assert stalls.launch(request, alone=True, sent=request.size)
    assert stalls.has_room(request.size, ROOM)
    assert not stalls.has_room(request.size, ROOM + 1)
    pause = stalls.pause()
    assert pause is not None and RUN_SECONDS < pause < 1.02 * RUN_SECONDS + 1e-3
    wire.time += pause
    # the answer is late, but the device is done
    assert stalls.has_room(request.size, 10 * ROOM) and stalls.pause() is None
    following = put(1000, waiting=True)
    assert not stalls.launch(following, alone=False, sent=request.size + following.size)


def test_bytes_that_were_lost_make_it_slower() -> None:
    wire = Wire()
    stalls = Stalls(wire, ROOM)
    pauses = []
    for _ in range(6):
        request = run(after=True)
        stalls.launch(request, alone=True, sent=request.size)
        pauses.append(stalls.pause() or 0.0)
        wire.time += 1.0
        stalls.remove(request)
        stalls.fail()
    assert pauses == sorted(pauses) and pauses[-1] > pauses[0] + 0.02
    assert pauses[-1] < RUN_SECONDS + 0.06


def test_a_long_answer_stalls_until_it_has_come() -> None:
    wire = Wire()
    stalls = Stalls(wire, ROOM)
    request = Request(Command.READ, bytes(6), answer_bytes=1000)
    assert stalls.launch(request, alone=True, sent=request.size)
    assert stalls.pause() is None and not stalls.has_room(request.size, ROOM + 1)
    stalls.remove(request)
    assert stalls.has_room(0, ROOM + 1)


def test_a_hold_stalls_no_longer_than_the_run_needs_to_come_so_far() -> None:
    wire = Wire()
    stalls = Stalls(wire, ROOM)
    begun = run(after=False)
    assert not stalls.launch(begun, alone=True, sent=begun.size)
    hold = Request(Command.HOLD, bytes(4), silent=True, waiting=True, run_seconds=0.02)
    assert stalls.launch(hold, alone=False, sent=begun.size + hold.size)
    pause = stalls.pause()
    assert pause is not None and pause == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize("room", [None, 1 << 20])
def test_a_wire_that_holds_back_never_stalls(room: int | None) -> None:
    stalls = Stalls(Wire() if room is None else object(), room)
    request = run(after=True)
    assert not stalls.launch(request, alone=True, sent=request.size)
    assert stalls.has_room(10, 1 << 30) and stalls.pause() is None
