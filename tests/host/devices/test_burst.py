"""Bursts: the same bytes on the wire as their requests one by one, whatever becomes of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slipstick.devices.link.burst import Burst, BurstLayout, Piece
from slipstick.devices.link.errors import LinkError
from slipstick.devices.link.in_flight import InFlight
from slipstick.devices.link.patience import Patience
from slipstick.devices.link.request import Request
from slipstick.devices.link.request_queue import RequestQueue
from slipstick.devices.link.stalls import Stalls
from slipstick.devices.link.transport import LoopbackTransport
from slipstick_rtl.link.protocol import SEQUENCE_NUMBERS, WAITING, Command

KINDS = (Command.PUT, Command.PUT | WAITING, Command.HOLD | WAITING, Command.WRITE)
DATA = bytes(range(200))
pieces = st.builds(
    lambda kind, head, first, size: Piece(kind=kind, head=head, first=first, end=first + size),
    st.sampled_from(KINDS),
    st.binary(min_size=1, max_size=8),
    st.integers(0, 100),
    st.integers(0, 100),
)
layouts = st.lists(pieces, min_size=1, max_size=12).map(
    lambda drawn: BurstLayout(pieces=tuple(drawn))
)
numbers = st.integers(0, SEQUENCE_NUMBERS - 1)
starts = st.builds(
    lambda waiting: Request(Command.RUN, bytes(5), silent=True, waiting=waiting), st.booleans()
)
questions = st.builds(
    lambda command, count, waiting: Request(command, bytes(5), answer_bytes=count, waiting=waiting),
    st.sampled_from([Command.GET, Command.RUN_GET]),
    st.integers(1, 40),
    st.booleans(),
)
bursts = st.builds(
    lambda layout, first, last: Burst(layout, DATA, first=first, last=last),
    layouts,
    st.none() | starts,
    st.none() | questions,
)
"""With the start of a run before, and a question behind."""


@given(burst=bursts, first=numbers, seal=st.integers(0, (1 << 32) - 1), asks=st.booleans())
def test_its_frames_are_those_of_its_requests(
    burst: Burst, first: int, seal: int, asks: bool
) -> None:
    burst.sequence, burst.asks = first, asks or not burst.silent
    asks = burst.asks
    requests = [*burst.spread()]
    assert burst.frame(seal) == b"".join(request.frame(seal) for request in requests)
    assert burst.size == sum(request.size for request in requests) == len(burst.frame(seal))
    assert burst.count == len(requests)
    assert burst.command is requests[0].command
    assert burst.silent == all(request.silent for request in requests)
    assert burst.answer_bytes == requests[-1].answer_bytes
    assert burst.last_sequence == requests[-1].sequence
    assert burst.waits == any(request.waits for request in requests)
    expected = {request.sequence for request in requests}
    assert {number for number in range(SEQUENCE_NUMBERS) if burst.has(number)} == expected
    assert [request.asks for request in requests] == [False] * (len(requests) - 1) + [asks]


@given(drawn=st.lists(bursts, min_size=1, max_size=5), first=numbers)
def test_what_is_in_flight_is_the_same_after_it_was_spread(drawn: list[Burst], first: int) -> None:
    flying = InFlight(patience := Patience(), Stalls(None, patience.receive_bytes))
    for burst in drawn:
        burst.sequence, first = first, (first + burst.count) % SEQUENCE_NUMBERS
        flying.add(burst)
    before = flying.count, flying.bytes, flying.asking, flying.answer_bytes
    waits = flying.waiting > 0
    found = [flying.find(number) is not None for number in range(SEQUENCE_NUMBERS)]
    flying.spread()
    assert (flying.count, flying.bytes, flying.asking, flying.answer_bytes) == before
    assert (flying.waiting > 0) == waits
    assert [flying.find(number) is not None for number in range(SEQUENCE_NUMBERS)] == found
    assert len(flying.requests) == flying.count == sum(found)
    while flying.requests:
        flying.remove_first()
    assert (flying.count, flying.bytes, flying.asking, flying.waiting) == (0, 0, 0, 0)


class Silent:
    """An endpoint that answers nothing."""

    def feed(self, data: bytes) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("patience", "size", "count", "is_taken"),
    [
        (Patience(window_bytes=1000), 400, 2, True),
        (Patience(window_bytes=1000), 500, 2, False),
        (Patience(window_bytes=1 << 16), 500, 32, True),
        (Patience(window_bytes=1 << 16), 500, 33, False),
        (Patience(receive_bytes=256), 10, 2, False),
    ],
)
def test_a_burst_needs_room_beside_others_and_a_wire_that_holds_back(
    patience: Patience, size: int, count: int, is_taken: bool
) -> None:
    each = size // count
    drawn = [
        Piece(kind=Command.PUT, head=b"", first=k * each, end=k * each + each) for k in range(count)
    ]
    queue = RequestQueue(LoopbackTransport(Silent()), 1024, patience, random.Random(0))
    assert queue.takes_burst(BurstLayout(pieces=tuple(drawn))) == is_taken


def test_one_that_failed_is_done() -> None:
    """Nobody waits for it, and nothing may wait for it for ever."""
    burst = Burst(BurstLayout(pieces=(Piece(kind=Command.PUT, head=b"\0"),)), b"")
    assert not burst.is_done
    burst.fail(LinkError("NO_ANSWER", "the device is gone"))
    assert burst.is_done
    assert isinstance(next(burst.spread()), Request)


@given(layout=layouts, question=questions)
def test_what_becomes_of_it_becomes_of_its_question(layout: BurstLayout, question: Request) -> None:
    answer = bytes(range(question.answer_bytes))
    Burst(layout, DATA, last=question).complete(answer)
    assert question.is_done and question.answer == answer and question.error is None
    for end in (lambda burst: burst.fail(LinkError("NO_ANSWER", "gone")), Burst.lose):
        asked = Request(question.command, question.payload, question.answer_bytes)
        end(Burst(layout, DATA, last=asked))
        assert asked.is_done and asked.error is not None and asked.error.code == "NO_ANSWER"
