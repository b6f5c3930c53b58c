"""Random bits of a seed and a place: the same on every machine, in any order, and never stored."""

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
SEEDS = 1 << 64


def counter_bits(seed: int, count: int, first: int = 0) -> np.ndarray:
    """The bits of places ``first``, ``first + 1``, ... of a seed.

    The generator is SplitMix64 (G. Steele et al., "Fast splittable pseudorandom number generators",
    2014), begun at a mix of the seed.

    Parameters
    ----------
    seed : int, 0..2^64 - 1
    count : int
    first : int

    Returns
    -------
    array of uint64, (count,)
    """
    start = _mix(np.array([seed], np.uint64) ^ _STEP)
    places = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    return _mix(start + places * _STEP)


def seed_of(*numbers: int) -> int:
    """A seed of some numbers of 64 bits: of a run, a step, a part, for instance."""
    state = np.array([len(numbers)], np.uint64)
    for number in numbers:
        state = _mix(state * _SECOND + np.array([number % SEEDS], np.uint64) + _STEP)
    return int(state[0])


def _mix(x: np.ndarray) -> np.ndarray:
    """Arrays wrap around without a warning; single numbers would not."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
