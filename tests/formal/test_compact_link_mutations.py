"""The proofs of the compact link can fail: gateware that is broken on purpose is found out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.compact.rules import CompactRules
from slipstick_rtl.link.protocol import Command, Status
from slipstick_sim.formal import compact_link, proof_compact_link_progress
from slipstick_sim.formal.registry import all_proofs
from slipstick_sim.formal.runner import run_proof

PROOFS = {proof.name: proof for proof in all_proofs()}


def knows_no_session(m: Module, link: Any) -> None:
    m.d.comb += link._steps.sound.eq(link._crc.match_detected)


def judges_before_the_checksum_is_there(m: Module, link: Any) -> None:
    m.d.comb += link._steps.busy.eq(0)


def refuses_nothing(m: Module, link: Any) -> None:
    m.d.comb += link._steps.good.eq(1)


def runs_whatever_the_rules_say(m: Module, link: Any) -> None:
    m.d.comb += link.run.eq(link._steps.execute & link._command(Command.RUN))


def answers_always_with_ok(m: Module, link: Any) -> None:
    m.d.sync += link._verdict.eq(Status.OK)


def never_ends_a_write(m: Module, link: Any) -> None:
    m.d.comb += link._steps.written.eq(0)


def never_hears_silence(m: Module, link: Any) -> None:
    m.d.sync += link._steps.forget.eq(0)


def never_answers(m: Module, link: Any) -> None:
    m.d.comb += link.o.valid.eq(0)


def hears_no_request_to_its_end(m: Module, link: Any) -> None:
    m.d.comb += link.i.ready.eq(link._steps.hunting & ~link._crc.busy)


def changes_what_is_to_be_written(m: Module, link: Any) -> None:
    m.d.comb += link.writes.payload.data.eq(link.i.payload)


EFFECTS = {
    "a run that the rules forbid",
    "a run not asked for",
    "a reset not asked for",
    "an effect of what is refused",
    "a step for what is not good",
}
"""The solver shows one of them."""
DEAFNESS = {"silence does not make it forget", "it comes no nearer to the end"}
"""Likewise: the frame of which no more comes has no end."""

MUTATIONS = (
    (knows_no_session, "compact_link_acts", {"the verdict is wrong"}),
    (judges_before_the_checksum_is_there, "compact_link_acts", {"judged before it is counted"}),
    (refuses_nothing, "compact_link_acts", EFFECTS),
    (runs_whatever_the_rules_say, "compact_link_acts", EFFECTS),
    (answers_always_with_ok, "compact_link_acts", {"the verdict is wrong"}),
    (never_ends_a_write, "compact_link_goes_on", {"it comes no nearer to the end"}),
    (never_hears_silence, "compact_link_goes_on", DEAFNESS),
    (never_answers, "compact_link_goes_on", {"it comes no nearer to the end"}),
    (hears_no_request_to_its_end, "compact_link_goes_on", {"a byte is not taken"}),
    (changes_what_is_to_be_written, "compact_link_streams", {"writes changes an offer"}),
)


def failed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("SLIPSTICK_BUILD", str(folder))
    result = run_proof(PROOFS[name])
    assert result.status in ("FAIL", "UNKNOWN")
    return result.failed


@pytest.mark.parametrize(
    ("mutate", "name", "messages"),
    MUTATIONS,
    ids=[mutate.__name__ for mutate, _, _ in MUTATIONS],
)
def test_a_link_that(
    mutate: Callable[[Module, Any], None],
    name: str,
    messages: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(CompactLink):
        def elaborate(self, platform: object) -> Module:
            m = super().elaborate(platform)
            mutate(m, self)
            return m

    monkeypatch.setattr(compact_link, "CompactLink", Broken)
    assert messages & set(failed(name, tmp_path, monkeypatch))


class NeverDone(CompactRules):
    """Has no verdict."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.sync += self.done.eq(0)
        return m


def test_rules_that_never_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_compact_link_progress, "CompactRules", NeverDone)
    found = failed("compact_rules_decide", tmp_path, monkeypatch)
    assert found == ("they do not decide",)
