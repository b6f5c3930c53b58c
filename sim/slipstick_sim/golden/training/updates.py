"""Stochastic gradient descent in integers: one rounding per step, after the sum over the batch."""

from collections.abc import Sequence

import numpy as np

from .rounding import (
    LARGEST_CODE,
    LARGEST_SHIFT,
    LARGEST_SUM,
    UPDATE_FRACTION_BITS,
    align,
    exact_sum,
    round_pseudo_stochastic,
    saturate,
)

MASTER_PLACES = 8
"""Bits of a master weight of 16 bits below those of the weight that is multiplied."""

LARGEST_MASTER = (LARGEST_CODE << MASTER_PLACES) + (1 << (MASTER_PLACES - 1)) - 1
"""Magnitude of a master weight: the largest that rounds to 127."""

MASTER_ROW_WEIGHTS = 8
MASTER_ROW_BYTES = 24
"""Bytes of eight master weights in a board's DRAM."""

BIAS_PLACES = 16
"""Binary places of a bias, int32, below those of its layer's weights."""

VELOCITY_PLACES = 8
"""Binary places of a velocity, int32, below those of what it moves."""


def weights_of(masters: np.ndarray) -> np.ndarray:
    """The upper byte of master weights, rounded, ties up: (master + 128) >> 8.

    Parameters
    ----------
    masters : array of int16 or int32, -LARGEST_MASTER..LARGEST_MASTER

    Returns
    -------
    array of int8, -127..127
    """
    wide = masters.astype(np.int32) + (1 << (MASTER_PLACES - 1))
    return saturate(wide >> MASTER_PLACES).astype(np.int8)


def pack_masters(masters: np.ndarray) -> np.ndarray:
    """Master rows, as they lie in a board's DRAM: eight masters of 16 bits, and their weights.

    Parameters
    ----------
    masters : array of int32, (8 n,)

    Returns
    -------
    array of uint8, (n, 24)
    """
    rows = masters.reshape(-1, MASTER_ROW_WEIGHTS)
    bytes_of = np.ascontiguousarray(rows.astype("<i2")).view(np.uint8)
    return np.concatenate([bytes_of, weights_of(rows).view(np.uint8)], axis=1)


def unpack_masters(rows: np.ndarray) -> np.ndarray:
    """The masters of master rows.

    Parameters
    ----------
    rows : array of uint8, (n, 24)

    Returns
    -------
    array of int32, (8 n,)
    """
    masters = np.ascontiguousarray(rows[:, : 2 * MASTER_ROW_WEIGHTS])
    return masters.view("<i2").reshape(-1).astype(np.int32)


def bias_of(masters: np.ndarray, shift: int) -> np.ndarray:
    """Biases in units of the accumulator: to nearest even for a shift to the right.

    Parameters
    ----------
    masters : array of int32
    shift : int
        The accumulator's exponent less the masters'; negative for a shift to the left.

    Returns
    -------
    array of int32
        Saturated at +-(2^31 - 1) if shifted to the left.
    """
    return align(masters, shift) if shift >= 0 else _shift_left(masters, -shift, LARGEST_SUM)


def merge_gradients(sums: Sequence[np.ndarray]) -> np.ndarray:
    """Adds the gradients of parts of a batch, as int32: bit for bit that of the whole batch.

    Raises
    ------
    OverflowError
        If a sum passes 32 bits.
    """
    total = np.zeros(sums[0].shape, np.int64)
    for part in sums:
        total += part
    return exact_sum(total, "a merged gradient")


def step_of(gradient: np.ndarray, shift: int, largest: int) -> np.ndarray:
    """Computes how much a gradient takes off a value, in units of that value.

    Parameters
    ----------
    gradient : array of int32
        Summed over the batch.
    shift : int
        ``exponent of the masters - exponent of the gradient + rate shift``, where the learning
        rate divided by the batch is 2^-(rate shift). Above 31 the step is 0; below 0 the gradient
        is shifted to the left.
    largest : int
        The step saturates at this magnitude.

    Returns
    -------
    array of int32
        ``rounding.round_pseudo_stochastic`` with ``UPDATE_FRACTION_BITS``.
    """
    if shift > LARGEST_SHIFT:
        return np.zeros_like(gradient)
    if shift >= 0:
        return saturate(_round(gradient, shift), largest)
    return _shift_left(gradient, -shift, largest)


def update(masters: np.ndarray, gradient: np.ndarray, shift: int, largest: int) -> np.ndarray:
    """Masters less the step that their gradient and a shift make; saturated.

    Parameters
    ----------
    masters : array of int32
        Master weights of 16 bits, weights of 8 bits alone, or biases.
    gradient : array of int32
        Summed over the batch.
    shift : int
        As ``step_of`` has it.
    largest : int
        Of the masters: ``LARGEST_MASTER``, 127, or ``LARGEST_SUM`` for biases.

    Returns
    -------
    array of int32
    """
    step = step_of(gradient, shift, largest).astype(np.int64)
    return saturate(masters - step, largest).astype(np.int32)


def update_with_momentum(
    masters: np.ndarray,
    velocity: np.ndarray,
    gradient: np.ndarray,
    shift: int,
    largest: int,
    decay: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The same through a velocity that loses 2^-decay of itself per step.

    ``velocity = velocity - psr(velocity, decay) + step``, in units 2^-8 of the masters', and
    ``masters - psr(velocity, 8)``; psr is the rounding of ``step_of``. Momentum is
    1 - 2^-decay, so that a gradient's whole effect is 2^decay times that of ``update``.

    Parameters
    ----------
    masters, velocity, gradient : array of int32
    shift, largest
        As ``update`` has them.
    decay : int, 1..8

    Returns
    -------
    masters, velocity : array of int32
        The velocity saturates at +-(2^31 - 1).
    """
    if not 1 <= decay <= 8:
        raise ValueError(f"a velocity's decay must be within 1..8, not {decay}")
    step = step_of(gradient, shift - VELOCITY_PLACES, LARGEST_SUM).astype(np.int64)
    kept = velocity.astype(np.int64) - _round(velocity, decay)
    velocity = saturate(kept + step, LARGEST_SUM).astype(np.int32)
    change = _round(velocity, VELOCITY_PLACES).astype(np.int64)
    return saturate(masters - change, largest).astype(np.int32), velocity


def _round(values: np.ndarray, shift: int) -> np.ndarray:
    return round_pseudo_stochastic(values, shift, UPDATE_FRACTION_BITS)


def _shift_left(values: np.ndarray, shift: int, largest: int) -> np.ndarray:
    wide = values.astype(np.int64)
    # 62 bits hold the product of 31 bits and 2^31
    return saturate(wide << min(shift, LARGEST_SHIFT), largest).astype(np.int32)
