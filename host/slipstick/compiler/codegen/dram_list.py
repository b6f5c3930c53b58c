"""A streamed program as a list for the DMA: the same steps, with DRAM in the host's place."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slipstick_rtl.dma.transfer import TRANSFER_WORDS, WORD_BYTES, Operation, Transfer

from ...program import Program
from ...program.steps import DownloadStep, HostStep, RunStep, Step, UploadStep
from ..timing.dram_timeline import DramTimeline, predict
from .dram_blocks import joined
from .dram_places import Places, place_tensors
from .dram_tensors import DramTensor, NotForDramError, make_layouts
from .dram_transfers import make_transfers, place_constants

_HostSteps = tuple[HostStep, ...]
_RESHAPE = "reshape"


@dataclass(frozen=True)
class DramProgram:
    """Describes what lies in DRAM, and what the host does before and after.

    Parameters
    ----------
    image : bytes
        From word 0 on: constants, and the list.
    first : int
        The list's first word.
    tensors : mapping of DramTensor by name
        What the host writes before and reads after the list, and what is spilt between.
    before, after : tuple of HostStep
    inputs, outputs : tuple of str
        That the host writes, and reads.
    words : int
        Of DRAM that an inference moves; the list itself is in it.
    end : int
        The first word behind everything.
    timeline : DramTimeline
        When the DMA moves what, and when the core works, predicted.
    """

    image: bytes
    first: int
    tensors: Mapping[str, DramTensor]
    before: tuple[HostStep, ...]
    after: tuple[HostStep, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    words: int
    end: int
    timeline: DramTimeline


def make_dram_program(program: Program, *, every: bool = False) -> DramProgram:
    """Makes the list of a streamed program.

    What is in the memories when the list begins is not known, but for the program's ``images``.

    Parameters
    ----------
    program : Program
    every : bool
        Whether all tensors that come to DRAM are outputs, and last until the list has ended.

    Raises
    ------
    NotForDramError
        If the host has work between runs, a part lies so that the DMA cannot move it, or the DRAM
        is too small.
    """
    chip = program.hardware.dram_chip
    if chip is None:
        raise NotForDramError("the hardware must have DRAM")
    before, steps, after, reshaped = _split(program.steps)
    blocks, loads = place_constants(program, steps)
    constants = b"".join(blocks)
    first = len(constants) // WORD_BYTES
    layouts = make_layouts(program, steps)

    def listed(places: Places) -> list[Transfer]:
        transfers = make_transfers(program, steps, loads, layouts, places)
        return list(joined(transfers, constants, program.hardware))

    # the list's length does not depend on where tensors are
    transfers = listed(Counter())
    uploaded = [step.tensor for step in steps if isinstance(step, UploadStep)]
    stored = [step.tensor for step in steps if isinstance(step, DownloadStep)]
    stored += [name for name, source in reshaped.items() if source in stored]
    inputs = tuple(name for name in dict.fromkeys(uploaded) if name not in stored)
    wanted = {name for step in after for name in step.inputs} | set(program.outputs)
    outputs = tuple(name for name in dict.fromkeys(stored) if every or name in wanted)
    lasting = {reshaped.get(name, name) for name in outputs}
    begin = first + len(transfers) * TRANSFER_WORDS
    room = chip.bytes // WORD_BYTES - begin
    places, words = place_tensors(program, steps, layouts, inputs, lasting, room)
    end = begin + words
    if words > room:
        raise NotForDramError(
            f"constants, list and tensors must fit {chip.bytes} bytes of DRAM, not"
            f" {end * WORD_BYTES}"
        )
    places = {key: begin + place for key, place in places.items()}
    tensors = {
        name: replace(next(iter(shapes.values())), place=places[name, 0])
        for name, shapes in layouts.items()
    }
    tensors |= {name: tensors[source] for name, source in reshaped.items() if source in tensors}
    transfers = listed(places)
    moved = (t.words for t in transfers if t.operation in (Operation.LOAD, Operation.STORE))
    return DramProgram(
        image=b"".join([constants, *(transfer.pack() for transfer in transfers)]),
        first=first,
        tensors=tensors,
        before=before,
        after=after,
        inputs=inputs,
        outputs=outputs,
        words=sum(moved) + len(transfers) * TRANSFER_WORDS,
        end=end,
        timeline=predict(
            transfers,
            [step.cycles for step in steps if isinstance(step, RunStep)],
            program.hardware,
        ),
    )


def find_dram_program(program: Program, *, every: bool = False) -> DramProgram | None:
    """The list of a program that runs from DRAM; None for others, which the host streams.

    ``every`` is that of ``make_dram_program``.
    """
    try:
        return _list_of(program, every)
    except NotForDramError:
        return None


def why_not_from_dram(program: Program) -> str:
    """Tells why a program cannot run from the hardware's DRAM; empty if it can, or has no need."""
    if not program.hardware.dram or not program.is_streamed:
        return ""
    try:
        _list_of(program, every=False)
    except NotForDramError as error:
        return str(error)
    return ""


def _list_of(program: Program, every: bool) -> DramProgram:
    if not program.is_streamed:
        raise NotForDramError("the program must be larger than the chip")
    if program.variables:
        raise NotForDramError("the network must keep nothing from one inference to the next")
    return make_dram_program(program, every=every)


def _split(
    steps: Sequence[Step],
) -> tuple[_HostSteps, list[Step], _HostSteps, dict[str, str]]:
    """The host's steps before and after, and the device's between; and which tensors are only
    others in another shape: the device's steps name these others."""
    is_host = [isinstance(step, HostStep) for step in steps]
    if all(is_host):
        raise NotForDramError("the device must have work")
    first = is_host.index(False)
    end = len(steps) - is_host[::-1].index(False)
    between, reshaped = list[Step](), dict[str, str]()
    for step in steps[first:end]:
        if isinstance(step, UploadStep | DownloadStep):
            between.append(replace(step, tensor=reshaped.get(step.tensor, step.tensor)))
            continue
        if not isinstance(step, HostStep):
            between.append(step)
            continue
        if step.operator != _RESHAPE:
            raise NotForDramError(f"the host must not have work between runs, such as {step.name}")
        source = step.inputs[0]
        reshaped[step.outputs[0]] = reshaped.get(source, source)
    before = tuple(step for step in steps[:first] if isinstance(step, HostStep))
    after = tuple(step for step in steps[end:] if isinstance(step, HostStep))
    return before, between, after, reshaped
