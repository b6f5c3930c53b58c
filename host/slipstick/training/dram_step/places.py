"""Gives words of DRAM to what a step keeps there, and describes how tensors lie in it."""

from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer

from ...compiler.codegen.dram_tensors import DramTensor
from ...program.steps import Placement
from ...runtime.dram_port import LONGEST_RUN


class Arena:
    """Words of DRAM that are given one behind the other.

    Parameters
    ----------
    first : int
        The first word.

    Members
    -------
    words : int
        That were given.
    """

    def __init__(self, first: int) -> None:
        self.first, self.words = first, 0

    @property
    def end(self) -> int:
        """The first word behind all that were given."""
        return self.first + self.words

    def take(self, words: int) -> int:
        """Gives so many words; returns the first."""
        place = self.end
        self.words += words
        return place

    def tensor(self, shape: tuple[int, int, int], batch: int, *, dense: bool = False) -> DramTensor:
        """Gives room for a batch's tensor (height, width, channels), one image behind the other.

        Each pixel begins with a word, or, if it is ``dense``, each row does.
        """
        words = DramTensor(0, *shape, dense).words
        return DramTensor(self.take(batch * words), *shape, dense)


def box(operation: Operation, place: Placement, tensor: DramTensor, image: int) -> Transfer:
    """A LOAD or STORE of an image of a tensor.

    Parameters
    ----------
    operation : Operation
    place : Placement
        On the chip. Dense rows in DRAM have pixels without gaps there.
    tensor : DramTensor
        Of the placement's sizes.
    image : int

    Raises
    ------
    ValueError
        If dense rows in DRAM have gaps on the chip.
    """
    pixel = tensor.pixel_words * WORD_BYTES
    run_bytes, runs = tensor.channels, tensor.width
    run_pitch, run_words = place.pixel_pitch, tensor.pixel_words
    if tensor.dense:
        if place.pixel_pitch != tensor.channels and place.width > 1:
            raise ValueError(
                f"dense rows need a pixel pitch of {tensor.channels} bytes, not {place.pixel_pitch}"
            )
        run_bytes, runs = tensor.width * tensor.channels, 1
    elif (
        place.pixel_pitch == pixel
        and tensor.width * pixel <= LONGEST_RUN
        and (operation is Operation.STORE or pixel == tensor.channels)
    ):
        # a row is a run; what fills its pixels up is stored, but not loaded
        run_bytes, runs = tensor.width * pixel, 1
    rows, row_bytes = tensor.height, tensor.row_words * WORD_BYTES
    if runs == 1 and place.row_pitch == row_bytes == run_bytes and rows * row_bytes <= LONGEST_RUN:
        run_bytes, rows = rows * row_bytes, 1
    return Transfer(
        operation=operation,
        chip=place.address,
        dram=tensor.place + image * tensor.words,
        run_bytes=run_bytes,
        runs=runs,
        rows=rows,
        chip_run_pitch=run_pitch if runs > 1 else 0,
        chip_row_pitch=place.row_pitch if rows > 1 else 0,
        dram_run_pitch=run_words if runs > 1 else 0,
        dram_row_pitch=tensor.row_words if rows > 1 else 0,
    )
