"""A streamed program as a list for the DMA: the same steps, with DRAM in the host's place."""

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from slipstick_rtl.dma.transfer import TRANSFER_WORDS, WORD_BYTES, Operation, Transfer

from ...program import Program
from ...program.resident_loads import Loaded
from ...program.steps import (
    DownloadStep,
    HostStep,
    LoadStep,
    Part,
    Placement,
    RunStep,
    Step,
    UploadStep,
)
from ..memory.planner import Block, Piece, PlanError, plan
from ..timing.dram_timeline import DramTimeline, predict
from .dram_blocks import constant_loads


class NotForDramError(ValueError):
    """A program cannot be a list for the DMA; the message says why."""


@dataclass(frozen=True)
class DramTensor:
    """Where a tensor lies in DRAM: NHWC, each row from a word on.

    Parameters
    ----------
    place : int
        Its first word.
    height, width, channels : int
        Of an image.
    dense : bool
        A row's bytes lie side by side; otherwise each pixel begins with a word.
    """

    place: int
    height: int
    width: int
    channels: int
    dense: bool

    @property
    def pixel_words(self) -> int:
        """Of a pixel, unless the rows are dense."""
        return -(-self.channels // WORD_BYTES)

    @property
    def row_words(self) -> int:
        """From row to row."""
        if self.dense:
            return -(-self.width * self.channels // WORD_BYTES)
        return self.width * self.pixel_words

    @property
    def words(self) -> int:
        """Of an image; those of a batch lie one behind the other."""
        return self.height * self.row_words

    @property
    def contiguous(self) -> bool:
        """Nothing lies between its rows."""
        return self.dense and (self.height == 1 or self.width * self.channels % WORD_BYTES == 0)

    def pack(self, values: np.ndarray) -> bytes:
        """An int8 tensor as it lies in DRAM."""
        box = np.ascontiguousarray(values, np.int8).view(np.uint8)
        line = (self.height, -1) if self.dense else (self.height * self.width, -1)
        box = box.reshape(line)
        padded = np.zeros((len(box), -(-box.shape[1] // WORD_BYTES) * WORD_BYTES), np.uint8)
        padded[:, : box.shape[1]] = box
        return padded.tobytes()

    def unpack(self, packed: bytes) -> np.ndarray:
        """The int8 tensor, (height, width, channels), that lies so in DRAM."""
        count = self.height if self.dense else self.height * self.width
        length = self.width * self.channels if self.dense else self.channels
        lines = np.frombuffer(packed, np.uint8).reshape(count, -1)[:, :length]
        return lines.copy().view(np.int8).reshape(self.height, self.width, self.channels)


@dataclass(frozen=True)
class DramProgram:
    """What lies in DRAM, and what the host does before and after.

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
    blocks, loads = _constants(program, steps)
    first = sum(map(len, blocks)) // WORD_BYTES
    layouts = _layouts(program, steps)
    # the list's length does not depend on where tensors are
    transfers = list(_transfers(program, steps, loads, layouts, Counter()))
    uploaded = [step.tensor for step in steps if isinstance(step, UploadStep)]
    stored = [step.tensor for step in steps if isinstance(step, DownloadStep)]
    stored += [name for name, source in reshaped.items() if source in stored]
    inputs = tuple(name for name in dict.fromkeys(uploaded) if name not in stored)
    wanted = {name for step in after for name in step.inputs} | set(program.outputs)
    outputs = tuple(name for name in dict.fromkeys(stored) if every or name in wanted)
    lasting = {reshaped.get(name, name) for name in outputs}
    begin = first + len(transfers) * TRANSFER_WORDS
    room = chip.bytes // WORD_BYTES - begin
    places, words = _places(program, steps, layouts, inputs, lasting, room)
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
    transfers = list(_transfers(program, steps, loads, layouts, places))
    moved = (t.words for t in transfers if t.operation in (Operation.LOAD, Operation.STORE))
    return DramProgram(
        image=b"".join([*blocks, *(transfer.pack() for transfer in transfers)]),
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
    """What keeps a program from DRAM that the hardware has; empty: nothing, or it has no need."""
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


_HostSteps = tuple[HostStep, ...]
_Shape = tuple[int, int, int]
_Layouts = dict[str, dict[_Shape, DramTensor]]
"""Of a tensor that is moved, for each shape that a part takes it for."""
_Places = Mapping[tuple[str, int], int]
"""The first word of each tensor of each image."""
_RESHAPE = "reshape"


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


def _constants(
    program: Program, steps: Sequence[Step]
) -> tuple[list[bytes], dict[int, list[Transfer]]]:
    """The blocks from word 0 on, and the LOADs of each of the program's ``loads``."""
    blocks, loads, end = list[bytes](), dict[int, list[Transfer]](), 0
    # the same contents at several addresses of the chip are one block
    places = dict[tuple[int, bytes], int]()
    for step in steps:
        if isinstance(step, LoadStep) and step.load not in loads:
            image = program.loads[step.load]
            place = places.setdefault((image.space, image.data), end)
            data, loads[step.load] = constant_loads(image, program.hardware, place)
            if place == end:
                blocks.append(data)
                end += len(data) // WORD_BYTES
    return blocks, loads


def _layouts(program: Program, steps: Sequence[Step]) -> _Layouts:
    """How each tensor that is moved lies in DRAM; all from word 0 on."""
    parts, is_dense = dict[str, list[Part]](), dict[tuple[str, _Shape], bool]()
    for step in steps:
        if isinstance(step, UploadStep | DownloadStep):
            part = _part(program, step)
            parts.setdefault(step.tensor, []).append(part)
            key, stored = (step.tensor, part.whole), isinstance(step, DownloadStep)
            is_dense[key] = is_dense.get(key, True) and _is_dense(part, stored)
    layouts = _Layouts()
    for name, some in parts.items():
        shapes = dict.fromkeys(part.whole for part in some)
        found = {}
        for shape in shapes:
            height, width, channels = shape
            dense = is_dense[name, shape] or channels % WORD_BYTES == 0
            found[shape] = DramTensor(0, height, width, channels, dense)
        # the same bytes in every shape
        if len(found) > 1 and not all(tensor.contiguous for tensor in found.values()):
            raise NotForDramError(f"the host must not reshape {name} between runs")
        layouts[name] = found
    return layouts


def _places(
    program: Program,
    steps: Sequence[Step],
    layouts: _Layouts,
    inputs: Collection[str],
    outputs: Collection[str],
    room: int,
) -> tuple[dict[tuple[str, int], int], int]:
    """Places for the tensors of all images, from word 0 on, and how many words they are: no more
    than there is ``room``, if that is possible.

    What is not needed at the same time may lie at the same place. The images of a tensor that the
    host writes or reads lie one behind the other.
    """
    spans = dict[tuple[str, int], tuple[int, int]]()
    for at, step in enumerate(steps):
        if isinstance(step, UploadStep | DownloadStep):
            key = step.tensor, step.image
            spans[key] = spans.get(key, (at, at))[0], at
    blocks, offsets = list[Block](), dict[tuple[str, int], tuple[str, int]]()
    for name, shapes in layouts.items():
        words = next(iter(shapes.values())).words
        images = range(program.batch)
        apart = name not in inputs and name not in outputs
        for members in [[image] for image in images] if apart else [images]:
            pieces = list[Piece]()
            for number, image in enumerate(members):
                first, last = spans[name, image]
                first = 0 if name in inputs else first
                last = len(steps) if name in outputs else last
                pieces.append(Piece(number * words, words, first, last))
            blocks.append(_block(f"{name}\0{members[0]}", pieces))
            for piece, image in zip(pieces, members, strict=True):
                offsets[name, image] = blocks[-1].name, piece.offset
    found = _planned(blocks, room)
    end = max((found[block.name] + block.bytes for block in blocks), default=0)
    return {key: found[title] + offset for key, (title, offset) in offsets.items()}, end


def _block(name: str, pieces: Sequence[Piece]) -> Block:
    """Pieces one behind the other, each of which has its own time."""
    first, last = min(piece.first for piece in pieces), max(piece.last for piece in pieces)
    return Block(name, sum(piece.bytes for piece in pieces), first, last, tuple(pieces))


def _planned(blocks: Sequence[Block], room: int) -> dict[str, int]:
    """Addresses by name, in the room or, if they have none there, in more."""
    parts = [part for block in blocks for part in block.parts]
    moments = sorted({moment for part in parts for moment in (part.first, part.last)})
    ranks = {moment: rank for rank, moment in enumerate(moments)}
    ranked = [
        _block(
            block.name,
            [replace(part, first=ranks[part.first], last=ranks[part.last]) for part in block.parts],
        )
        for block in blocks
    ]
    try:
        return plan(ranked, room, 1, [f"step {moment}" for moment in moments])
    except PlanError:
        return plan(ranked, sys.maxsize, 1, ())


def _is_dense(part: Part, stored: bool) -> bool:
    """Rows of the part are runs that begin with a word; stored, they end with one."""
    _, width, channels = part.whole
    (_, x, _), place = part.origin, part.placement
    end = x + place.width
    return (
        place.channels == channels
        and (place.pixel_pitch == channels or place.width == 1)
        and x * channels % WORD_BYTES == 0
        and (not stored or end == width or end * channels % WORD_BYTES == 0)
    )


def _part(program: Program, step: UploadStep | DownloadStep) -> Part:
    if step.part is not None:
        return step.part
    place = program.tensors[step.tensor].placement
    assert place is not None
    return Part(place, (0, 0, 0), (place.height, place.width, place.channels))


def _transfers(
    program: Program,
    steps: Sequence[Step],
    loads: Mapping[int, Sequence[Transfer]],
    tensors: _Layouts,
    places: _Places,
) -> Iterator[Transfer]:
    """The list. A load that is still there is left out."""
    there, left = Loaded(program.loads, program.hardware), None
    for step in steps:
        if isinstance(step, LoadStep):
            if step.load not in there:
                there.add(step.load)
                yield from loads[step.load]
        elif isinstance(step, RunStep):
            if not step.clear_counters:
                raise NotForDramError("a run must clear the counters of instructions")
            yield Transfer(operation=Operation.RUN, pcs=(step.pcs[0], step.pcs[1]))
            left = step.overlapped
            if left == 0:
                yield Transfer(operation=Operation.WAIT)
                left = None
            continue
        elif isinstance(step, UploadStep):
            yield _box(program, step, tensors, places, Operation.LOAD)
        elif isinstance(step, DownloadStep):
            yield _box(program, step, tensors, places, Operation.STORE)
        if left is not None:
            left -= 1
            if left == 0:
                yield Transfer(operation=Operation.WAIT)
                left = None
    yield Transfer(operation=Operation.END)


def _box(
    program: Program,
    step: UploadStep | DownloadStep,
    tensors: _Layouts,
    places: _Places,
    operation: Operation,
) -> Transfer:
    part = _part(program, step)
    tensor = tensors[step.tensor][part.whole]
    place, (y, x, c) = part.placement, part.origin
    whole_pixels = place.channels == tensor.channels and place.pixel_pitch == place.channels
    if tensor.dense and whole_pixels:
        offset = x * tensor.channels
        run_bytes, runs, run_pitch, run_words = place.width * place.channels, 1, 0, 0
    else:
        offset = (x * tensor.pixel_words * WORD_BYTES) + c
        run_bytes, runs = place.channels, place.width
        run_pitch, run_words = place.pixel_pitch, tensor.pixel_words
    _check(program, step, place, offset, run_bytes, operation, tensor, x, c)
    first = places[step.tensor, step.image]
    return Transfer(
        operation=operation,
        chip=place.address,
        dram=first + y * tensor.row_words + offset // WORD_BYTES,
        run_bytes=run_bytes,
        runs=runs,
        rows=place.height,
        chip_run_pitch=run_pitch,
        chip_row_pitch=place.row_pitch,
        dram_run_pitch=run_words,
        dram_row_pitch=tensor.row_words,
    )


def _check(
    program: Program,
    step: UploadStep | DownloadStep,
    place: Placement,
    offset: int,
    run_bytes: int,
    operation: Operation,
    tensor: DramTensor,
    x: int,
    c: int,
) -> None:
    """Runs begin with a word; what a STORE fills up is nobody's."""
    if offset % WORD_BYTES:
        raise NotForDramError(f"a part of {step.tensor} must begin with a word, not byte {offset}")
    if operation is not Operation.STORE:
        return
    chunk = min(program.hardware.lanes, WORD_BYTES)
    pitches = place.address, place.row_pitch, place.pixel_pitch
    if any(pitch % chunk for pitch in pitches if pitch):
        raise NotForDramError(
            f"a part of {step.tensor} must lie at multiples of {chunk} bytes, not {pitches}"
        )
    ends_row = x + place.width == tensor.width
    ends_pixel = c + place.channels == tensor.channels
    if run_bytes % WORD_BYTES and not (ends_pixel and (ends_row or not tensor.dense)):
        raise NotForDramError(f"a part of {step.tensor} must end with a word")
