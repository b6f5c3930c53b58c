"""Chooses the segments of a pass, and the gradient that is made among them."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from .chains import Wanted
from .chip import Pitches
from .gradient_lists import GradientWork
from .inner import InnerGradient
from .listing import Listing
from .pass_lister import PassLister
from .recorded import Pass
from .recorder import RecordingArithmetic
from .segments import Segment, Template, cut_segments, make_templates
from .works import BlockWork, Key, key_of

_ROOMY = (0.25, 1.0)
"""Values of ``roomy`` that segments are tried with: see ``cut_segments``."""
_EARLIER = 4
"""Works that may go to the next segment although there is room for them."""
_PREDICTED = 2, 4
"""Images: what the further ones take chooses among segments."""

Choice = tuple[InnerGradient | None, list[Segment]]


class SegmentChooser:
    """Tries segments of a recorded step, and predicts their lists.

    Parameters
    ----------
    recorded : RecordingArithmetic
    configuration : Configuration
    lister : PassLister
    """

    def __init__(
        self, recorded: RecordingArithmetic, configuration: Configuration, lister: PassLister
    ) -> None:
        self._recorded, self._configuration, self._lister = recorded, configuration, lister

    def choose(self, some: Pass, pitches: Pitches) -> Choice:
        """Returns the gradient that is made among the works of a pass, and their segments.

        Parameters
        ----------
        some : Pass
        pitches : Pitches
            Of its tensors on the chip.

        Raises
        ------
        CapacityError
            If a work does not fit the memories.
        """
        configuration, found = self._configuration, list[Choice]()
        largest = max(
            (each for each in some.gradients if each.program.fits_inside),
            key=lambda work: work.program.loaded_bytes,
            default=None,
        )
        choices: list[InnerGradient | None] = [None]
        if largest is not None and some.works and self._recorded.batch >= _PREDICTED[1]:
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

    def _best_segments(
        self, templates: Sequence[Template], pitches: Pitches, inner: InnerGradient | None
    ) -> list[Segment]:
        """Those that take the fewest cycles, predicted for a few images."""
        if not templates:
            return []
        configuration, room = self._configuration, self._lister.room(inner)
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
        if first[0].share == 1.0 and len(first) == 1 or self._recorded.batch < _PREDICTED[1]:
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
        recorded = self._recorded
        stored = {recorded.logits.tensor.place}
        stored.update(each.image.place for each in recorded.backward.gradients)
        for work in recorded.backward.works:
            stored.update(each.place for each in work.reads)
        for segment in segments:
            stored.update(loaded_tensors(segment))
        listing = Listing(self._configuration, 0)
        wanted = Wanted(stored, recorded.kernels, 0)
        rings = self._lister.list_chains(
            segments, [0] * len(segments), wanted, listing, batch, inner
        )
        self._lister.list_gradients(gradients, inner, listing, rings, batch)
        return listing.predict()


def loaded_tensors(segment: Segment) -> set[int]:
    """Returns the first words of tensors that a segment reads and has not made."""
    made, found = set[Key](), set[int]()
    for template in segment.templates:
        work = template.work
        found.update(each.place for each in work.reads if key_of(each) not in made)
        made.update(key_of(each) for each in work.writes)
        if isinstance(work, BlockWork):
            found.update(each.place for _, each in work.loads)
    return found
