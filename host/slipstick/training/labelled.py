"""Labelled sets of files, and what is held out of them for testing."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..data.inputs import load_inputs, load_labels
from ..errors import InputError
from .data import LabelledSet, Split
from .session import TrainingSession


def load_labelled(
    session: TrainingSession,
    paths: Sequence[Path],
    labels: Path | None,
    *,
    limit: int | None = None,
    option: str = "--labels",
) -> LabelledSet:
    """Reads a labelled set as a session learns it.

    Parameters
    ----------
    session : TrainingSession
    paths : sequence of path
        Inputs, as ``slipstick eval`` takes them.
    labels : path or None
        A file of labels; None: they come with the inputs, as ``y``.
    limit : int, optional
        Only the first ones.
    option : str
        What gives labels, for the message that there are none.

    Raises
    ------
    InputError
        If a file cannot be read, if there are no labels, or if an input or a label is none.
    """
    samples = load_inputs(paths, session.interface.shape)
    truths = samples.y if labels is None else load_labels(labels, len(samples))
    if truths is None:
        listed = ", ".join(map(str, paths))
        raise InputError(f"inputs {listed} come without labels y: give them by {option} FILE")
    return session.prepare(samples.x[:limit], truths[:limit])


def hold_out(data: LabelledSet, share: float, seed: int) -> Split:
    """Divides a labelled set by chance.

    Parameters
    ----------
    data : LabelledSet
    share : float
        That is tested on, above 0 and below 1.
    seed : int

    Raises
    ------
    InputError
        If one of the two would be empty.
    """
    places = np.random.default_rng([seed, 3]).permutation(len(data))
    count = round(share * len(data))
    if not 0 < count < len(data):
        raise InputError(
            f"a share of {share:g} of {len(data)} images must leave some to learn from and some to"
            f" test on, not {len(data) - count} and {count}"
        )
    # those that are learned from stay in the file's order
    return Split(data.at(np.sort(places[count:])), data.at(np.sort(places[:count])))


def digest(*arrays: np.ndarray) -> str:
    """16 hexadecimal digits that tell arrays from others."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]
