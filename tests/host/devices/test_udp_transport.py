"""The host's end of the datagrams: in imagined time, and with anything in its socket."""

import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick.benchmarks.faults.__main__ import fault_benchmark
from slipstick.benchmarks.faults.datagrams import (
    FaultyNetwork,
    GoldenBoard,
    ImaginedNetwork,
    NetworkFault,
)
from slipstick.benchmarks.faults.ethernet import disturb_ethernet
from slipstick.benchmarks.faults.network import HARDWARE, small_work
from slipstick.devices.link.errors import CODES, LinkError
from slipstick.devices.udp_claim import claim
from slipstick.devices.udp_streams import REORDER_SECONDS, Incoming, Outgoing, RoundTrip
from slipstick.devices.udp_transport import UdpTransport
from slipstick.errors import DeviceError
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import (
    HEADER_BYTES,
    NUMBERS,
    Arrived,
    Datagram,
    Kind,
    Presence,
)
from slipstick_sim.golden.ethernet import EthernetPort
from udp_boards import ROUGH

LEASE = 0x1234
PRESENCE = Presence(
    identity=Identity.of(HARDWARE),
    slots=4,
    slot_bytes=8,
    owned=True,
    owner_address=bytes((10, 0, 0, 9)),
    owner_port=7,
)
GIVE_UP_SECONDS = 7.0


class Script:
    """A connection whose other end says what a test wants, and whose time is a number."""

    def __init__(self) -> None:
        self.time = 5.0
        self.sent: list[Datagram] = []
        self.arrived: deque[bytes] = deque()
        self.answer: Callable[[Datagram], list[Datagram]] = lambda datagram: []

    def send(self, datagram: bytes, /) -> None:
        self.sent.append(Datagram.unpack(datagram))
        self.arrived += [each.pack() for each in self.answer(self.sent[-1])]

    def receive(self) -> bytes:
        if not self.arrived:
            raise BlockingIOError
        return self.arrived.popleft()

    def wait(self, seconds: float, /) -> bool:
        if not self.arrived:
            self.time += max(0.0, seconds)
        return bool(self.arrived)

    def now(self) -> float:
        return self.time

    def cut_into(self, size: int) -> bool:
        return False

    def close(self) -> None:
        self.answer = lambda datagram: []


class Echo:
    """An endpoint that gives back what it gets."""

    def feed(self, data: bytes) -> bytes:
        return data


class EchoBoard(EthernetPort):
    """A board whose link is an echo."""

    rest_seconds = 1.0

    def __init__(self) -> None:
        super().__init__(Echo(), Identity.of(HARDWARE))


def send(number: int, data: bytes = b"", first: int = 0, waiting: int = 0) -> bytes:
    """A SEND of the board."""
    body = Arrived(first, waiting).pack() + data
    return Datagram(kind=Kind.SEND, number=number % NUMBERS, lease=LEASE, body=body).pack()


def opened(script: Script) -> UdpTransport:
    return UdpTransport(script, "udp:script", LEASE, PRESENCE)


def test_bytes_go_in_slots_and_the_rest_later() -> None:
    script = Script()
    transport = opened(script)
    transport.send(bytes(range(40)))
    assert [each.number for each in script.sent] == [0, 1, 2, 3]
    assert [each.body for each in script.sent] == [bytes(range(k, k + 8)) for k in (0, 8, 16, 24)]
    script.arrived.append(send(0, b"abc", first=1))
    assert transport.receive(3, 1.0) == b"abc"
    assert script.sent[4].body == bytes(range(32, 40))


def test_only_what_is_missing_is_sent_again() -> None:
    script = Script()
    transport = opened(script)
    transport.send(bytes(32))
    script.sent.clear()
    # number 1 is lost, and that is told twice
    for _ in range(2):
        script.arrived.append(send(0, first=1, waiting=0b110))
    transport.receive(1, 0.0)
    assert [(each.kind, each.number) for each in script.sent] == [(Kind.DATA, 1)]
    # and again, when a POLL has told that it is late
    script.sent.clear()
    script.answer = lambda datagram: (
        [Datagram.unpack(send(0, first=1, waiting=0b110))] if datagram.kind is Kind.POLL else []
    )
    transport.receive(1, 0.02)
    assert {each.number for each in script.sent if each.kind is Kind.DATA} == {1}


def test_answers_are_put_in_order_and_count_once() -> None:
    script = Script()
    transport = opened(script)
    script.arrived += [send(1, b"b"), send(0, b"a"), send(1, b"b"), send(0, b"a"), send(2)]
    assert transport.receive(3, 0.001) == b"ab"
    # one that is lost is waited for, and then left out; no bytes after it end the wait
    script.arrived += [send(3, b"d"), send(4, b"e")]
    start = script.time
    assert transport.receive(3, 9.0) == b"de"
    assert REORDER_SECONDS < script.time - start < 0.1
    script.arrived.append(send(6))
    assert transport.receive(1, 9.0) == b""
    assert script.time - start < 0.2


def test_numbers_begin_again_after_the_last() -> None:
    network = FaultyNetwork(EchoBoard, 1)
    transport = claim(ImaginedNetwork(network).connect(), "udp:echo")
    outgoing = transport._outgoing
    data = bytes(range(256)) * 2
    outgoing._slot_bytes = 1
    for _ in range(NUMBERS // len(data) + 2):
        transport.send(data)
        assert transport.receive(len(data), 1.0) == data


@pytest.mark.parametrize("seed", range(4))
def test_an_echo_through_a_rough_network_loses_only_answers(seed: int) -> None:
    rates = {fault: rate for fault, rate in ROUGH.items() if fault is not NetworkFault.DAMAGE}
    network = FaultyNetwork(EchoBoard, seed, rates)
    imagined = ImaginedNetwork(network)
    transport = claim(imagined.connect(), "udp:echo")
    sent = b"".join(k.to_bytes(4, "big") for k in range(20_000))
    received = b""
    for first in range(0, len(sent), 8_000):
        transport.send(sent[first : first + 8_000])
        received += transport.receive(8_000, 0.1)
    network.calm()
    transport.send(b"over")
    while part := transport.receive(1 << 20, 0.5):
        received += part
    assert received.endswith(b"over") and len(received) > len(sent) / 2
    places = [received.find(sent[k : k + 4]) for k in range(0, 400, 4)]
    known = [place for place in places if place >= 0]
    assert known == sorted(known)
    transport.close()


def test_a_silent_board_is_given_up() -> None:
    script = Script()
    transport = opened(script)
    start = script.time
    with pytest.raises(LinkError, match="DISCONNECTED: udp:script is silent for 5 s: check"):
        while script.time - start < 2 * GIVE_UP_SECONDS:
            transport.receive(1, 1.0)
    assert 5.0 <= script.time - start < GIVE_UP_SECONDS
    with pytest.raises(LinkError, match="DISCONNECTED: udp:script is silent"):
        transport.send(b"x")
    transport.close()
    assert script.sent[-1].kind is Kind.RELEASE


def test_a_closed_transport_says_so() -> None:
    transport = opened(Script())
    transport.close()
    with pytest.raises(LinkError, match="DISCONNECTED: udp:script is closed: open it anew"):
        transport.receive(1, 0.1)


def test_send_does_not_wait_for_a_board_that_is_busy() -> None:
    script = Script()
    transport = opened(script)
    start = script.time
    transport.send(bytes(1 << 16))
    assert script.time - start < 0.01


def test_the_time_of_an_answer_begins_when_the_request_has_arrived() -> None:
    script = Script()
    transport = opened(script)
    transport.send(bytes(80))
    first = iter(range(1, 11))
    original = script.wait

    def slowly(seconds: float) -> bool:
        number = next(first, None)
        if number is not None:
            script.time += 0.4
            script.arrived.append(send(0, first=number))
        return original(seconds)

    script.wait = slowly
    start = script.time
    assert transport.receive(1, 0.5) == b""
    assert 4.0 < script.time - start < 5.0


@pytest.mark.parametrize("slots", [(0, 8), (17, 8), (4, 0), (4, 1025)])
def test_slots_that_are_none(slots: tuple[int, int]) -> None:
    script = Script()
    body = Presence(**{**PRESENCE.__dict__, "slots": slots[0], "slot_bytes": slots[1]}).pack()
    script.answer = lambda datagram: [
        Datagram(kind=Kind.GRANTED, number=datagram.number, lease=datagram.lease, body=body)
    ]
    with pytest.raises(DeviceError, match="udp:script must have slots as this version"):
        claim(script, "udp:script")


def test_the_round_trip_is_smoothed_and_bounded() -> None:
    trip = RoundTrip(0.01)
    for _ in range(100):
        trip.measure(0.001)
    assert trip.timeout == RoundTrip.LEAST
    trip.back_off()
    assert trip.timeout == 2 * RoundTrip.LEAST
    for _ in range(20):
        trip.back_off()
    assert trip.timeout == RoundTrip.MOST_BACKED_OFF
    trip.measure(9.0)
    assert trip.timeout == RoundTrip.MOST


numbers = st.integers(0, NUMBERS - 1)
bodies = st.binary(max_size=600)
strange = st.one_of(
    st.binary(max_size=80),
    st.builds(
        lambda kind, number, lease, body: Datagram(
            kind=kind, number=number, lease=lease, body=body
        ).pack(),
        st.sampled_from(Kind),
        numbers,
        st.sampled_from((LEASE, 0, 7)),
        bodies,
    ),
    st.builds(send, numbers, bodies, numbers, numbers),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(strange, max_size=12), st.binary(max_size=60))
def test_anything_may_come(datagrams: list[bytes], data: bytes) -> None:
    script = Script()
    transport = opened(script)
    with suppress(LinkError):
        transport.send(data)
        script.arrived += datagrams
        got = transport.receive(40, 0.05)
        assert all(bytes([byte]) in b"".join(datagrams) for byte in got)
        transport.receive(1 << 20, 0.05)
    assert all(len(each.pack()) <= HEADER_BYTES + PRESENCE.slot_bytes for each in script.sent)
    transport.close()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_the_parsers_refuse_or_decode(payload: bytes) -> None:
    for unpack in (Datagram.unpack, Presence.unpack, Arrived.unpack):
        with suppress(ValueError):
            unpack(payload)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(numbers, numbers), max_size=20))
def test_what_a_board_says_drops_only_what_was_sent(told: list[tuple[int, int]]) -> None:
    outgoing = Outgoing(LEASE, 4, 8)
    outgoing.waiting += bytes(64)
    cut = outgoing.cut(0.0)
    for first, waiting in told:
        outgoing.arrive(first, waiting, 1.0)
        again = [*outgoing.holes(1.0), *outgoing.missing(0.0, 1.0)]
        assert set(again) <= set(cut)
        cut += outgoing.cut(1.0)
        assert len(cut) <= 8


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=40))
def test_the_order_of_answers(arrivals: list[tuple[int, bool]]) -> None:
    incoming = Incoming(100)
    for step, (number, is_empty) in enumerate(arrivals):
        now = step / 500
        incoming.take(number, b"" if is_empty else bytes([number]), now)
        incoming.give_up(now)
    assert list(incoming.received) == sorted(set(incoming.received))


def test_all_that_hosts_are_told_over_a_faulty_network_is_right() -> None:
    result = disturb_ethernet(HARDWARE, small_work(), 30, seed=4)
    assert result["wrong"] == 0 and result["without_recovery"] == 0, result
    assert set(result["failed_by_code"]) <= {*CODES}
    assert min(result["faults"].values()) >= 30 and sum(result["right"].values()) > 0


def test_a_host_waits_no_longer_than_it_must() -> None:
    imagined = ImaginedNetwork(FaultyNetwork(lambda: GoldenBoard(HARDWARE), 1))
    transport = claim(imagined.connect(), "udp:golden")
    transport.send(b"nonsense")
    start = imagined.time
    assert transport.receive(1, 0.3) == b""
    assert 0.3 <= imagined.time - start < 0.4


def test_the_campaign_writes_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # its watchdog needs a real standard error
    monkeypatch.setattr("slipstick.benchmarks.faults.__main__._tick", int)
    path = tmp_path / "reports" / "faults.json"
    path.parent.mkdir()
    others = {"wires": {"wrong": 5}, "ethernet": {"wrong": 7}}
    path.write_text(json.dumps({"devices": others}))
    assert fault_benchmark(faults=3, device="ethernet", seed=1) == 0
    assert "cable out" in capsys.readouterr().out
    devices = json.loads(path.read_text())["devices"]
    # those of another device stay
    assert list(devices) == ["wires", "ethernet"] and devices["wires"] == others["wires"]
    report = devices["ethernet"]
    assert report["wrong"] == 0 and report["longest_wait_seconds"] < GIVE_UP_SECONDS
    assert report["faults_wanted"] == 3 and report["command"].endswith("--device ethernet")
