"""Lists a pass: its segments, and behind them the gradients."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration

from .chains import ChainLister, Wanted, load_notes
from .chip import Ring, Rings
from .gradient_lists import GradientLister, GradientWork
from .inner import InnerGradient
from .listing import Listing
from .notes import NoteReader
from .segments import Segment


class PassLister:
    """Writes lists of segments and of gradients.

    Parameters
    ----------
    configuration : Configuration
        With DRAM and ``training``.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration, self._reader = configuration, NoteReader(configuration)

    def room(self, inner: InnerGradient | None) -> tuple[int, int, int]:
        """Returns words of instructions and of weights, and bytes of activations, for a segment.

        Parameters
        ----------
        inner : InnerGradient or None
            What is made among its works.
        """
        configuration = self._configuration
        code, weights, activations = (
            (inner.code_words, inner.weight_words, inner.activation_bytes) if inner else (0, 0, 0)
        )
        return (
            configuration.instruction_words - code,
            configuration.weight_words - self._reader.words - weights,
            configuration.activation_bytes - activations,
        )

    def list_chains(
        self,
        segments: Sequence[Segment],
        notes: Sequence[int],
        wanted: Wanted,
        listing: Listing,
        batch: int,
        inner: InnerGradient | None,
    ) -> Rings:
        """Lists segments.

        Parameters
        ----------
        segments : sequence of Segment
        notes : sequence of int
            The word of DRAM for each one's notes.
        wanted : Wanted
        listing : Listing
        batch : int
        inner : InnerGradient or None
            What is made among the works of the last segment.

        Returns
        -------
        Rings
            The words of memories that come next.
        """
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

    def list_gradients(
        self,
        gradients: Sequence[GradientWork],
        inner: InnerGradient | None,
        listing: Listing,
        rings: Rings,
        batch: int,
    ) -> None:
        """Lists gradients, but for the inner one; parameters as for ``list_chains``."""
        others = [work for work in gradients if inner is None or work.name != inner.work.name]
        GradientLister(listing, rings, self._configuration).list_all(others, batch)
