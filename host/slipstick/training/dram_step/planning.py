"""Plans a recorded step: segments of works, what is stored, and the lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...program.steps import Placement
from .chains import Wanted
from .chip import Pitches, choose_pitches
from .inner import InnerGradient
from .listing import Listed, Listing
from .notes import note_pitch
from .pass_lister import PassLister
from .places import box
from .recorded import Note, Pass
from .recorder import RecordingArithmetic
from .segment_choice import SegmentChooser, loaded_tensors
from .segments import Segment, Template, make_templates
from .weight_copies import copy_weights
from .works import key_of

Probes = Callable[[], Sequence[RecordingArithmetic]]
"""The step at hand with weights that tell where they are, as ``weight_copies.probe`` has them."""


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
        """Returns the templates of all segments."""
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
        self._lister = PassLister(configuration)
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
        chooser = SegmentChooser(self.recorded, configuration, self._lister)
        inner, segments = chooser.choose(some, pitches)
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

    def _find_stored(self, keeps: bool) -> set[int]:
        """Tensors that something loads, and those that the host reads."""
        found = {self.recorded.logits.tensor.place}
        if keeps:
            found.update(each.place for each in self.recorded.tensors.values())
        for planned in (self.forward, self.backward):
            found.update(each.image.place for each in planned.recorded.gradients)
            for segment in planned.segments:
                found.update(loaded_tensors(segment))
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
        """A list before the forward list: weights come from their master rows."""
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
        rings = self._lister.list_chains(
            planned.segments, planned.notes_words, wanted, listing, batch, inner
        )
        if planned is self.backward:
            for tensor in self._untouched:
                self._lay_out(tensor, listing)
        self._lister.list_gradients(gradients, inner, listing, rings, batch)

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
