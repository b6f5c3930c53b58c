"""The transfers of a list for the DMA, in the order of a program's steps, and its constants."""

from collections.abc import Iterator, Mapping, Sequence

from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

from ...program import Program
from ...program.resident_loads import Loaded
from ...program.steps import DownloadStep, LoadStep, Placement, RunStep, Step, UploadStep
from .dram_blocks import constant_loads
from .dram_places import Places
from .dram_tensors import DramTensor, Layouts, NotForDramError, part_of


def place_constants(
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


def make_transfers(
    program: Program,
    steps: Sequence[Step],
    loads: Mapping[int, Sequence[Transfer]],
    tensors: Layouts,
    places: Places,
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
    tensors: Layouts,
    places: Places,
    operation: Operation,
) -> Transfer:
    part = part_of(program, step)
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
