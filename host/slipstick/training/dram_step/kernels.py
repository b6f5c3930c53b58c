"""Lays errors out as weights: the kernel of a weight gradient, made by the DMA alone.

The errors of an image (rows, columns, O) lie in the activation memory, pixel by pixel. Each of
their pixels is a lane of the reduction, and its bytes are the weights of that lane. A STORE writes
the pixels to DRAM where the weight memory's words have them, and a LOAD of CELLS brings them back
as weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Target, Transfer

from ...compiler.mapping.reduction import LARGEST_KERNEL_WIDTH
from ...devices.link.regions import pieces
from ...program.steps import Placement
from ...runtime.dram_port import LONGEST_RUN

Cut = tuple[int, int]
"""First column of the errors, and how many: a kernel's width is limited."""


class _Piece(NamedTuple):
    """Neighbouring pixels of a chain of lanes.

    Parameters
    ----------
    chip : int
        The first byte on the chip.
    word : int
        Of DRAM.
    runs : int
        Their count.
    chain, tile : int
        Of lanes.
    """

    chip: int
    word: int
    runs: int
    chain: int
    tile: int


@dataclass(frozen=True)
class KernelLayout:
    """The errors of a map as kernels: those of a tile of C channels follow each other.

    Parameters
    ----------
    configuration : Configuration
    errors : (height, width, channels)
    aligned : bool
        Each row of errors begins with a tile of lanes; otherwise they follow each other.
    grid : (int, int), optional
        Lanes are pixels of so many rows and columns: a kernel is so many rows of errors.
    """

    configuration: Configuration
    errors: tuple[int, int, int]
    aligned: bool
    grid: tuple[int, int] | None = None

    @property
    def cuts(self) -> Sequence[Cut]:
        """Kernels side by side, each as wide as the others or less; in a grid there is one."""
        return cuts_of(self.errors[1]) if self.grid is None else [(0, self.errors[1])]

    @property
    def tiles(self) -> int:
        """Counts the tiles of C channels of errors."""
        return -(-self.errors[2] // self.configuration.columns)

    @property
    def tile_words(self) -> int:
        """Counts the words of weight memory for the kernels of a tile of channels."""
        return sum(map(self._cut_words, self.cuts))

    @property
    def dram_words(self) -> int:
        """Counts the words of DRAM per image."""
        return self.tiles * self.tile_words * self.configuration.weight_word_bytes // WORD_BYTES

    @property
    def fills_lanes(self) -> bool:
        """Each lane has a pixel: nothing must be 0."""
        height, lanes = self.errors[0], self.configuration.rows
        return all(
            height * count == self.reduction_tiles((first, count)) * lanes
            for first, count in self.cuts
        )

    def reduction_tiles(self, cut: Cut) -> int:
        """Tiles of R lanes of a kernel."""
        return self.tiles_before(cut, self.errors[0])

    def tiles_before(self, cut: Cut, row: int) -> int:
        """Tiles of R lanes before a row of a kernel, which begins with one or is the end."""
        lanes = self.configuration.rows
        if self.grid is not None:
            return row // self.grid[0] * (cut[1] // self.grid[1])
        if self.aligned:
            return row * -(-cut[1] // lanes)
        return -(-row * cut[1] // lanes)

    @property
    def lane_words(self) -> int:
        """Counts the words of weight memory for a tile of lanes."""
        return self.configuration.tile_words

    def cut_word(self, number: int) -> int:
        """The first word of the weight memory of a cut's kernel, behind the tile's first one."""
        return sum(map(self._cut_words, self.cuts[:number]))

    def _cut_words(self, cut: Cut) -> int:
        return self.reduction_tiles(cut) * self.configuration.tile_words

    def stores(self, place: Placement, dram: int) -> Iterator[Transfer]:
        """Lays the errors of an image that is on the chip out in DRAM.

        Parameters
        ----------
        place : Placement
        dram : int
            A word, from which on ``dram_words`` hold zeros where no error comes.
        """
        columns, word_bytes = self.configuration.columns, self.configuration.weight_word_bytes
        for tile in range(self.tiles):
            if self.grid is not None:
                first = dram + tile * self.tile_words * word_bytes // WORD_BYTES
                yield from self._grid_stores(self.grid, place, first, tile * columns)
                continue
            for number, cut in enumerate(self.cuts):
                word = tile * self.tile_words + self.cut_word(number)
                some = list(self._pieces(cut, place, dram + word * word_bytes // WORD_BYTES))
                ways = (
                    [
                        store
                        for group in _grouped(some, name)
                        for store in self._boxes(group, place.pixel_pitch, tile * columns)
                    ]
                    for name in ("chain", "tile")
                )
                yield from min(ways, key=len)

    def _grid_stores(
        self, grid: tuple[int, int], place: Placement, dram: int, offset: int
    ) -> Iterator[Transfer]:
        """STOREs of the rows of a grid, chain by chain, or of all chains at once."""
        configuration, (height, width) = self.configuration, grid
        chains, length = configuration.weight_rows, configuration.tile_words
        unit, tiles = configuration.columns // WORD_BYTES, self.errors[1] // width
        # neighbouring pixels, of which one chain has one each, lie side by side in both
        joined = height == length and place.pixel_pitch == configuration.columns
        for first in range(0, self.errors[0], length):
            strip, part = divmod(first, height)
            for column in range(1 if joined else width):
                chain = (column * height + part) // length
                words = strip * tiles * length * chains + chain
                yield Transfer(
                    operation=Operation.STORE,
                    chip=place.address
                    + first * place.row_pitch
                    + column * place.pixel_pitch
                    + offset,
                    dram=dram + words * unit,
                    run_bytes=configuration.columns * (width if joined else 1),
                    runs=length,
                    rows=tiles,
                    chip_run_pitch=place.row_pitch if length > 1 else 0,
                    chip_row_pitch=width * place.pixel_pitch if tiles > 1 else 0,
                    dram_run_pitch=chains * unit if length > 1 else 0,
                    dram_row_pitch=length * chains * unit if tiles > 1 else 0,
                )

    def _pieces(self, cut: Cut, place: Placement, dram: int) -> Iterator[_Piece]:
        """Neighbouring pixels whose lanes are of one chain."""
        configuration, (first, count) = self.configuration, cut
        chains, length = configuration.weight_rows, configuration.tile_words
        unit, lanes = configuration.columns // WORD_BYTES, configuration.rows
        step = -(-count // lanes) * lanes if self.aligned else count
        for row in range(self.errors[0]):
            lane, taken = row * step, 0
            while taken < count:
                number, within = divmod(lane + taken, lanes)
                chain, q = divmod(within, length)
                # with one chain, words of one tile follow those of the one before
                runs = count - taken if chains == 1 else min(count - taken, length - q)
                chip = place.address + row * place.row_pitch
                chip += (first + taken) * place.pixel_pitch
                word = dram + ((number * length + q) * chains + chain) * unit
                yield _Piece(chip, word, runs, chain, number)
                taken += runs

    def _boxes(self, some: Sequence[_Piece], pixel_pitch: int, offset: int) -> Iterator[Transfer]:
        """STOREs of pieces with equal counts; those with equal distances are rows of one."""
        configuration = self.configuration
        run_words = configuration.weight_rows * configuration.columns // WORD_BYTES
        begin = 0
        while begin < len(some):
            rows, pitches = 1, (0, 0)
            while begin + rows < len(some):
                one, other = some[begin + rows - 1], some[begin + rows]
                apart = other.chip - one.chip, other.word - one.word
                if min(apart) < 0 or (rows > 1 and apart != pitches):
                    break
                pitches, rows = apart, rows + 1
            chip, word, runs = some[begin].chip, some[begin].word, some[begin].runs
            yield Transfer(
                operation=Operation.STORE,
                chip=chip + offset,
                dram=word,
                run_bytes=configuration.columns,
                runs=runs,
                rows=rows,
                chip_run_pitch=pixel_pitch if runs > 1 else 0,
                chip_row_pitch=pitches[0] if rows > 1 else 0,
                dram_run_pitch=run_words if runs > 1 else 0,
                dram_row_pitch=pitches[1] if rows > 1 else 0,
            )
            begin += rows

    def loads(self, dram: int, weight_word: int, tiles: range) -> Iterator[Transfer]:
        """Brings kernels from DRAM to the weight memory.

        Parameters
        ----------
        dram : int
            As ``stores`` has it.
        weight_word : int
            For the first of them.
        tiles : range
            Of channels.
        """
        word_bytes = self.configuration.weight_word_bytes
        size = self.tile_words * word_bytes
        first = dram + tiles.start * size // WORD_BYTES
        for begin, end in pieces(len(tiles) * size, LONGEST_RUN):
            yield Transfer(
                operation=Operation.LOAD,
                target=Target.CELLS,
                chip=(weight_word * word_bytes + begin) // GROUP_CELLS,
                dram=first + begin // WORD_BYTES,
                run_bytes=end - begin,
            )


@dataclass(frozen=True)
class KernelPlace:
    """The place of the kernels of a batch in DRAM.

    Parameters
    ----------
    layout : KernelLayout
    place : int
        The first image's first word.
    """

    layout: KernelLayout
    place: int

    def image(self, number: int) -> int:
        """An image's first word."""
        return self.place + number * self.layout.dram_words

    def stores(self, place: Placement, image: int) -> Iterator[Transfer]:
        """Lays out the errors of an image that are on the chip."""
        return self.layout.stores(place, self.image(image))


def _grouped(some: Sequence[_Piece], name: str) -> list[list[_Piece]]:
    """Pieces with equal counts, of one chain or of one tile of lanes."""
    found = dict[tuple[int, int], list[_Piece]]()
    for piece in some:
        found.setdefault((getattr(piece, name), piece.runs), []).append(piece)
    return list(found.values())


def cuts_of(width: int) -> list[Cut]:
    """Columns of errors in as many kernels as their width needs."""
    number = -(-width // LARGEST_KERNEL_WIDTH)
    size = -(-width // number)
    return [(first, min(size, width - first)) for first in range(0, width, size)]
