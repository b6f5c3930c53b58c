"""The proofs of the link can fail: gateware that is broken on purpose is found out."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Const, Module
from slipstick_rtl.link import frame_receiver
from slipstick_rtl.link.command_processor import CommandProcessor
from slipstick_rtl.link.frame_receiver import FrameReceiver
from slipstick_rtl.link.frame_scanner import FrameScanner
from slipstick_rtl.link.protocol import Status
from slipstick_rtl.link.request_order import RequestOrder
from slipstick_rtl.link.request_queue import RequestQueue
from slipstick_rtl.link.run_patience import RunPatience
from slipstick_sim.formal import proof_link, proof_link_execution, proof_link_order
from slipstick_sim.formal.proof_link_progress import RECEIVER
from slipstick_sim.formal.registry import Proof, all_proofs
from slipstick_sim.formal.runner import run_proof

PROOFS = {proof.name: proof for proof in all_proofs()}


class NeverForgets(FrameScanner):
    """Does not hear that it is to forget."""

    def elaborate(self, platform: object) -> Module:
        self.forget = Const(0)  # pyright: ignore[reportAttributeAccessIssue]
        return super().elaborate(platform)


class AnySession(FrameReceiver):
    """Takes each session for none."""

    def elaborate(self, platform: object) -> Module:
        self.session = Const(0, 32)  # pyright: ignore[reportAttributeAccessIssue]
        return super().elaborate(platform)


class Obedient(CommandProcessor):
    """Takes each request for a good one."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        decoder: Any = m.submodules.decoder
        m.d.comb += decoder.request.verdict.eq(Status.OK)
        return m


class Talkative(CommandProcessor):
    """Answers silent requests."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        steps: Any = m.submodules.steps
        m.d.comb += steps.quiet.eq(0)
        return m


class Tireless(CommandProcessor):
    """Does a request again that has come again."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        decoder: Any = m.submodules.decoder
        m.d.comb += decoder.request.repeated.eq(0)
        return m


class AnyOrder(RequestOrder):
    """Takes each number for the next one."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self.early.eq(0)
        return m


class Hasty(RequestQueue):
    """Takes a request in while a session begins."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        return m


class Patient(RunPatience):
    """Waits for ever."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self.expired.eq(0)
        return m


def fails(proof: Proof, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("SLIPSTICK_BUILD", str(folder))
    result = run_proof(proof)
    assert result.status in ("FAIL", "UNKNOWN")
    return result.failed


def test_a_receiver_that_never_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_receiver, "FrameScanner", NeverForgets)
    assert fails(RECEIVER, tmp_path, monkeypatch) == ("silence does not make it forget",)


def test_a_receiver_that_knows_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_link, "FrameReceiver", AnySession)
    proof = PROOFS["frame_receiver_crc"]
    assert "the verdict is wrong" in fails(proof, tmp_path, monkeypatch)


def test_a_processor_that_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_link_execution, "CommandProcessor", Obedient)
    found = fails(PROOFS["command_processor"], tmp_path, monkeypatch)
    assert any(message.endswith(("what is refused", "another request")) for message in found)


@pytest.mark.parametrize(
    ("mutant", "message"),
    [(Talkative, "a silent request is answered"), (Tireless, "for another request")],
)
def test_a_processor_that_overdoes_it(
    mutant: type, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_link_execution, "CommandProcessor", mutant)
    found = fails(PROOFS["command_processor"], tmp_path, monkeypatch)
    assert any(text.endswith(message) for text in found), found


@pytest.mark.parametrize(
    ("name", "mutant", "proof", "message"),
    [
        ("RequestOrder", AnyOrder, "requests_in_order", "another turn"),
        ("RequestQueue", Hasty, "request_queue_waits_for_open", "a request comes in behind"),
        ("RunPatience", Patient, "patience_ends", "the counter runs over"),
    ],
)
def test_an_order_that_is_not_kept(
    name: str,
    mutant: type,
    proof: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof_link_order, name, mutant)
    found = fails(PROOFS[proof], tmp_path, monkeypatch)
    assert any(text.startswith(message) for text in found), found
