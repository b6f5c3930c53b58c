"""Lays errors out as weights: the kernel of a weight gradient, made by the DMA alone.

The errors of an image (rows, columns, O) lie in the activation memory, a pixel of C bytes and more
behind the other. Each of their pixels is a lane of the reduction, and its bytes are the weights of
that lane. A STORE writes the pixels to DRAM where the weight memory's words have them, and a LOAD
of CELLS brings them back as weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Target, Transfer

from ...compiler.mapping.reduction import LARGEST_KERNEL_WIDTH
from ...devices.link.regions import pieces
from ...program.steps import Placement
from ...runtime.dram_port import LONGEST_RUN

Cut = tuple[int, int]
"""First column of the errors, and how many: a kernel's width is limited."""


@dataclass(frozen=True)
class KernelLayout:
    """How the errors of a map are kernels.

    Parameters
    ----------
    configuration : Configuration
    errors : Placement
        On the chip; a pixel's bytes are as many as all its tiles of C channels.
    aligned : bool
        Each row of errors begins with a tile of lanes; otherwise they follow each other.
    """

    configuration: Configuration
    errors: Placement
    aligned: bool

    @property
    def cuts(self) -> Sequence[Cut]:
        """Kernels side by side, each as wide as the others or less."""
        return cuts_of(self.errors.width)

    @property
    def tiles(self) -> int:
        """Of C channels of errors."""
        return -(-self.errors.channels // self.configuration.columns)

    @property
    def words(self) -> int:
        """Of the weight memory, all kernels together."""
        return self.tiles * sum(self._block_words(cut) for cut in self.cuts)

    @property
    def dram_words(self) -> int:
        """Of DRAM."""
        return self.words * self.configuration.weight_word_bytes // WORD_BYTES

    def reduction_tiles(self, cut: Cut) -> int:
        """Tiles of R lanes of a kernel."""
        rows, lanes = self.errors.height, self.configuration.rows
        if self.aligned:
            return rows * -(-cut[1] // lanes)
        return -(-rows * cut[1] // lanes)

    def block(self, number: int, tile: int) -> int:
        """The first word of the weight memory of a cut's kernel and a tile of channels.

        Counted from the first kernel's.
        """
        before = sum(self._block_words(cut) for cut in self.cuts[:number])
        return before * self.tiles + tile * self._block_words(self.cuts[number])

    def _block_words(self, cut: Cut) -> int:
        return self.reduction_tiles(cut) * self.configuration.tile_words

    def stores(self, place: int) -> Iterator[Transfer]:
        """Lays the errors that are on the chip out in DRAM.

        Parameters
        ----------
        place : int
            A word of DRAM, from which on ``dram_words`` hold zeros where no error comes.
        """
        word_bytes = self.configuration.weight_word_bytes
        for number, cut in enumerate(self.cuts):
            for tile in range(self.tiles):
                block = place + self.block(number, tile) * word_bytes // WORD_BYTES
                for first_lane, count, pixel in self._segments(cut):
                    yield from self._stores(first_lane, count, pixel, tile, block)

    def loads(self, place: int, weight_word: int) -> Iterator[Transfer]:
        """Brings the kernels from DRAM to the weight memory.

        Parameters
        ----------
        place : int
            As ``stores`` has it.
        weight_word : int
            The first kernel's.
        """
        word_bytes = self.configuration.weight_word_bytes
        for begin, end in pieces(self.words * word_bytes, LONGEST_RUN):
            yield Transfer(
                operation=Operation.LOAD,
                target=Target.CELLS,
                chip=(weight_word * word_bytes + begin) // GROUP_CELLS,
                dram=place + begin // WORD_BYTES,
                run_bytes=end - begin,
            )

    def _segments(self, cut: Cut) -> Iterator[tuple[int, int, int]]:
        """Lanes of neighbouring pixels: the first lane, their count, the first pixel."""
        rows, columns = self.errors.height, self.errors.width
        first, count = cut
        if not self.aligned and count == columns:
            yield 0, rows * columns, 0
            return
        lanes = self.configuration.rows
        step = -(-count // lanes) * lanes if self.aligned else count
        for row in range(rows):
            yield row * step, count, row * columns + first

    def _stores(
        self, lane: int, count: int, pixel: int, tile: int, block: int
    ) -> Iterator[Transfer]:
        """STOREs of neighbouring pixels: lane q of a chain lies W words of C bytes further."""
        configuration, pitch = self.configuration, self.errors.pixel_pitch
        columns, chains = configuration.columns, configuration.weight_rows
        length, unit = configuration.tile_words, configuration.columns // WORD_BYTES
        while count:
            number, within = divmod(lane, configuration.rows)
            chain, q = divmod(within, length)
            # with one chain, words of one tile follow those of the one before
            runs, rows = (count, 1) if chains == 1 else (min(count, length - q), 1)
            if chains > 1 and runs == length:
                rows = min(count // length, chains - chain)
            yield Transfer(
                operation=Operation.STORE,
                chip=self.errors.address + pixel * pitch + tile * columns,
                dram=block + ((number * length + q) * chains + chain) * unit,
                run_bytes=columns,
                runs=runs,
                rows=rows,
                chip_run_pitch=pitch if runs > 1 else 0,
                chip_row_pitch=length * pitch if rows > 1 else 0,
                dram_run_pitch=chains * unit if runs > 1 else 0,
                dram_row_pitch=unit if rows > 1 else 0,
            )
            taken = runs * rows
            lane, count, pixel = lane + taken, count - taken, pixel + taken


def cuts_of(width: int) -> list[Cut]:
    """Columns of errors in as many kernels as their width needs."""
    number = -(-width // LARGEST_KERNEL_WIDTH)
    size = -(-width // number)
    return [(first, min(size, width - first)) for first in range(0, width, size)]
