"""The proofs of the compact link can fail: gateware that is broken on purpose is found out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.protocol import Command, Status
from slipstick_sim.formal import compact_link
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


def runs_again(m: Module, link: Any) -> None:
    done = link._steps.execute & link._steps.good
    m.d.comb += link.run.eq(done & link._command(Command.RUN, Command.RUN_GET))


def writes_again(m: Module, link: Any) -> None:
    m.d.comb += link._steps.transfer.eq(link._command(Command.WRITE, Command.PUT))


def knows_no_order(m: Module, link: Any) -> None:
    m.d.comb += link._rules.next_sequence.eq(link._steps.header.sequence)


def counts_what_it_refuses(m: Module, link: Any) -> None:
    with m.If(link._steps.execute & link._rules.ordered):
        m.d.sync += link._next_sequence.eq(link._steps.header.sequence + 1)


def describes_what_comes(m: Module, link: Any) -> None:
    m.d.comb += link._describes.eq(link._steps.in_payload & link._command(Command.DEFINE))


def lets_every_request_end_a_put(m: Module, link: Any) -> None:
    with m.If(link._steps.judging & ~link._command(Command.PUT)):
        m.d.sync += link._may_continue.eq(0)


def writes_a_byte_farther(m: Module, link: Any) -> None:
    m.d.comb += link.writes.payload.address.eq(link._walker.address + 1)


def answers_always_with_ok(m: Module, link: Any) -> None:
    m.d.sync += link._verdict.eq(Status.OK)


def answers_what_is_silent(m: Module, link: Any) -> None:
    m.d.comb += link._steps.quiet.eq(0)


def keeps_refusals_to_itself(m: Module, link: Any) -> None:
    m.d.comb += link._steps.quiet.eq(link._steps.header.command.silent)


def never_ends_a_write(m: Module, link: Any) -> None:
    m.d.comb += link._steps.moved.eq(0)


def never_hears_silence(m: Module, link: Any) -> None:
    m.d.sync += link._steps.forget.eq(0)


def waits_for_ever(m: Module, link: Any) -> None:
    waits = link._steps.judging & link._steps.header.command.waiting
    m.d.comb += link._steps.hold.eq(waits & link.status.running)


def waits_for_nothing(m: Module, link: Any) -> None:
    m.d.comb += link._steps.hold.eq(0)


def reads_a_description_for_ever(m: Module, link: Any) -> None:
    m.d.comb += link._steps.walking.eq(1)


def never_answers(m: Module, link: Any) -> None:
    m.d.comb += link.o.valid.eq(0)


def hears_no_request_to_its_end(m: Module, link: Any) -> None:
    m.d.comb += link.i.ready.eq(link._steps.hunting & ~link._crc.busy)


def changes_what_is_to_be_written(m: Module, link: Any) -> None:
    m.d.comb += link.writes.payload.data.eq(link.i.payload)


def tells_the_state_of_now(m: Module, link: Any) -> None:
    m.d.comb += link._answer.load.eq(1)


EFFECTS = {
    "a run that the rules forbid",
    "a run not asked for",
    "a reset not asked for",
    "an effect out of order",
    "an effect of what is refused",
    "a second effect",
    "it is not of the form",
    "what is out of order is executed",
    "a description is read for what is not good",
    "bytes move for what is not good",
    "bytes move for the second time",
}
"""The solver shows one of them."""
STOPS = {"a byte is not taken", "it comes no nearer to the end"}
ANSWERS = {"an answer that nobody wants", "a request without an answer of its own"}
"""Likewise."""
NUMBERS = {
    "another number is the next",
    "a refused request is counted",
    "it counts too early",
    "a PUT is counted before its end",
}
"""Likewise."""
SOUNDNESS = {"the verdict is wrong", "a wrong checksum is judged"}
"""Likewise."""
ENDS = {"a request out of order ends a PUT", "a PUT has another end before it is judged"}
"""Likewise."""
MOVES = {
    "it comes no nearer to the end",
    "bytes move for what is not good",
    "a place outside the payload",
}
"""Likewise: a PUT that is refused goes on."""
DEAFNESS = {"silence does not make it forget", "it comes no nearer to the end"}
"""Likewise: the frame of which no more comes has no end."""
WAITING = {
    "it waits, or does not",
    "a program runs, and it is executed",
    "it waits too long for a program",
}
"""Likewise."""

MUTATIONS = (
    (knows_no_session, "compact_link_acts", SOUNDNESS),
    (judges_before_the_checksum_is_there, "compact_link_acts", {"judged before it is counted"}),
    (refuses_nothing, "compact_link_acts", EFFECTS | ANSWERS),
    (runs_whatever_the_rules_say, "compact_link_acts", EFFECTS),
    (runs_again, "compact_link_acts", EFFECTS),
    (writes_again, "compact_link_acts", EFFECTS),
    (knows_no_order, "compact_link_acts", EFFECTS),
    (counts_what_it_refuses, "compact_link_acts", NUMBERS),
    (describes_what_comes, "compact_link_acts", {"an effect of a frame that is wrong"}),
    (lets_every_request_end_a_put, "compact_link_acts", ENDS),
    (writes_a_byte_farther, "compact_link_acts", {"a byte beyond the memory"}),
    (answers_always_with_ok, "compact_link_acts", {"the verdict is wrong"}),
    (answers_what_is_silent, "compact_link_acts", ANSWERS),
    (keeps_refusals_to_itself, "compact_link_acts", ANSWERS),
    (never_ends_a_write, "compact_link_goes_on", MOVES),
    (never_hears_silence, "compact_link_goes_on", DEAFNESS),
    (waits_for_ever, "compact_link_goes_on", WAITING),
    (waits_for_nothing, "compact_link_goes_on", WAITING),
    (reads_a_description_for_ever, "compact_link_goes_on", {"it comes no nearer to the end"}),
    (never_answers, "compact_link_goes_on", {"it comes no nearer to the end"}),
    (hears_no_request_to_its_end, "compact_link_goes_on", STOPS),
    (changes_what_is_to_be_written, "compact_link_streams", {"writes changes an offer"}),
    (tells_the_state_of_now, "compact_link_streams", {"o changes an offer"}),
)


USUAL = {
    writes_again,
    counts_what_it_refuses,
    describes_what_comes,
    never_hears_silence,
    never_answers,
    tells_the_state_of_now,
}
"""Some of each proof; all of them take minutes."""
THOROUGH = [pytest.mark.thorough]


def failed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("SLIPSTICK_BUILD", str(folder))
    result = run_proof(PROOFS[name])
    assert result.status in ("FAIL", "UNKNOWN")
    return result.failed


@pytest.mark.parametrize(
    ("mutate", "name", "messages"),
    [
        pytest.param(*each, id=each[0].__name__, marks=[] if each[0] in USUAL else THOROUGH)
        for each in MUTATIONS
    ],
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
    found = failed(name, tmp_path, monkeypatch)
    assert messages & set(found), found
