"""Lists works segment by segment: each image goes through a segment's works, then the next one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_tensors import DramTensor
from ...program.steps import Placement
from .chip import Ring
from .durations import run_cycles
from .effects import Access, Memory
from .kernels import KernelPlace
from .listing import Listing
from .notes import NOTE_BYTES, NoteReader
from .places import box
from .segments import Segment, code_of, program_of
from .works import BlockWork, Key, key_of


@dataclass(frozen=True)
class Rings:
    """Words of the memories of instructions and weights.

    Parameters
    ----------
    instructions, weights : Ring
    """

    instructions: Ring
    weights: Ring


@dataclass(frozen=True)
class Wanted:
    """What a list leaves in DRAM.

    Parameters
    ----------
    stored : collection of int
        First words of tensors that are stored when they are made.
    kernels : mapping of sequence of KernelPlace by key
        Errors that are laid out as kernels.
    zeros : int
        The first of the words that are 0.
    laid : set of (Key, int)
        Errors that were laid out already, by image.
    """

    stored: Collection[int]
    kernels: Mapping[Key, Sequence[KernelPlace]]
    zeros: int
    laid: set[tuple[Key, int]] = field(default_factory=set)


def load_notes(listing: Listing, reader: NoteReader) -> None:
    """Lists the loading of what notes are read with."""
    listing.load_constants(Space.WEIGHTS, 0, reader.constants)


class ChainLister:
    """Lists a segment for all images of a batch.

    Parameters
    ----------
    segment : Segment
    notes : int
        The word of DRAM for the notes, those of an image behind those of the one before.
    listing : Listing
    wanted : Wanted
    rings : Rings
    reader : NoteReader
    configuration : Configuration
    """

    def __init__(
        self,
        segment: Segment,
        notes: int,
        listing: Listing,
        wanted: Wanted,
        rings: Rings,
        reader: NoteReader,
        configuration: Configuration,
    ) -> None:
        self._segment, self._notes, self._listing = segment, notes, listing
        self._wanted, self._reader, self._configuration = wanted, reader, configuration
        self._code = rings.instructions.take(segment.code_words())
        self._weight = rings.weights.take(
            sum(each.constant_words(configuration) for each in segment.templates)
        )
        self._runs = list[list[_Run]]()

    def list_batch(self, batch: int) -> None:
        """Adds the steps of so many images."""
        self._runs = list(self._make_runs())
        for image in range(batch):
            copy = image % self._segment.copies
            self._list_image(image, copy)

    def _make_runs(self) -> Iterator[list["_Run"]]:
        """Of each work, for each copy."""
        code, weight, noted = self._code, self._weight, 0
        for number, template in enumerate(self._segment.templates):
            words = template.constant_words(self._configuration)
            made = list[_Run]()
            for copy in range(self._segment.copies):
                matrix, post = program_of(self._segment, number, copy, weight, self._configuration)
                cycles = run_cycles(matrix, post, self._configuration)
                if template.work.noted:
                    address = self._notes_at(copy) + noted * self._note_bytes
                    post += self._reader.drains(address)
                    cycles += _NOTE_CYCLES
                data, second = code_of(matrix, post)
                made.append(_Run(code, data, (code, code + second), weight, words, cycles))
                code += len(data) // 4
            noted += template.work.noted
            weight += words
            yield made

    @property
    def _note_bytes(self) -> int:
        return NOTE_BYTES * self._configuration.lanes

    def _notes_at(self, copy: int) -> int:
        return self._segment.notes + copy * self._segment.copy_bytes

    def _list_image(self, image: int, copy: int) -> None:
        resident, segment = set[Key](), self._segment
        for number, template in enumerate(segment.templates):
            work, listing = template.work, self._listing
            if image < segment.copies:
                self._load_program(number, copy)
            for tensor in dict.fromkeys(work.reads):
                if key_of(tensor) not in resident:
                    if tensor in work.cleared:
                        listing.move(self._clearing(self._place(tensor, copy)))
                    listing.move(box(Operation.LOAD, self._place(tensor, copy), tensor, image))
                    resident.add(key_of(tensor))
                    self._store_kernels(tensor, image, copy)
            for tensor in work.writes:
                if tensor in work.cleared:
                    listing.move(self._clearing(self._place(tensor, copy)))
            if isinstance(work, BlockWork):
                self._list_block(work, number, image, copy)
            else:
                self._run(number, copy, self._touched(number, copy))
            for tensor in work.writes:
                resident.add(key_of(tensor))
                if tensor.place in self._wanted.stored:
                    listing.move(box(Operation.STORE, self._place(tensor, copy), tensor, image))
                self._store_kernels(tensor, image, copy)
        self._store_notes(image, copy)

    def _place(self, tensor: DramTensor, copy: int) -> Placement:
        place = self._segment.places[key_of(tensor)]
        return shifted(place, copy * self._segment.copy_bytes)

    def _load_program(self, number: int, copy: int) -> None:
        run = self._runs[number][copy]
        if copy == 0:
            template = self._segment.templates[number]
            constants, name = template.built.constants, template.work.name
            self._listing.load_constants(Space.WEIGHTS, run.weight, constants, name)
        self._listing.load_constants(Space.INSTRUCTIONS, run.code, run.data)

    def _list_block(self, work: BlockWork, number: int, image: int, copy: int) -> None:
        offset = self._segment.blocks[number] + copy * self._segment.copy_bytes
        for place, tensor in work.loads:
            self._listing.move(box(Operation.LOAD, shifted(place, offset), tensor, image))
        block = Access(Memory.ACTIVATIONS, offset, offset + work.block_bytes, True)
        self._run(number, copy, [block])
        for place, tensor in work.stores:
            self._listing.move(box(Operation.STORE, shifted(place, offset), tensor, image))

    def _touched(self, number: int, copy: int) -> list[Access]:
        """Activations that a work reads and writes."""
        work, found = self._segment.templates[number].work, list[Access]()
        for tensors, writes in ((work.reads, False), (work.writes, True)):
            for tensor in tensors:
                place = self._place(tensor, copy)
                found.append(Access(Memory.ACTIVATIONS, place.address, place.end, writes))
        if work.noted:
            first = self._notes_at(copy)
            end = first + len(self._segment.noted) * self._note_bytes
            found.append(Access(Memory.ACTIVATIONS, first, end, True))
        return found

    def _run(self, number: int, copy: int, accesses: Sequence[Access]) -> None:
        run, groups = self._runs[number][copy], self._configuration.weight_word_bytes
        weights = (
            (0, self._reader.words),
            (run.weight, run.weight + run.words),
        )
        constants = [
            Access(
                Memory.WEIGHTS,
                begin * groups // GROUP_CELLS,
                -(-end * groups // GROUP_CELLS),
                False,
            )
            for begin, end in weights
        ]
        code = Access(Memory.INSTRUCTIONS, run.code, run.code + len(run.data) // 4, False)
        self._listing.run(run.pcs, [*accesses, *constants, code], run.cycles)

    def _store_kernels(self, tensor: DramTensor, image: int, copy: int) -> None:
        """Errors that are on the chip are laid out as kernels, once."""
        if (key_of(tensor), image) in self._wanted.laid:
            return
        self._wanted.laid.add((key_of(tensor), image))
        for kernel in self._wanted.kernels.get(key_of(tensor), ()):
            for store in kernel.stores(self._place(tensor, copy), image):
                self._listing.move(store)

    def _store_notes(self, image: int, copy: int) -> None:
        count = len(self._segment.noted) * self._note_bytes
        if count:
            words = -(-count // WORD_BYTES)
            self._listing.move(
                Transfer(
                    operation=Operation.STORE,
                    chip=self._notes_at(copy),
                    dram=self._notes + image * words,
                    run_bytes=count,
                )
            )

    def _clearing(self, place: Placement) -> Transfer:
        """Zeros all pixels of a tensor on the chip: the same words come for each."""
        return Transfer(
            operation=Operation.LOAD,
            chip=place.address,
            dram=self._wanted.zeros,
            run_bytes=place.pixel_pitch,
            runs=place.width,
            rows=place.height,
            chip_run_pitch=place.pixel_pitch,
            chip_row_pitch=place.row_pitch,
        )


_NOTE_CYCLES = 150
"""That the reading of notes takes, about."""


@dataclass(frozen=True)
class _Run:
    """A program where it lies.

    Parameters
    ----------
    code : int
        The first word of its instructions.
    data : bytes
        These.
    pcs : (int, int)
    weight, words : int
        The first word of its constants, and how many.
    cycles : int
        Predicted.
    """

    code: int
    data: bytes
    pcs: tuple[int, int]
    weight: int
    words: int
    cycles: int


def shifted(place: Placement, offset: int) -> Placement:
    """A placement so many bytes further."""
    return Placement(
        place.address + offset,
        place.row_pitch,
        place.pixel_pitch,
        place.height,
        place.width,
        place.channels,
    )
