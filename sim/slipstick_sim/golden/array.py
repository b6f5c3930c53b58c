"""Tiles of weights as they lie in weight memory."""

import numpy as np


def tile_words(weights: np.ndarray, chains: int) -> np.ndarray:
    """The words of weight memory that hold tiles.

    Parameters
    ----------
    weights : array of int8, (..., R, C)
    chains : int
        W, rows a word.

    Returns
    -------
    array of int8, (..., R / W, W, C)
        Word q holds row q of each of W chains of R / W rows.
    """
    *tiles, rows, columns = weights.shape
    return weights.reshape(*tiles, chains, rows // chains, columns).swapaxes(-3, -2)


def tile_rows(words: np.ndarray) -> np.ndarray:
    """The weights, (..., R, C), that words (..., R / W, W, C) hold: ``tile_words`` undone."""
    *tiles, length, chains, columns = words.shape
    return words.swapaxes(-3, -2).reshape(*tiles, length * chains, columns)
