"""Words of the weight memory as they come over the link, with ninth bits."""

import numpy as np

_CELLS, _CELL_BITS = 8, 9


def weight_units(words: np.ndarray, ninth: np.ndarray) -> np.ndarray:
    """Packs words with ninth bits as the link carries them: nine bytes for eight, dense.

    Parameters
    ----------
    words : array of uint8, (..., bytes)
        A multiple of eight bytes each.
    ninth : array of 0 or 1, the same shape

    Returns
    -------
    array of uint8, (..., bytes * 9 / 8)
        Each nine bytes are 72 bits, little endian: eight cells, a byte and its ninth bit above.
    """
    cells = np.unpackbits(words[..., None], axis=-1, bitorder="little")
    cells = np.concatenate([cells, ninth.astype(np.uint8)[..., None]], axis=-1)
    return np.packbits(cells.reshape(*words.shape[:-1], -1), axis=-1, bitorder="little")


def weight_words(units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words and their ninth bits, of which ``weight_units`` made ``units``."""
    size = units.shape[-1] * _CELLS // _CELL_BITS
    bits = np.unpackbits(units, axis=-1, bitorder="little")
    cells = bits.reshape(*units.shape[:-1], size, _CELL_BITS)
    words = np.packbits(cells[..., :_CELLS], axis=-1, bitorder="little")[..., 0]
    return words, cells[..., _CELLS]
