"""The second place of a double-buffered program, and the rules that it must keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import STREAMS

from .steps import DownloadStep, HostStep, Placement, RunStep, Step, UploadStep, require

if TYPE_CHECKING:
    from . import Program


@dataclass(frozen=True, kw_only=True)
class Alternate:
    """The second place of a double-buffered program.

    A run that starts at ``pcs`` reads the program's inputs from ``placements`` and writes its
    outputs there. Meanwhile the host may read and write those of the first place, and the other
    way round. What a run works with in between is common to both: only one runs at a time.

    Parameters
    ----------
    placements : mapping of Placement by tensor name
        The second placement of every tensor that an upload or a download of the program names.
    pcs : tuple of int
        Per instruction stream, the word at which the second copy of its instructions begins.
    """

    placements: Mapping[str, Placement]
    pcs: tuple[int, ...]

    def __post_init__(self) -> None:
        good = len(self.pcs) == len(STREAMS)
        require(good, f"an alternate's pcs must be {len(STREAMS)}, not {len(self.pcs)}")


_ORDER = (HostStep, UploadStep, RunStep, DownloadStep, HostStep)
"""The kinds of a double-buffered program's steps, in their order; of each any number."""


def odd_step(steps: Sequence[Step]) -> int | None:
    """The first step out of the order of ``_ORDER``, or that moves a part of a tensor only."""
    at = 0
    for number, step in enumerate(steps):
        while at < len(_ORDER) and not isinstance(step, _ORDER[at]):
            at += 1
        part = isinstance(step, UploadStep | DownloadStep) and step.part is not None
        if at == len(_ORDER) or part:
            return number
    return None


def moved_tensors(steps: Sequence[Step]) -> tuple[str, ...]:
    """The tensors that the steps upload or download, each once."""
    moved = (step.tensor for step in steps if isinstance(step, UploadStep | DownloadStep))
    return tuple(dict.fromkeys(moved))


def at_second_place(program: "Program") -> "Program":
    """The program that uses its second place only; itself if it has none."""
    alternate = program.alternate
    if alternate is None:
        return program
    tensors = dict(program.tensors)
    for name, place in alternate.placements.items():
        tensors[name] = replace(tensors[name], placement=place)
    steps = tuple(
        replace(step, pcs=alternate.pcs) if isinstance(step, RunStep) else step
        for step in program.steps
    )
    return replace(program, tensors=tensors, steps=steps, alternate=None)


def check_alternate(program: "Program", configuration: Configuration) -> None:
    """Checks that a program may have a second place, and where that lies.

    Raises
    ------
    ProgramError
        If the program's steps are not uploads, one run, and downloads, or the second place is not
        one of the same tensors, lies outside the memories, or is used otherwise.
    """
    alternate, where = program.alternate, f"program {program.name!r}: its second place"
    if alternate is None:
        return
    _check_steps(program, where)
    names = moved_tensors(program.steps)
    odd = sorted(set(names) ^ set(alternate.placements))
    require(not odd, f"{where} must be one of the tensors that are moved, which {odd} are not all")
    words = configuration.instruction_words
    for pc in alternate.pcs:
        require(0 <= pc < words, f"{where} starts at word {pc} of {words} words of instructions")
    for name in names:
        first, second = program.tensors[name].placement, alternate.placements[name]
        alike = first is not None and replace(first, address=second.address) == second
        require(alike, f"{where} of tensor {name!r} must be laid out as {first}, not {second}")
        most = configuration.activation_bytes
        good = second.end <= most
        require(good, f"{where} of tensor {name!r} ends at {second.end}, its memory at {most}")
    _check_apart(program, alternate, where)


def _check_steps(program: "Program", where: str) -> None:
    runs = [step for step in program.steps if isinstance(step, RunStep)]
    require(len(runs) == 1, f"{where} needs a program of one run, not {len(runs)}")
    kept = bool(program.units or program.loads or program.variables)
    require(not kept, f"{where} needs a program that neither streams nor keeps anything")
    require(not runs[0].overlapped, f"{where} needs a run that no transfer overlaps")
    odd = odd_step(program.steps)
    kind = "" if odd is None else type(program.steps[odd]).__name__
    order = "whole tensors uploaded, a run, whole tensors downloaded"
    require(odd is None, f"{where} needs {order}, in that order; step {odd} is {kind}")


def _check_apart(program: "Program", alternate: Alternate, where: str) -> None:
    """No byte of either place is used for anything else."""
    spans = sorted(_spans(program, alternate), key=lambda span: span[0].address)
    last, last_moved = _NOTHING, _NOTHING
    for place, name, is_moved in spans:
        end, other = last if is_moved else last_moved
        require(place.address >= end, f"{where}: tensors {other!r} and {name!r} must not overlap")
        last = max(last, (place.end, name))
        if is_moved:
            last_moved = max(last_moved, (place.end, name))


_NOTHING = (0, "")


def _spans(program: "Program", alternate: Alternate) -> list[tuple[Placement, str, bool]]:
    """Lists what lies in the activation memory, whose it is, and whether it is moved.

    Aliases of a tensor lie where it does: they count once.
    """
    places = {name: tensor.placement for name, tensor in program.tensors.items()}
    owners: dict[tuple[Placement, Placement], str] = {}
    for name, second in alternate.placements.items():
        first = places[name]
        if first is not None and first.bytes:
            owners.setdefault((first, second), name)
    moved = {(first.address, first.end) for first, _ in owners}
    spans = [(place, name, True) for pair, name in owners.items() for place in pair]
    for name, place in places.items():
        if place is not None and place.bytes and (place.address, place.end) not in moved:
            spans.append((place, name, False))
    return spans
