"""Plans a recorded step: segments of works, what is stored, and the lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...errors import CapacityError
from ...program.steps import Placement
from .chains import ChainLister, Wanted, load_notes
from .chip import Pitches, Ring, Rings, choose_pitches
from .gradient_lists import GradientLister, GradientWork
from .inner import InnerGradient
from .listing import Listed, Listing
from .notes import NoteReader, note_pitch
from .places import box
from .recorded import Note, Pass
from .recorder import RecordingArithmetic
from .segments import Segment, Template, cut_segments, make_templates
from .weight_copies import copy_weights
from .works import BlockWork, Key, key_of

_ROOMY = (0.25, 1.0)
"""What segments are tried with: ``cut_segments`` says what it is."""
_EARLIER = 4
"""Works that may go to the next segment although there is room for them."""
_PREDICTED = 2, 4
"""Images: what the further ones take chooses among segments."""


Probes = Callable[[], Sequence[RecordingArithmetic]]
"""The step at hand with weights that tell where they are, as ``weight_copies.probe`` has them."""

_Choice = tuple[InnerGradient | None, list[Segment]]


@dataclass(frozen=True)
class PlannedPass:
    """A pass that has been planned.

    Parameters
    ----------
    recorded : Pass
    segments : sequence of Segment
    notes_words : sequence of int
        The word of each segment's notes.
    notes : sequence of Note
    pitches : mapping
        Of tensors on the chip.
    inner : str
        The layer whose gradient is made among the works of the last segment; empty: none.
    """

    recorded: Pass
    segments: Sequence[Segment]
    notes_words: Sequence[int]
    notes: Sequence[Note]
    pitches: Pitches
    inner: str

    @property
    def templates(self) -> list[Template]:
        """Of all segments."""
        return [each for segment in self.segments for each in segment.templates]

    def renewed(self, recorded: Pass, templates: Sequence[Template]) -> "PlannedPass":
        """The same with other constants and exponents."""
        notes = [replace(each, exponent=recorded.exponents[each.key]) for each in self.notes]
        # the notes have room among these answers already
        recorded = replace(recorded, answers=self.recorded.answers)
        some, segments = iter(templates), list[Segment]()
        for segment in self.segments:
            segments.append(replace(segment, templates=[next(some) for _ in segment.templates]))
        return replace(self, recorded=recorded, segments=segments, notes=notes)


class StepPlan:
    """A step that can be listed.

    Parameters
    ----------
    recorded : RecordingArithmetic
        Its arenas give words for notes and for zeros.
    configuration : Configuration
    keeps : bool
        All tensors are stored, to compare them.

    Members
    -------
    forward, backward : PlannedPass
    stored : frozenset of int
        The first words of tensors that will be in DRAM.
    fills : list of (int, int, int)
        As ``RecordingArithmetic`` has them.
    first : int
        The word of DRAM for the lists.

    Raises
    ------
    CapacityError
        If a work does not fit the memories.
    """

    def __init__(
        self, recorded: RecordingArithmetic, configuration: Configuration, *, keeps: bool
    ) -> None:
        self.recorded, self._configuration = recorded, configuration
        self._reader = NoteReader(configuration)
        self._widest = 0
        self.forward = self._plan(recorded.forward)
        self.backward = self._plan(recorded.backward)
        self._zeros = recorded.fill(-(-self._widest // WORD_BYTES), 0) if self._widest else 0
        self.fills = list(recorded.fills)
        self.stored = frozenset(self._find_stored(keeps))
        self.first, self._listed = 0, list[Listed]()
        self._copies, self._copies_entry = b"", 0

    def _plan(self, some: Pass) -> PlannedPass:
        configuration = self._configuration
        pitches = choose_pitches(some.works, configuration)
        for work in some.works:
            for tensor in work.cleared:
                self._widest = max(self._widest, pitches[key_of(tensor)][1])
        inner, segments = self._best_inner(some, pitches)
        size, words, notes = note_pitch(configuration), list[int](), list[Note]()
        for segment in segments:
            pitch = len(segment.noted) * size // WORD_BYTES
            words.append(some.answers.take(self.recorded.batch * pitch))
            first = (words[-1] - some.answers.first) * WORD_BYTES
            notes += [
                Note(key, some.exponents[key], first + number * size, pitch * WORD_BYTES)
                for number, key in enumerate(segment.noted)
            ]
        return PlannedPass(some, segments, words, notes, pitches, inner.work.name if inner else "")

    def _best_inner(
        self, some: Pass, pitches: Pitches
    ) -> tuple[InnerGradient | None, list[Segment]]:
        """The gradient that is made among the works, and their segments."""
        configuration, found = self._configuration, list[_Choice]()
        largest = max(
            (each for each in some.gradients if each.program.fits_inside),
            key=lambda work: work.program.loaded_bytes,
            default=None,
        )
        choices: list[InnerGradient | None] = [None]
        if largest is not None and some.works and self.recorded.batch >= _PREDICTED[1]:
            choices.append(InnerGradient(largest, configuration))
        for inner in choices:
            try:
                halved = inner is not None
                templates = make_templates(some.works, pitches, configuration, halved=halved)
                segments = self._best_segments(templates, pitches, inner)
            except CapacityError:
                if inner is None:
                    raise
                continue
            found.append((inner, segments))
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda each: self._predict(each[1], each[0], some.gradients))

    def _room(self, inner: InnerGradient | None) -> tuple[int, int, int]:
        """Words of instructions and of weights, and bytes of activations, for a segment."""
        configuration = self._configuration
        code, weights, activations = (
            (inner.code_words, inner.weight_words, inner.activation_bytes) if inner else (0, 0, 0)
        )
        return (
            configuration.instruction_words - code,
            configuration.weight_words - self._reader.words - weights,
            configuration.activation_bytes - activations,
        )

    def _best_segments(
        self, templates: Sequence[Template], pitches: Pitches, inner: InnerGradient | None
    ) -> list[Segment]:
        """Those that take the fewest cycles, predicted for a few images."""
        if not templates:
            return []
        configuration, room = self._configuration, self._room(inner)
        found = dict[tuple[int, ...], list[Segment]]()

        def add(roomy: float, cuts: Sequence[int]) -> None:
            ends = [*cuts, len(templates)]
            parts = [templates[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
            some = [
                segment
                for part in parts
                for segment in cut_segments(part, pitches, configuration, room, roomy)
            ]
            found.setdefault(tuple(len(each.templates) for each in some), some)

        add(0.0, ())
        (first,) = found.values()
        if first[0].share == 1.0 and len(first) == 1 or self.recorded.batch < _PREDICTED[1]:
            return first
        for roomy in _ROOMY:
            add(roomy, ())
        if len(first) > 1:
            end = len(first[0].templates)
            for cut in range(max(1, end - _EARLIER), end):
                add(0.0, (cut,))
        return min(found.values(), key=lambda segments: self._predict(segments, inner, ()))

    def _predict(
        self,
        segments: Sequence[Segment],
        inner: InnerGradient | None,
        gradients: Sequence[GradientWork],
    ) -> int:
        """Cycles of an image among others."""
        fewer, more = (
            self._predict_batch(segments, inner, gradients, batch) for batch in _PREDICTED
        )
        return more - fewer

    def _predict_batch(
        self,
        segments: Sequence[Segment],
        inner: InnerGradient | None,
        gradients: Sequence[GradientWork],
        batch: int,
    ) -> int:
        recorded = self.recorded
        stored = {recorded.logits.tensor.place}
        stored.update(each.image.place for each in recorded.backward.gradients)
        for work in recorded.backward.works:
            stored.update(each.place for each in work.reads)
        for segment in segments:
            stored.update(_loaded(segment))
        listing = Listing(self._configuration, 0)
        wanted = Wanted(stored, recorded.kernels, 0)
        rings = self._list_chains(segments, [0] * len(segments), wanted, listing, batch, inner)
        self._list_gradients(gradients, inner, listing, rings, batch)
        return listing.predict()

    def _find_stored(self, keeps: bool) -> set[int]:
        """Tensors that something loads, and those that the host reads."""
        found = {self.recorded.logits.tensor.place}
        if keeps:
            found.update(each.place for each in self.recorded.tensors.values())
        for planned in (self.forward, self.backward):
            found.update(each.image.place for each in planned.recorded.gradients)
            for segment in planned.segments:
                found.update(_loaded(segment))
        found.update(tensor.place for tensor in self._untouched)
        return found

    @property
    def _untouched(self) -> list[DramTensor]:
        """Errors of gradients that no other work has on the chip."""
        works = self.backward.recorded.works
        there = {key_of(each) for work in works for each in (*work.reads, *work.writes)}
        return [each for key, each in self.recorded.errors.items() if key not in there]

    def list_passes(self, first: int, probes: Probes) -> None:
        """Writes the lists, for a word of DRAM and those behind it; once.

        Parameters
        ----------
        first : int
        probes : callable
        """
        self.first = first
        if self._listed:
            return
        for planned in (self.forward, self.backward):
            listing = Listing(self._configuration, first)
            self._list(planned, listing)
            listed = listing.finish()
            self._listed.append(listed)
            first += len(listed.contents) // WORD_BYTES
        self._copies = self._list_copies(probes) if self.updates else b""
        self._copies_entry = first

    @property
    def updates(self) -> bool:
        """The device updates the weights."""
        return any(work.masters is not None for work in self.backward.recorded.gradients)

    def _list_copies(self, probes: Probes) -> bytes:
        """A list before the forward list: weights come from their master words."""
        transfers = list[Transfer]()
        made = [self._templates(recorded) for recorded in probes()]
        for listed, some in zip(self._listed, zip(*made, strict=True), strict=True):
            transfers += copy_weights(listed, some, self.recorded.gradients, self._configuration)
        transfers.append(Transfer(operation=Operation.JUMP, dram=self._listed[0].entry))
        return b"".join(transfer.pack() for transfer in transfers)

    def _templates(self, recorded: RecordingArithmetic) -> tuple[list[Template], list[Template]]:
        """The programs of another step, forward and backward, with this one's places."""
        forward, backward = (
            make_templates(
                some.works, planned.pitches, self._configuration, halved=bool(planned.inner)
            )
            for planned, some in (
                (self.forward, recorded.forward),
                (self.backward, recorded.backward),
            )
        )
        return forward, backward

    @property
    def contents(self) -> bytes:
        """Returns what lies in DRAM from ``first`` on."""
        return b"".join(each.contents for each in self._listed) + self._copies

    @property
    def entries(self) -> tuple[int, int]:
        """The first words of the lists."""
        forward, backward = self._listed
        return self._copies_entry if self._copies else forward.entry, backward.entry

    def take(self, recorded: RecordingArithmetic, probes: Probes) -> bool:
        """Puts the weights and shifts of another step into the lists.

        Parameters
        ----------
        recorded : RecordingArithmetic
        probes : callable

        Returns
        -------
        bool
            False if more than constants differ: then nothing is changed.
        """
        passes = (self.forward, recorded.forward), (self.backward, recorded.backward)
        mine = self.recorded
        if (mine.batch, mine.images, mine.loss) != (recorded.batch, recorded.images, recorded.loss):
            return False
        if not all(planned.recorded.is_like(some) for planned, some in passes):
            return False
        made = self._templates(recorded)
        for planned, again in zip((self.forward, self.backward), made, strict=True):
            for old, new in zip(planned.templates, again, strict=True):
                if old.built.streams != new.built.streams:
                    return False
        self.recorded, fits = recorded, True
        self.forward, self.backward = (
            planned.renewed(some, templates)
            for (planned, some), templates in zip(passes, made, strict=True)
        )
        for listed, templates in zip(self._listed, made, strict=True):
            for each in templates:
                fits &= listed.replace(each.work.name, each.built.constants)
        for name, gradient in recorded.gradients.items():
            if gradient.masters is not None:
                self._listed[1].set_shift(name, gradient.masters.shift)
        if not fits:
            self._listed = []
            self.list_passes(self.first, probes)
        return True

    def _list(self, planned: PlannedPass, listing: Listing) -> None:
        wanted = Wanted(self.stored, self.recorded.kernels, self._zeros)
        gradients, batch = planned.recorded.gradients, self.recorded.batch
        inner = next(
            (
                InnerGradient(work, self._configuration)
                for work in gradients
                if work.name == planned.inner
            ),
            None,
        )
        rings = self._list_chains(
            planned.segments, planned.notes_words, wanted, listing, batch, inner
        )
        if planned is self.backward:
            for tensor in self._untouched:
                self._lay_out(tensor, listing)
        self._list_gradients(gradients, inner, listing, rings, batch)

    def _list_gradients(
        self,
        gradients: Sequence[GradientWork],
        inner: InnerGradient | None,
        listing: Listing,
        rings: Rings,
        batch: int,
    ) -> None:
        others = [work for work in gradients if inner is None or work.name != inner.work.name]
        GradientLister(listing, rings, self._configuration).list_all(others, batch)

    def _list_chains(
        self,
        segments: Sequence[Segment],
        notes: Sequence[int],
        wanted: Wanted,
        listing: Listing,
        batch: int,
        inner: InnerGradient | None,
    ) -> Rings:
        configuration = self._configuration
        rings = Rings(
            Ring(0, configuration.instruction_words),
            Ring(self._reader.words, configuration.weight_words),
        )
        if any(segment.noted for segment in segments):
            load_notes(listing, self._reader)
        for number, (segment, words) in enumerate(zip(segments, notes, strict=True)):
            among = inner if number == len(segments) - 1 else None
            lister = ChainLister(
                segment, words, listing, wanted, rings, self._reader, configuration, among
            )
            lister.list_batch(batch)
        return rings

    def _lay_out(self, tensor: DramTensor, listing: Listing) -> None:
        """Errors from DRAM become kernels by way of the chip."""
        pitch = round_up(tensor.channels, self._configuration.lanes)
        row = tensor.width * pitch
        for image in range(self.recorded.batch):
            place = Placement(0, row, pitch, tensor.height, tensor.width, tensor.channels)
            listing.move(box(Operation.LOAD, place, tensor, image))
            for kernel in self.recorded.kernels[key_of(tensor)]:
                for store in kernel.stores(place, image):
                    listing.move(store)


def _loaded(segment: Segment) -> set[int]:
    """The first words of tensors that a segment reads and has not made."""
    made, found = set[Key](), set[int]()
    for template in segment.templates:
        work = template.work
        found.update(each.place for each in work.reads if key_of(each) not in made)
        made.update(key_of(each) for each in work.writes)
        if isinstance(work, BlockWork):
            found.update(each.place for _, each in work.loads)
    return found
