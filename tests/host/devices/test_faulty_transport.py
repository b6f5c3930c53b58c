"""The line that fails: each fault does what its name says."""

import pytest
from slipstick.benchmarks.faults.transport import (
    SPOILING,
    Fault,
    FaultyTransport,
    HostDied,
    Injection,
    RandomPlan,
    ScheduledPlan,
)
from slipstick.devices.link.errors import LinkError
from slipstick.devices.link.transport import LoopbackTransport


class Echo:
    """An endpoint that gives back what it gets."""

    def feed(self, data: bytes) -> bytes:
        return data


def echo(*scheduled: Injection, **options) -> FaultyTransport:
    """A line to an echo, with faults in its first portion."""
    return FaultyTransport(
        LoopbackTransport(Echo()), ScheduledPlan({0: scheduled}), stall_seconds=5.0, **options
    )


@pytest.mark.parametrize("fault", SPOILING)
def test_each_fault_changes_bytes(fault: Fault) -> None:
    sent = bytes(range(256))
    line = FaultyTransport(LoopbackTransport(Echo()), RandomPlan(2, {fault: 0.5}))
    changed = 0
    for _ in range(50):
        line.send(sent)
        got = b""
        while data := line.receive(1 << 10, 0.1):
            got += data
        changed += got != sent
    assert changed >= 25
    assert set(line.counts) == {fault} and line.counts[fault] >= changed


def test_a_stall_holds_everything_back_and_loses_nothing() -> None:
    passed_seconds: list[float] = []
    line = echo(Injection(Fault.STALL, place=1 << 14), idle=passed_seconds.append)
    line.send(b"abc")
    assert line.receive(3, 1e-3) == b""
    assert line.receive(3, 10.0) == b"abc"
    assert line.stalled_seconds == pytest.approx(1.25)
    assert sum(passed_seconds) == pytest.approx(line.stalled_seconds)
    assert line.counts == {Fault.STALL: 1}


def test_a_disconnection_lasts_until_the_reconnection() -> None:
    line = echo(Injection(Fault.DISCONNECT, place=2))
    for action in (lambda: line.send(b"abc"), lambda: line.send(b""), lambda: line.receive(1, 0.1)):
        with pytest.raises(LinkError, match="DISCONNECTED: the faulty line"):
            action()
    assert not line.connected
    line.calm()
    line.reconnect()
    assert line.receive(99, 0.1) == b"ab"
    line.send(b"abc")
    assert line.receive(3, 0.1) == b"abc"


def test_what_happens_between_two_bytes() -> None:
    events: list[str] = []
    line = echo(
        Injection(Fault.BOARD_RESET, place=1),
        Injection(Fault.INTRUSION, place=0, seed=5),
        Injection(Fault.DEATH, place=1),
        reset_board=lambda: events.append("reset"),
        intruder=lambda seed: b"x" * seed,
    )
    with pytest.raises(HostDied):
        line.send(b"abc")
    line.calm()
    assert line.receive(99, 0.1) == b"axxxxxb"
    assert events == ["reset"]


def test_rates_are_checked() -> None:
    with pytest.raises(ValueError, match=r"the rate of FLIP must be within 0\.\.1, not 1\.5"):
        RandomPlan(1, {Fault.FLIP: 1.5})
