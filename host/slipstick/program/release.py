"""Releases: rows of an input that may be written over while a run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipstick_rtl.isa import STREAMS

from .alternate import odd_step
from .steps import LARGEST, RunStep, UploadStep, require

if TYPE_CHECKING:
    from . import Program


@dataclass(frozen=True, kw_only=True)
class Release:
    """Rows of an input that nothing in the run touches any more, from some progress on.

    The host may write the next image's rows there while the run goes on.

    Parameters
    ----------
    tensor : str
    rows : (first, behind the last)
        Of its placement.
    completed : tuple of int
        Per instruction stream, how many instructions must have been completed before.
    cycle : int
        Of the run, in which that is predicted.
    """

    tensor: str
    rows: tuple[int, int]
    completed: tuple[int, ...]
    cycle: int

    def __post_init__(self) -> None:
        good = len(self.completed) == len(STREAMS)
        require(good, f"a release's completed must be {len(STREAMS)}, not {len(self.completed)}")
        first, end = self.rows
        require(0 <= first < end, f"a release's rows must be some, not {first}..{end}")
        require(0 <= self.cycle < LARGEST, f"a release's cycle must be any, not {self.cycle}")


def check_releases(program: "Program") -> None:
    """Checks that a program may have releases, and that they are all rows of all its uploads.

    Raises
    ------
    ProgramError
        If there are some, and its steps are not uploads, one run and downloads, it has two places,
        or rows are missing, repeated or out of order.
    """
    releases, where = program.releases, f"program {program.name!r}: its releases"
    if not releases:
        return
    runs = [step for step in program.steps if isinstance(step, RunStep)]
    good = len(runs) == 1 and odd_step(program.steps) is None and not runs[0].overlapped
    require(good, f"{where} need whole tensors uploaded, one run, whole tensors downloaded")
    kept = bool(program.units or program.loads or program.variables or program.alternate)
    require(not kept, f"{where} need a program with one place that streams and keeps nothing")
    expected = [
        (step.tensor, 0, place.height)
        for step in program.steps
        if isinstance(step, UploadStep)
        and (place := program.tensors[step.tensor].placement) is not None
    ]
    found = list(_joined(releases))
    require(found == expected, f"{where} must be all rows of {expected}, in order, not {found}")
    for release in releases:
        for stream, count, most in zip(
            STREAMS, release.completed, runs[0].instructions, strict=True
        ):
            good = 0 <= count <= most
            require(good, f"{where} wait for {count} of {most} {stream} instructions")


def _joined(releases: Sequence[Release]) -> list[tuple[str, int, int]]:
    """Releases of rows that follow each other as one."""
    joined: list[tuple[str, int, int]] = []
    for release in releases:
        first, end = release.rows
        if joined and joined[-1][0] == release.tensor and joined[-1][2] == first:
            joined[-1] = (release.tensor, joined[-1][1], end)
        else:
            joined.append((release.tensor, first, end))
    return joined
