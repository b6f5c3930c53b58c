"""Handwritten digits, 8x8 pixels: images that the embedded network was and was not trained on."""

import hashlib
from pathlib import Path

import numpy as np

from ..errors import InputError

ASSETS = Path(__file__).parent.parent / "assets"
MODEL = ASSETS / "digits.tflite"
"""The embedded network, made by ``tools/train_digits.py``."""
FIGURES = ASSETS / "digits.json"
"""File of the figures that ``tools/train_digits.py`` measured."""

SPLIT_SEED = 2026
HELD_OUT_SHARE = 0.3
BRIGHTEST = 16
CODES_PER_LEVEL = 15
"""code = level x 15 - 128, exactly: the network's input has scale 1/240 and zero point -128."""


def split_indices(labels: np.ndarray, seed: int = SPLIT_SEED) -> tuple[np.ndarray, np.ndarray]:
    """Divides a labelled set: about 30 % of each class are held out.

    The order within a class comes from hashes of seed and index, so that no change of a random
    number generator can ever move a training image to the held-out side.

    Parameters
    ----------
    labels : array of int, shape (images,)
    seed : int

    Returns
    -------
    train, held_out : arrays of int64
        Indices, ascending; disjoint, together complete.
    """

    def rank(index: int) -> bytes:
        return hashlib.sha256(f"{seed}:{index}".encode()).digest()

    held_out: list[int] = []
    for label in np.unique(labels):
        members = sorted(np.flatnonzero(labels == label).tolist(), key=rank)
        held_out += members[: round(len(members) * HELD_OUT_SHARE)]
    mask = np.zeros(len(labels), bool)
    mask[held_out] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def encode(levels: np.ndarray) -> np.ndarray:
    """The network's input codes of images in scikit-learn's grey levels.

    Parameters
    ----------
    levels : array, shape (images, 8, 8)
        Whole numbers within 0..16, 0 the background.

    Returns
    -------
    array of int8, shape (images, 8, 8, 1)

    Raises
    ------
    InputError
        If the shape differs, or a level is none.
    """
    if levels.ndim != 3 or levels.shape[1:] != (8, 8):
        raise InputError(f"digits must have the shape (images, 8, 8), not {levels.shape}")
    if not np.isin(levels, np.arange(BRIGHTEST + 1)).all():
        raise InputError(f"the levels of digits must be whole and within 0..{BRIGHTEST}")
    return (levels[..., np.newaxis] * CODES_PER_LEVEL - 128).astype(np.int8)


def load_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """scikit-learn's bundled digits as the embedded network wants them.

    Returns
    -------
    train_x : array of int8, shape (1258, 8, 8, 1)
    train_y : array of int64, shape (1258,)
    held_out_x : array of int8, shape (539, 8, 8, 1)
        Images that the network was not trained on.
    held_out_y : array of int64, shape (539,)

    Raises
    ------
    InputError
        If scikit-learn, which brings the images, is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise InputError("the digits come with scikit-learn: pip install scikit-learn") from error
    images, labels = datasets.load_digits(return_X_y=True)
    x = encode(np.asarray(images).reshape(-1, 8, 8))
    y = np.asarray(labels, dtype=np.int64)
    train, held_out = split_indices(y)
    return x[train], y[train], x[held_out], y[held_out]
