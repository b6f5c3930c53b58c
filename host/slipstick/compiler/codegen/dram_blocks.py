"""Constants as the DMA moves them: words of DRAM, and the instructions for them."""

import zlib

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Target, Transfer
from slipstick_rtl.link.protocol import Space

from ...program.steps import Image

_MOST_BYTES = 1 << 16
"""Of a LOAD's run."""
_CELL_BITS = 9


def constant_loads(
    image: Image, configuration: Configuration, place: int
) -> tuple[bytes, list[Transfer]]:
    """What lies in DRAM of an image, and the LOADs that bring it to the chip.

    Parameters
    ----------
    image : Image
        Of INSTRUCTIONS or WEIGHTS, or of ACTIVATIONS.
    configuration : Configuration
        With DRAM.
    place : int
        The word of DRAM that the first byte is for.

    Returns
    -------
    (bytes, list of Transfer)
        Whole words. Each LOAD names the CRC of its own.
    """
    target, first, words, step = _encoded(image, configuration)
    loads = list[Transfer]()
    # a LOAD ends with a whole head of ninth bits and its groups
    heads = GROUP_CELLS + 1 if target is Target.WEIGHTS and configuration.ninth_bits else 1
    most = _MOST_BYTES // WORD_BYTES // heads * heads
    data = words.tobytes()
    for begin in range(0, len(words), most):
        part = words[begin : begin + most]
        moved = len(part) - (-(-len(part) // heads) if heads > 1 else 0)
        length = len(part) * WORD_BYTES
        if target is Target.ACTIVATIONS or target is Target.INSTRUCTIONS:
            # the last word may be filled up
            length = min(length, len(image.data) - begin * WORD_BYTES)
        loads.append(
            Transfer(
                operation=Operation.LOAD,
                target=target,
                checked=True,
                chip=first,
                dram=place + begin,
                run_bytes=length,
                crc=zlib.crc32(part.tobytes()),
            )
        )
        first += moved * step
    return data, loads


def _encoded(image: Image, configuration: Configuration) -> tuple[Target, int, np.ndarray, int]:
    """The target, the first address in its units, the words, and units per word."""
    if image.space == Space.WEIGHTS:
        groups = image.address * configuration.weight_word_bytes // GROUP_CELLS
        cells = np.frombuffer(image.data, np.uint8)
        if configuration.ninth_bits:
            words = _with_heads(cells)
        else:
            words = cells.reshape(-1, WORD_BYTES)
        return Target.WEIGHTS, groups, words, 1
    target = Target.INSTRUCTIONS if image.space == Space.INSTRUCTIONS else Target.ACTIVATIONS
    padded = image.data + bytes(-len(image.data) % WORD_BYTES)
    words = np.frombuffer(padded, np.uint8).reshape(-1, WORD_BYTES)
    return target, image.address, words, 2 if target is Target.INSTRUCTIONS else WORD_BYTES


def _with_heads(units: np.ndarray) -> np.ndarray:
    """Nine bytes for eight cells of nine bits become words of cells, and a word of ninth bits
    before each eight of them."""
    bits = np.unpackbits(units, bitorder="little").reshape(-1, GROUP_CELLS, _CELL_BITS)
    cells = np.packbits(bits[..., :8], axis=-1, bitorder="little")[..., 0]
    ninth = np.packbits(bits[..., 8], axis=-1, bitorder="little")[..., 0]
    count = len(cells)
    heads = -(-count // GROUP_CELLS)
    words = np.zeros((heads * (GROUP_CELLS + 1), WORD_BYTES), np.uint8)
    is_head = np.arange(len(words)) % (GROUP_CELLS + 1) == 0
    ninths = np.zeros(heads * GROUP_CELLS, np.uint8)
    ninths[:count] = ninth
    words[is_head] = ninths.reshape(-1, GROUP_CELLS)
    body = np.zeros((heads * GROUP_CELLS, WORD_BYTES), np.uint8)
    body[:count] = cells
    words[~is_head] = body
    # what is behind the last group is not loaded
    return words[: count + heads]
