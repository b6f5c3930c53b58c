"""Measures how well a candidate does, in integers: the same on every machine, in four bytes."""

from functools import cache

import numpy as np

_ONE = 8
"""Binary places of a logarithm."""
_WORST = 1 << 16
"""Most that an image costs, in 1/256 octaves: 2^31 is that of 32,767 images."""
MOST_IMAGES = 32_767


@cache
def _logarithms() -> np.ndarray:
    """256 log2(1 + i / 256), to nearest."""
    return np.rint(256 * np.log2(1 + np.arange(257) / 256)).astype(np.int64)


def _loss():
    """The definition's table and constants, imported when they are first used."""
    from slipstick_sim.golden.training import loss

    return loss


def fitness_of(codes: np.ndarray, exponent: int, labels: np.ndarray) -> np.ndarray:
    """Minus the cross-entropy of images, in 1/256 octaves (bits), as int64 of 32 bits.

    Parameters
    ----------
    codes : array of int8, (..., images, classes)
        Logits.
    exponent : int
        Of the logits.
    labels : array of int, (images,)

    Returns
    -------
    array of int64, (...)
        The sums over the images.
    """
    if codes.shape[-2] > MOST_IMAGES:
        raise ValueError(f"images must be at most {MOST_IMAGES}, not {codes.shape[-2]}")
    wide = codes.astype(np.int64)
    loss = _loss()
    below = wide.max(axis=-1, keepdims=True) - wide
    # as the definition's loss: log2(e) in 16 places
    places = loss.LOG2_E_PLACES - _ONE - exponent
    scaled = below * loss.LOG2_E
    octaves = scaled >> min(places, 62) if places >= 0 else scaled << min(-places, 20)
    octaves = np.minimum(octaves, _WORST)
    powers = np.where(
        octaves >> _ONE < 16,
        loss.power_table()[octaves & 255] >> np.minimum(octaves >> _ONE, 31),
        0,
    )
    total = powers.sum(axis=-1)
    size = np.frexp(total.astype(np.float64))[1] - 1
    fraction = ((total << 16) >> size) - (1 << 16)
    logarithm = (size.astype(np.int64) << _ONE) + _logarithms()[(fraction + 128) >> 8]
    of_label = (15 << _ONE) - octaves[..., np.arange(len(labels)), labels]
    return -np.minimum(logarithm - of_label, _WORST).sum(axis=-1)
