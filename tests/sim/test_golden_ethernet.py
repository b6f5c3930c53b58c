"""The board's end of the datagrams: leases, slots, answers, and that strangers change nothing."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import (
    LONGEST_SEND,
    NUMBERS,
    Arrived,
    Datagram,
    Kind,
    Presence,
)
from slipstick_sim.golden.ethernet import EthernetPort, Owner

IDENTITY = Identity("0123456789abcdef", 3, 4, 512)
OWNER, STRANGER = (bytes([10, 0, 0, 2]), 4000), (bytes([10, 0, 0, 3]), 4001)
LEASE, SLOTS, SLOT_BYTES, SECONDS = 77, 4, 16, 10.0


class Echo:
    """A link that returns each byte, inverted, when it is asked again."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.late = b""

    def feed(self, data: bytes) -> bytes:
        """Notes the bytes; answers those before."""
        self.heard += data
        answer, self.late = self.late, bytes(255 - byte for byte in data)
        return answer


class Host:
    """A host's end: one datagram at a time."""

    def __init__(self, port: EthernetPort, at: tuple[bytes, int], lease: int = LEASE) -> None:
        self._port, self._at, self._lease = port, at, lease

    def ask(
        self, kind: Kind, number: int = 0, body: bytes = b"", now: float = 0.0
    ) -> list[Datagram]:
        """Sends a datagram; the answers, all of which must come here."""
        datagram = Datagram(kind=kind, number=number, lease=self._lease, body=body)
        answers = self._port.receive(*self._at, datagram.pack(), now)
        assert all(answer[:2] == self._at for answer in answers)
        return [Datagram.unpack(answer[2]) for answer in answers]


def make() -> tuple[Echo, EthernetPort]:
    echo = Echo()
    port = EthernetPort(echo, IDENTITY, slots=SLOTS, slot_bytes=SLOT_BYTES, lease_seconds=SECONDS)
    return echo, port


def arrived(datagram: Datagram) -> Arrived:
    assert datagram.kind is Kind.SEND
    return Arrived.unpack(datagram.body)


def test_a_board_says_what_it_is_and_whose() -> None:
    _, port = make()
    host = Host(port, STRANGER, 5)
    (here,) = host.ask(Kind.DISCOVER, 9)
    assert (here.kind, here.number, here.lease) == (Kind.HERE, 9, 5)
    free = Presence(
        identity=IDENTITY,
        slots=SLOTS,
        slot_bytes=SLOT_BYTES,
        owned=False,
        owner_address=bytes(4),
        owner_port=0,
    )
    assert Presence.unpack(here.body) == free
    (granted,) = Host(port, OWNER).ask(Kind.CLAIM, 3)
    taken = replace(free, owned=True, owner_address=OWNER[0], owner_port=OWNER[1])
    assert (granted.kind, granted.number, granted.lease) == (Kind.GRANTED, 3, LEASE)
    assert Presence.unpack(granted.body) == taken
    assert Presence.unpack(host.ask(Kind.DISCOVER)[0].body) == taken
    Host(port, OWNER).ask(Kind.RELEASE)
    assert Presence.unpack(host.ask(Kind.DISCOVER)[0].body) == free


@pytest.mark.parametrize(
    ("kind", "at", "lease", "now", "answer"),
    [
        (Kind.CLAIM, STRANGER, 5, SECONDS - 0.1, Kind.REFUSED),
        (Kind.CLAIM, STRANGER, 5, SECONDS, Kind.GRANTED),
        (Kind.CLAIM, OWNER, 5, 0.0, Kind.GRANTED),
        (Kind.TAKE, STRANGER, 5, 0.0, Kind.GRANTED),
        (Kind.DATA, STRANGER, LEASE, 0.0, Kind.REFUSED),
        (Kind.DATA, OWNER, 5, 0.0, Kind.REFUSED),
        (Kind.POLL, (OWNER[0], 1), LEASE, 0.0, Kind.REFUSED),
        (Kind.POLL, OWNER, LEASE, 3 * SECONDS, Kind.SEND),
        (Kind.RELEASE, OWNER, 5, 0.0, None),
    ],
)
def test_who_gets_the_board(
    kind: Kind, at: tuple[bytes, int], lease: int, now: float, answer: Kind | None
) -> None:
    _, port = make()
    Host(port, OWNER).ask(Kind.CLAIM)
    body = b"x" if kind is Kind.DATA else b""
    answers = Host(port, at, lease).ask(kind, body=body, now=now)
    assert [found.kind for found in answers] == ([] if answer is None else [answer])
    assert (port.owner == Owner(*OWNER, LEASE)) == (answer is not Kind.GRANTED)


def test_an_owner_that_speaks_keeps_its_lease() -> None:
    _, port = make()
    host, other = Host(port, OWNER), Host(port, STRANGER)
    host.ask(Kind.CLAIM)
    for now, kind in ((9, Kind.POLL), (18, Kind.DATA), (27, Kind.CLAIM), (36, Kind.TAKE)):
        host.ask(kind, body=b"x" if kind is Kind.DATA else b"", now=now)
        assert other.ask(Kind.CLAIM, now=now + 9)[0].kind is Kind.REFUSED
    host.ask(Kind.DISCOVER, now=44)
    assert other.ask(Kind.CLAIM, now=46)[0].kind is Kind.GRANTED


def test_a_claim_that_comes_twice_changes_nothing() -> None:
    echo, port = make()
    host = Host(port, OWNER)
    host.ask(Kind.CLAIM)
    host.ask(Kind.DATA, 0, b"ab")
    host.ask(Kind.DATA, 2, b"ef")
    assert host.ask(Kind.CLAIM)[0].kind is Kind.GRANTED
    assert arrived(host.ask(Kind.DATA, 1, b"cd")[0]).next == 3
    assert echo.heard == b"abcdef"
    assert Host(port, OWNER, 5).ask(Kind.CLAIM)[0].kind is Kind.GRANTED
    assert port.next == 0


def test_any_order_will_do_and_twice_has_no_effect() -> None:
    echo, port = make()
    host = Host(port, OWNER)
    host.ask(Kind.CLAIM)
    assert host.ask(Kind.DATA, 2, b"c") == []
    assert host.ask(Kind.DATA, 1, b"b") == []
    assert arrived(host.ask(Kind.DATA, 2, b"x")[0]) == Arrived(0, 0b110)
    assert arrived(host.ask(Kind.DATA, 4, b"x")[0]) == Arrived(0, 0b110)
    assert arrived(host.ask(Kind.DATA, 0, b"a")[0]) == Arrived(3, 0)
    assert arrived(host.ask(Kind.DATA, 0, b"a")[0]) == Arrived(3, 0)
    assert echo.heard == b"abc"


def test_numbers_go_round() -> None:
    echo, port = make()
    host = Host(port, OWNER)
    host.ask(Kind.CLAIM)
    for number in range(NUMBERS + 5):
        host.ask(Kind.DATA, number % NUMBERS, bytes([number % 251]))
    assert len(echo.heard) == NUMBERS + 5
    assert port.next == 5


def test_answers_are_numbered_and_leave_once() -> None:
    echo, port = make()
    host = Host(port, OWNER)
    host.ask(Kind.CLAIM)
    assert [found.number for found in host.ask(Kind.DATA, 0, b"\1\2")] == [0]
    ((address, number, payload),) = port.poll(0.0)
    assert (address, number) == OWNER
    send = Datagram.unpack(payload)
    assert (send.number, send.body[4:]) == (0, b"\xfe\xfd")
    assert port.poll(0.0) == []
    assert host.ask(Kind.POLL)[0] == Datagram(
        kind=Kind.SEND, number=1, lease=LEASE, body=Arrived(1, 0).pack()
    )
    echo.late = bytes(2 * LONGEST_SEND + 1)
    sends = [Datagram.unpack(packet[2]) for packet in port.poll(0.0)]
    assert [(send.number, len(send.body) - 4) for send in sends] == [
        (1, LONGEST_SEND),
        (2, LONGEST_SEND),
        (3, 1),
    ]


def test_answers_without_an_owner_are_lost() -> None:
    echo, port = make()
    echo.late = b"x"
    assert port.poll(0.0) == []
    Host(port, OWNER).ask(Kind.CLAIM)
    assert port.poll(0.0) == []


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        *((kind, 1) for kind in Kind if kind not in (Kind.DATA,)),
        *((kind, 0) for kind in (Kind.HERE, Kind.GRANTED, Kind.REFUSED, Kind.SEND)),
        (Kind.DATA, 0),
        (Kind.DATA, SLOT_BYTES + 1),
    ],
)
def test_lengths_and_kinds_that_are_not_answered(kind: Kind, size: int) -> None:
    echo, port = make()
    host = Host(port, OWNER)
    host.ask(Kind.CLAIM)
    assert host.ask(kind, 0, bytes(size)) == []
    assert Host(port, STRANGER).ask(kind, 0, bytes(size)) == []
    assert (port.owner is not None, port.next, echo.heard) == (True, 0, b"")


HARMLESS = [kind for kind in Kind if kind is not Kind.TAKE]
WRITTEN = st.builds(
    Datagram,
    kind=st.sampled_from(HARMLESS),
    number=st.integers(0, 6),
    lease=st.sampled_from([LEASE, 5]),
    body=st.binary(max_size=SLOT_BYTES + 2),
).map(Datagram.pack)
STRANGE = st.one_of(st.binary(max_size=40), WRITTEN)


@settings(deadline=None)
@given(st.lists(st.lists(STRANGE, max_size=4), min_size=1, max_size=12), st.randoms())
def test_a_stranger_changes_nothing_that_the_owner_sees(
    between: list[list[bytes]], random: Random
) -> None:
    (alone, first), (disturbed, second) = make(), make()
    hosts = [Host(port, OWNER) for port in (first, second)]
    for host in hosts:
        host.ask(Kind.CLAIM)
    for payloads in between:
        for payload in payloads:
            at = random.choice([STRANGER, (STRANGER[0], OWNER[1]), (OWNER[0], STRANGER[1])])
            assert all(found[:2] == at for found in second.receive(*at, payload, 1.0))
        kind = random.choice([Kind.DATA, Kind.DATA, Kind.POLL, Kind.CLAIM])
        number = (first.next + random.randrange(-1, SLOTS + 1)) % NUMBERS
        body = random.randbytes(random.randint(1, SLOT_BYTES)) if kind is Kind.DATA else b""
        answers = [host.ask(kind, number, body, 1.0) for host in hosts]
        assert answers[0] == answers[1]
    assert alone.heard == disturbed.heard
