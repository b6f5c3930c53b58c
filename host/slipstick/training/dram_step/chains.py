"""Lists works segment by segment: each image goes through a segment's works, then the next one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_tensors import DramTensor
from ...program.steps import Placement
from .chip import Rings
from .durations import busy_cycles, run_cycles
from .effects import Access, Memory
from .inner import InnerGradient, InnerLister
from .kernels import KernelPlace
from .listing import Listing
from .notes import NoteReader, note_pitch
from .places import box
from .relocation import Streams, behind
from .segments import Segment, code_of, last_words, program_of
from .works import BlockWork, Key, key_of


@dataclass(frozen=True)
class Wanted:
    """Tensors that a list leaves in DRAM.

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

    The lanes' notes of a work are read by the next run, while the array is at work: those of the
    last work by the next image's first run, or, behind the last image, by a run of their own.

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
    inner : InnerGradient, optional
        A gradient among the works, of errors that are laid out before the next image's last work.
        It lies behind all bytes of the segment.
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
        inner: InnerGradient | None = None,
    ) -> None:
        self._segment, self._notes, self._listing = segment, notes, listing
        self._wanted, self._reader, self._configuration = wanted, reader, configuration
        code = segment.code_words()
        weight = sum(each.constant_words(configuration) for each in segment.templates)
        self._code = rings.instructions.take(code + (inner.code_words if inner else 0))
        self._weight = rings.weights.take(weight + (inner.weight_words if inner else 0))
        self._inner: InnerLister | None = None
        if inner is not None:
            end = configuration.activation_bytes - inner.activation_bytes
            places = end, self._weight + weight, self._code + code
            self._inner = InnerLister(inner, listing, *places)
        self._runs = list[list[_Run]]()
        self._pitch = note_pitch(configuration)

    def list_batch(self, batch: int) -> None:
        """Adds the steps of so many images."""
        self._runs = list(self._make_runs())
        if self._inner is not None:
            self._inner.begin()
        for image in range(batch):
            copy = image % self._segment.copies
            self._list_image(image, copy)
        if self._segment.templates[-1].work.noted:
            self._read_last_notes(batch)
        if self._inner is not None:
            self._inner.add(batch - 1)
            self._inner.end()

    def _make_runs(self) -> Iterator[list["_Run"]]:
        """Yields the runs of each work, one per copy."""
        code, weight = self._code, self._weight
        for number, template in enumerate(self._segment.templates):
            words = template.constant_words(self._configuration)
            made = list[_Run]()
            for copy in range(self._segment.copies):
                streams = program_of(self._segment, number, copy, weight, self._configuration)
                notes = self._notes_before(number, copy)
                if notes is not None:
                    streams = behind(streams, self._reader.drains(notes))
                made.append(self._run_of(streams, code, weight, words))
                code += len(made[-1].data) // 4
            weight += words
            yield made

    def _run_of(self, streams: Streams, code: int, weight: int, words: int) -> "_Run":
        cycles = run_cycles(streams.matrix, streams.post, self._configuration)
        data, second = code_of(streams)
        busy = busy_cycles(streams.post)
        return _Run(code, data, (code, code + second), weight, words, cycles, busy)

    def _notes_before(self, number: int, copy: int) -> int | None:
        """Returns where a run puts the notes of the one before it; None if that one has none."""
        templates, copies = self._segment.templates, self._segment.copies
        if number == 0:
            # of the image before, which lies in the copy before
            number, copy = len(templates), (copy - 1) % copies
        if not templates[number - 1].work.noted:
            return None
        noted = sum(each.work.noted for each in templates[: number - 1])
        return self._segment.notes + copy * self._segment.copy_bytes + noted * self._pitch

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
            if self._inner is not None and image and number == max(len(segment.templates) - 2, 0):
                # among the largest maps: what they leave is stored beside it
                self._inner.add(image - 1)
            if isinstance(work, BlockWork):
                self._list_block(work, number, image, copy)
            else:
                self._run(number, copy, self._touched(number, copy))
            if number == 0 and image and segment.templates[-1].work.noted:
                self._store_notes(image - 1, last=True)
            for tensor in work.writes:
                resident.add(key_of(tensor))
                if tensor.place in self._wanted.stored:
                    listing.move(box(Operation.STORE, self._place(tensor, copy), tensor, image))
                self._store_kernels(tensor, image, copy)
        self._store_notes(image, last=False)

    def _read_last_notes(self, batch: int) -> None:
        """A run that reads the notes of the last image's last work."""
        copy = batch % self._segment.copies
        address = self._notes_before(0, copy)
        assert address is not None
        first = self._code + self._segment.code_words() - last_words(self._segment.templates)
        run = self._run_of(Streams(post=self._reader.drains(address)), first, self._weight, 0)
        self._listing.load_constants(Space.INSTRUCTIONS, run.code, run.data)
        self._list_run(run, [self._noting(address)])
        self._store_notes(batch - 1, last=True)

    def _noting(self, address: int) -> Access:
        return Access(Memory.ACTIVATIONS, address, address + self._pitch, True)

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
        return found

    def _run(self, number: int, copy: int, accesses: Sequence[Access]) -> None:
        notes = self._notes_before(number, copy)
        noting = [] if notes is None else [self._noting(notes)]
        self._list_run(self._runs[number][copy], [*accesses, *noting])

    def _list_run(self, run: "_Run", accesses: Sequence[Access]) -> None:
        groups = self._configuration.weight_word_bytes
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
        self._listing.run(run.pcs, [*accesses, *constants, code], run.cycles, run.busy)

    def _store_kernels(self, tensor: DramTensor, image: int, copy: int) -> None:
        """Errors that are on the chip are laid out as kernels, once."""
        if (key_of(tensor), image) in self._wanted.laid:
            return
        self._wanted.laid.add((key_of(tensor), image))
        for kernel in self._wanted.kernels.get(key_of(tensor), ()):
            for store in kernel.stores(self._place(tensor, copy), image):
                self._listing.move(store)

    def _store_notes(self, image: int, *, last: bool) -> None:
        """Stores an image's notes: those of the last work, or those of the works before it."""
        segment, count = self._segment, len(self._segment.noted)
        before = count - segment.templates[-1].work.noted
        first, number = (before, count - before) if last else (0, before)
        if number:
            copy = image % segment.copies * segment.copy_bytes
            self._listing.move(
                Transfer(
                    operation=Operation.STORE,
                    chip=segment.notes + copy + first * self._pitch,
                    dram=self._notes + (image * count + first) * self._pitch // WORD_BYTES,
                    run_bytes=number * self._pitch,
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
    cycles, busy : int
        Predicted.
    """

    code: int
    data: bytes
    pcs: tuple[int, int]
    weight: int
    words: int
    cycles: int
    busy: int


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
