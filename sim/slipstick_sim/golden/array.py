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
