"""Golden model of the systolic array: the sums of one reduction tile."""

import numpy as np


def tile_sums(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What leaves the array for the vectors that enter it while a tile of weights is at work.

    Parameters
    ----------
    vectors : array of int8, (vectors, P, R)
    weights : array of int8, (R, C)

    Returns
    -------
    array of int32, (vectors, P, C)
    """
    return vectors.astype(np.int32) @ weights.astype(np.int32)


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
