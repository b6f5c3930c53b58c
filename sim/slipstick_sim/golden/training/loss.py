"""Softmax and cross-entropy in integers: powers of two by a table, errors that sum to zero."""

from functools import cache

import numpy as np

from .rounding import LARGEST_CODE, codes_of, round_pseudo_stochastic, shift_for

TABLE_PLACES = 8
"""The table has 2^8 powers of two, 2^(-i / 256), one per 256th of an octave."""

POWER_PLACES = 15
"""Binary places of a power: 1 is 2^15."""

SHARE_PLACES = 16
"""Binary places of a probability, and so of an error before it is rounded."""

LOG2_E_PLACES = 16
LOG2_E = 94_548
"""log2(e) x 2^16, rounded."""

_LARGEST_LEFT_SHIFT = 24
"""A logit's unit of 2^16 or more: the largest logit takes everything."""


@cache
def power_table() -> np.ndarray:
    """round(2^(15 - i / 256)) for i = 0..255, int32: 16 bits each."""
    exact = np.exp2(POWER_PLACES - np.arange(1 << TABLE_PLACES) / (1 << TABLE_PLACES))
    table = np.rint(exact).astype(np.int32)
    table.setflags(write=False)
    return table


def probabilities(logits: np.ndarray, exponent: int) -> np.ndarray:
    """softmax of logits x 2^exponent, in units of 2^-16, rounded down.

    1. ``below = largest logit of the image - logit``, 0..254
    2. ``octaves = (below * LOG2_E) >> (8 - exponent)``, in 256ths; shifted left if negative
    3. ``power = table[octaves mod 256] >> (octaves div 256)``, 0 beyond 15 octaves
    4. ``(power << 16) div (sum of the image's powers)``

    Parameters
    ----------
    logits : array of int8, (batch, classes)
        Linear numbers of a logarithmic array have up to 24 bits.
    exponent : int

    Returns
    -------
    array of int32, (batch, classes), 0..2^16
    """
    wide = logits.astype(np.int64)
    below = (wide.max(axis=1, keepdims=True) - wide) * LOG2_E
    shift = LOG2_E_PLACES - TABLE_PLACES - exponent
    octaves = below >> min(shift, 62) if shift >= 0 else below << min(-shift, _LARGEST_LEFT_SHIFT)
    whole = np.minimum(octaves >> TABLE_PLACES, POWER_PLACES + 1)
    powers = power_table()[octaves & ((1 << TABLE_PLACES) - 1)].astype(np.int64) >> whole
    return ((powers << SHARE_PLACES) // powers.sum(axis=1, keepdims=True)).astype(np.int32)


def loss_gradient(
    logits: np.ndarray, exponent: int, labels: np.ndarray, shift: int | None = None
) -> tuple[np.ndarray, int, int]:
    """Error of each logit under cross-entropy, as int8; each image's sum to zero.

    The error of the label is minus the sum of the others', not its probability less one: with 8
    bits the rest would push all logits of an image the same way (the accuracy of a small network
    falls by 4 points). Others are probabilities, rounded pseudo-stochastically; where they sum to
    more than 127, each is multiplied by 127 and divided by the sum, rounded down.

    Parameters
    ----------
    logits : array of int8, (batch, classes)
    exponent : int
        Of the logits.
    labels : array of int, (batch,)
    shift : int, optional
        By default ``shift_for`` of this step's largest sum.

    Returns
    -------
    errors : array of int8, (batch, classes)
    exponent : int
        Of the errors. The batch is not divided by: the learning rate has that.
    largest : int
        The largest sum of an image's others, in units of 2^-16, for the next step.
    """
    shares = probabilities(logits, exponent)
    true = np.arange(logits.shape[1]) == np.asarray(labels)[:, None]
    others = np.where(true, 0, shares)
    found = int(others.sum(axis=1).max(initial=0))
    if shift is None:
        shift = shift_for(found)
    rounded = codes_of(round_pseudo_stochastic(others, shift)).astype(np.int32)
    total = rounded.sum(axis=1, keepdims=True)
    rounded = np.where(
        total > LARGEST_CODE, rounded * LARGEST_CODE // np.maximum(total, 1), rounded
    )
    errors = np.where(true, -rounded.sum(axis=1, keepdims=True), rounded)
    return errors.astype(np.int8), shift - SHARE_PLACES, found
