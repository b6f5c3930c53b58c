"""Lists weight gradients: pass by pass, in each the images of a batch one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...errors import CapacityError
from .chip import Ring, Rings
from .durations import run_cycles
from .effects import Access, Memory
from .gradient_layout import GradientPiece, GradientPlaces, Stripe
from .gradient_results import Masters
from .gradients import GradientProgram
from .kernels import KernelPlace
from .listing import Listing
from .relocation import HALT

_LONGEST_CYCLES = 4000
"""Most cycles of a LOAD that is not split into several: runs are long."""


@dataclass(frozen=True)
class GradientWork:
    """The weight gradient of a layer.

    Parameters
    ----------
    name : str
        The layer's.
    program : GradientProgram
    image : DramTensor
        The layer's input, for which ``takes_dense_rows``.
    kernels : KernelPlace
        The errors of its output.
    ones : int
        A word of DRAM, from which on bytes are 1, one per lane.
    results : int
        The word that the sums go to; those of biases only, if the weights are updated.
    masters : Masters, optional
        The DMA updates the weights.
    """

    name: str
    program: GradientProgram
    image: DramTensor
    kernels: KernelPlace
    ones: int
    results: int
    masters: Masters | None = None

    @property
    def places(self) -> tuple[str, DramTensor, int, int, int, int | None]:
        """Its name and where all lies in DRAM, to see whether another one is like it."""
        masters = None if self.masters is None else self.masters.place
        return self.name, self.image, self.kernels.place, self.ones, self.results, masters

    def finish(self, some: Sequence[GradientPiece], chip: int, listing: Listing) -> None:
        """Adds what becomes of a pass's sums: they are stored, or the weights updated.

        Parameters
        ----------
        some : sequence of GradientPiece
            One of the program's passes.
        chip : int
            Where its results begin on the chip.
        listing : Listing
        """
        results, dram = self.program.results, self.results
        before = results.passes[: results.passes.index(some)]
        if self.masters is None:
            dram += sum(map(results.pass_words, before))
            transfers = results.stores(some, chip, dram)
        else:
            dram += sum(map(results.bias_words, before))
            transfers = results.updates(some, chip, dram, self.masters)
        for transfer in transfers:
            listing.move(transfer, name=self.name)


class GradientLister:
    """Lists gradients, so that what the next run needs comes while the one before goes on.

    Parameters
    ----------
    listing : Listing
    rings : Rings
    configuration : Configuration
    """

    def __init__(self, listing: Listing, rings: Rings, configuration: Configuration) -> None:
        self._listing, self._rings, self._configuration = listing, rings, configuration
        self._turns = 0, 0

    def list_all(self, works: Sequence[GradientWork], batch: int) -> None:
        """Adds the steps of gradients; those of the same errors one after the other.

        Parameters
        ----------
        works : sequence of GradientWork
        batch : int

        Raises
        ------
        CapacityError
            If one does not fit the memories.
        """
        groups = dict[int, list[GradientWork]]()
        for work in works:
            groups.setdefault(work.kernels.place, []).append(work)
        for group in groups.values():
            # the longest runs first: all kernels are loaded beside them
            group.sort(key=lambda work: -work.program.loaded_bytes)
            kept, rings = self._keep(group, batch)
            for work in group:
                self._list_work(work, batch, kept, rings)

    def list_batch(self, work: GradientWork, batch: int) -> None:
        """Adds the steps of a gradient.

        Raises
        ------
        CapacityError
            If it does not fit the memories.
        """
        self.list_all([work], batch)

    def _list_work(
        self, work: GradientWork, batch: int, kept: "_Kept | None", rings: Rings
    ) -> None:
        for some in work.program.passes:
            plan = _PassPlan(work, some, batch, rings, self._configuration, self._turns, kept)
            self._turns = plan.next_turns
            self._list_pass(plan)

    def _keep(self, group: Sequence[GradientWork], batch: int) -> tuple["_Kept | None", Rings]:
        """Kernels that several passes need stay in the weight memory, if there is room."""
        layout, configuration = group[0].kernels.layout, self._configuration
        passes = [(work.program, some) for work in group for some in work.program.passes]
        words = layout.tiles * layout.tile_words
        loaded = sum(len(program.tiles(some)) for program, some in passes) - layout.tiles
        saved = loaded * layout.tile_words * configuration.weight_word_bytes
        code = [batch * program.stream_bytes(some) for program, some in passes]
        others = sum(len(p.constants) // configuration.weight_unit_bytes for p, _ in passes)
        rings, needed = self._rings, batch * words + others
        # each image's runs have instructions of their own, which are loaded too
        fits = needed <= rings.weights.room and 2 * max(code) <= 4 * rings.instructions.room
        if batch * saved <= sum(code) or not fits:
            return None, rings
        first = rings.weights.take(needed)
        behind = Ring(first + batch * words, first + needed)
        return _Kept(first, words, set()), Rings(rings.instructions, behind)

    def _list_pass(self, plan: "_PassPlan") -> None:
        work, program, listing, some = plan.work, plan.work.program, self._listing, plan.some
        runs = _Runs(plan)
        room = self._rings.instructions.room
        if runs.words > room:
            raise _refusal(work, "instruction_words", room, runs.words)
        first, begin = self._rings.instructions.take(runs.words), plan.units[0].places
        listing.load_constants(Space.WEIGHTS, begin.constants, program.constants)
        listing.load_constants(Space.INSTRUCTIONS, first, runs.code)
        if any(piece.is_bias for piece in some):
            listing.move(
                Transfer(
                    operation=Operation.LOAD,
                    chip=begin.ones,
                    dram=work.ones,
                    run_bytes=program.ones_bytes,
                )
            )
        for number, unit in enumerate(plan.units):
            if unit.first:
                dram = work.kernels.image(unit.image)
                for load in program.kernels.loads(dram, unit.places.kernels, plan.missing(unit)):
                    listing.move(load, _LONGEST_CYCLES)
            for load in program.image_loads(some, work.image, unit.image, unit.places, unit.stripe):
                listing.move(load, _LONGEST_CYCLES)
            pcs, cycles = runs.run(number, self._configuration)
            code = Access(Memory.INSTRUCTIONS, first, first + runs.words, False)
            accesses = plan.touched(unit, last=number == len(plan.units) - 1)
            listing.run((first + pcs[0], first + pcs[1]), [*accesses, code], cycles)
        work.finish(some, begin.results, listing)


@dataclass(frozen=True)
class _Kept:
    """Kernels of all images that stay in the weight memory.

    Parameters
    ----------
    first, words : int
        The first word, and how many an image takes.
    there : set of (int, int)
        Images and tiles that were loaded.
    """

    first: int
    words: int
    there: set[tuple[int, int]]

    def place(self, image: int, tile: int, tile_words: int) -> int:
        """The first word of a tile."""
        return self.first + image * self.words + tile * tile_words


@dataclass(frozen=True)
class _Unit:
    """A stripe of an image, which a run sums.

    Parameters
    ----------
    image : int
    first : bool
        Of its stripes.
    stripe : Stripe
    places : GradientPlaces
    """

    image: int
    first: bool
    stripe: Stripe
    places: GradientPlaces


class _PassPlan:
    """Shares the memories out to a pass.

    An image lies in one half of the activation memory while the one before is at work in the other;
    one that is too large is cut into stripes, which take turns.
    """

    def __init__(
        self,
        work: GradientWork,
        some: Sequence[GradientPiece],
        batch: int,
        rings: Rings,
        configuration: Configuration,
        turns: tuple[int, int],
        kept: _Kept | None,
    ) -> None:
        self.work, self.some, self._configuration = work, some, configuration
        self._kept = kept
        program = work.program
        self._step = step = max(configuration.lanes, WORD_BYTES, configuration.rows)
        size = configuration.activation_bytes
        ones = round_up(program.ones_bytes, step)
        tail = ones + round_up(program.results.pass_bytes(some), step)
        stripes, copies = self._stripes(batch, size - tail)
        largest = self._largest(stripes)
        half = size // 2 // step * step
        first_image, first_tail = turns
        # results leave from one end of the memory while the next pass uses the other one
        end = size if first_tail or largest + tail > half else half
        images = [0] if copies == 1 else [0, largest if largest + tail > half else half]
        if copies == 2 and first_image:
            images.reverse()
        constants = len(program.constants) // configuration.weight_unit_bytes
        self._kernels = len(program.tiles(some)) * program.kernels.tile_words
        self._constants = constants
        weights, kernels = self._share_weights(batch, rings.weights)
        self.units = [
            _Unit(
                image,
                number == 0,
                stripe,
                GradientPlaces(
                    images[(image * len(stripes) + number) % copies],
                    end - tail,
                    end - tail + ones,
                    weights,
                    kernels[image],
                ),
            )
            for image in range(batch)
            for number, stripe in enumerate(stripes)
        ]
        self.next_turns = (first_image + len(self.units)) % 2, 1 - first_tail

    def _share_weights(self, batch: int, ring: Ring) -> tuple[int, list[int]]:
        """The first words of the constants, and of each image's kernels."""
        constants, kernels, room = self._constants, self._kernels, ring.room
        if self._kept is not None:
            layout, tile = self.work.kernels.layout, self.work.program.tiles(self.some).start
            places = [self._kept.place(n, tile, layout.tile_words) for n in range(batch)]
            return ring.take(constants), places
        twice = batch > 1 and constants + 2 * kernels <= room
        needed = constants + (1 + twice) * kernels
        if needed > room:
            raise _refusal(self.work, "weight_words", room, needed)
        first = ring.take(needed)
        begin = first + constants
        return first, [begin + (n % 2 * kernels if twice else 0) for n in range(batch)]

    def missing(self, unit: "_Unit") -> range:
        """Tiles of kernels of a unit's image that are to be loaded; from the first one on."""
        tiles = self.work.program.tiles(self.some)
        if self._kept is None:
            return tiles
        wanted = {(unit.image, tile) for tile in tiles}
        if wanted <= self._kept.there:
            return range(0)
        self._kept.there.update(wanted)
        return tiles

    def _largest(self, stripes: Sequence[Stripe]) -> int:
        program = self.work.program
        return round_up(max(program.stripe_bytes(self.some, s) for s in stripes), self._step)

    def _stripes(self, batch: int, room: int) -> tuple[list[Stripe], int]:
        """The fewest of which two fit, or else one; how many fit."""
        program = self.work.program
        cuts = [program.stripes(count) for count in range(1, program.most_stripes + 1)]
        for copies in (2, 1):
            for stripes in cuts:
                if copies * self._largest(stripes) <= room:
                    return stripes, copies if batch * len(stripes) > 1 else 1
        size = self._configuration.activation_bytes
        raise _refusal(self.work, "activation_bytes", size, size - room + self._largest(cuts[-1]))

    def touched(self, unit: _Unit, *, last: bool) -> list[Access]:
        """Activations and weights that a run reads and writes."""
        program, places, word = self.work.program, unit.places, self._configuration
        stripe = program.stripe_bytes(self.some, unit.stripe)
        found = [
            Access(Memory.ACTIVATIONS, places.image, places.image + stripe, False),
            Access(Memory.ACTIVATIONS, places.ones, places.ones + program.ones_bytes, False),
        ]
        if last:
            end = places.results + program.results.pass_bytes(self.some)
            found.append(Access(Memory.ACTIVATIONS, places.results, end, True))
        size = word.weight_word_bytes
        for begin, words in (
            (places.constants, self._constants),
            (places.kernels, self._kernels),
        ):
            span = begin * size // GROUP_CELLS, -(-(begin + words) * size // GROUP_CELLS)
            found.append(Access(Memory.WEIGHTS, *span, False))
        return found


class _Runs:
    """The streams of a pass: those that begin sums and add to them, and those that drain."""

    def __init__(self, plan: _PassPlan) -> None:
        program, some, begin = plan.work.program, plan.some, plan.units[0]
        self._count = len(plan.units)
        streams = dict[bytes, int]()
        self._streams = [
            program.convolves(some, unit.places, unit.stripe, accumulate=number > 0)
            for number, unit in enumerate(plan.units)
        ]
        self._post, code = program.drains(some, begin.places, plan.units[-1].stripe), bytearray()
        for stream in (*self._streams, b"", self._post):
            if stream not in streams:
                streams[stream] = len(code) // 4
                code += stream + HALT
        self._starts, self.code = streams, bytes(code)

    @property
    def words(self) -> int:
        """Counts the words of instruction memory."""
        return len(self.code) // 4

    def run(self, number: int, configuration: Configuration) -> tuple[tuple[int, int], int]:
        """Returns where both streams of a unit begin, and its cycles."""
        post = self._post if number == self._count - 1 else b""
        stream = self._streams[number]
        pcs = self._starts[stream], self._starts[post]
        return pcs, run_cycles(stream, post, configuration)


def _refusal(work: GradientWork, name: str, there: int, needed: int) -> CapacityError:
    return CapacityError(
        f"the weight gradient of {work.name!r} must fit {name} ({there}), not need {needed}"
    )
