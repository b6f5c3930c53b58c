"""Lists a weight gradient whose runs stand among those of a segment, image by image.

Its sums stay in the second half of the accumulators, and the segment's works use the first half
(:attr:`.gradients.GradientProgram.fits_inside`). Its runs leave the activation memory to the DMA,
which stores meanwhile what it cannot beside runs whose post-processor is busy.
"""

from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.mapping.activation_layout import round_up
from .durations import run_cycles
from .effects import Access, Memory
from .gradient_layout import GradientPlaces, Stripe
from .gradient_lists import GradientWork
from .listing import Listing
from .relocation import HALT


@dataclass(frozen=True)
class InnerGradient:
    """A weight gradient that stands among a segment's works.

    Parameters
    ----------
    work : GradientWork
        Whose program ``fits_inside``.
    configuration : Configuration
    """

    work: GradientWork
    configuration: Configuration

    @property
    def _step(self) -> int:
        return max(self.configuration.lanes, WORD_BYTES, self.configuration.rows)

    @property
    def stripe(self) -> Stripe:
        """All of an image."""
        (whole,) = self.work.program.stripes(1)
        return whole

    @property
    def image_bytes(self) -> int:
        """Counts the bytes of an image on the chip; results take its place in the end."""
        program, (some,) = self.work.program, self.work.program.passes
        most = max(program.stripe_bytes(some, self.stripe), program.results.pass_bytes(some))
        return round_up(most, self._step)

    @property
    def activation_bytes(self) -> int:
        """Counts the bytes of activation memory."""
        return self.image_bytes + round_up(self.work.program.ones_bytes, self._step)

    @property
    def constant_words(self) -> int:
        """Counts the words of weight memory for parameters."""
        return len(self.work.program.constants) // self.configuration.weight_unit_bytes

    @property
    def kernel_words(self) -> int:
        """Counts the words of weight memory for the errors of an image."""
        program, (some,) = self.work.program, self.work.program.passes
        return len(program.tiles(some)) * program.kernels.tile_words

    @property
    def weight_words(self) -> int:
        """Counts the words of weight memory."""
        return self.constant_words + self.kernel_words

    @property
    def code_words(self) -> int:
        """Counts the words of instruction memory."""
        return len(b"".join(self.streams(GradientPlaces(0, 0, 0, 0, 0)))) // 4

    def streams(self, places: GradientPlaces) -> tuple[bytes, bytes, bytes, bytes]:
        """Returns what begins sums, what adds to them, nothing, and what drains them."""
        program, (some,) = self.work.program, self.work.program.passes
        begins, adds = (
            program.convolves(some, places, self.stripe, accumulate=accumulate, inside=True)
            for accumulate in (False, True)
        )
        drains = program.drains(some, places, self.stripe, inside=True)
        return begins + HALT, adds + HALT, HALT, drains + HALT


class InnerLister:
    """Lists an inner gradient.

    Parameters
    ----------
    inner : InnerGradient
    listing : Listing
    activation : int
        The first byte of ``activation_bytes``.
    weight, code : int
        The first words of ``weight_words`` and ``code_words``.
    """

    def __init__(
        self, inner: InnerGradient, listing: Listing, activation: int, weight: int, code: int
    ) -> None:
        self._inner, self._listing, self._code = inner, listing, code
        self._places = GradientPlaces(
            image=activation,
            ones=activation + inner.image_bytes,
            results=activation,
            constants=weight,
            kernels=weight + inner.constant_words,
        )
        self._streams = inner.streams(self._places)

    def begin(self) -> None:
        """Adds LOADs of what stays."""
        work, places, listing = self._inner.work, self._places, self._listing
        listing.load_constants(Space.WEIGHTS, places.constants, work.program.constants)
        listing.load_constants(Space.INSTRUCTIONS, self._code, b"".join(self._streams))
        listing.move(
            Transfer(
                operation=Operation.LOAD,
                chip=places.ones,
                dram=work.ones,
                run_bytes=work.program.ones_bytes,
            )
        )

    def add(self, image: int) -> None:
        """Adds the sums of an image whose errors are kernels in DRAM."""
        work, places, inner = self._inner.work, self._places, self._inner
        program, (some,) = work.program, work.program.passes
        dram = work.kernels.image(image)
        for load in program.kernels.loads(dram, places.kernels, program.tiles(some)):
            self._listing.move(load)
        for load in program.image_loads(some, work.image, image, places, inner.stripe):
            self._listing.move(load)
        stripe = program.stripe_bytes(some, inner.stripe)
        accesses = [
            Access(Memory.ACTIVATIONS, places.image, places.image + stripe, False),
            Access(Memory.ACTIVATIONS, places.ones, places.ones + program.ones_bytes, False),
            self._weights(places.kernels, inner.kernel_words),
        ]
        self._run(0 if image == 0 else 1, 2, accesses)

    def end(self) -> None:
        """Adds the results of all images."""
        work, places = self._inner.work, self._places
        program, (some,) = work.program, work.program.passes
        size = program.results.pass_bytes(some)
        accesses = [
            Access(Memory.ACTIVATIONS, places.results, places.results + size, True),
            self._weights(places.constants, self._inner.constant_words),
        ]
        self._run(2, 3, accesses)
        work.finish(some, places.results, self._listing)

    def _run(self, matrix: int, post: int, accesses: list[Access]) -> None:
        """Runs two of the streams."""
        starts, words = list[int](), self._code
        for stream in self._streams:
            starts.append(words)
            words += len(stream) // 4
        streams = (self._streams[each][: -len(HALT)] for each in (matrix, post))
        code = Access(Memory.INSTRUCTIONS, self._code, words, False)
        cycles = run_cycles(*streams, self._inner.configuration)
        self._listing.run((starts[matrix], starts[post]), [*accesses, code], cycles)

    def _weights(self, begin: int, words: int) -> Access:
        size = self._inner.configuration.weight_word_bytes
        return Access(
            Memory.WEIGHTS,
            begin * size // GROUP_CELLS,
            -(-(begin + words) * size // GROUP_CELLS),
            False,
        )
