"""Parameters of channels as they lie in the weight memory: blocks of C times 72 bits."""

import numpy as np
from slipstick_rtl.config import PARAMETER_BITS, Configuration

Parameters = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Bias, multiplier and shift: int32, int64 and int64."""

LAYOUT = np.dtype([("bias", "<i4"), ("multiplier", "<u4"), ("shift", "u1")])


def decode(data: np.ndarray) -> Parameters:
    """Bias, multiplier and shift of channels, uint8 (channels, 9)."""
    words = np.ascontiguousarray(data, np.uint8).view(LAYOUT)[:, 0]
    bias, multiplier, shift = (words[name] for name in LAYOUT.names or ())
    return bias.astype(np.int32), multiplier.astype(np.int64), shift.astype(np.int64)


def decode_block(configuration: Configuration, block: np.ndarray) -> Parameters:
    """The parameters of a block's C channels, each (C,): of a pipelined engine.

    Parameters
    ----------
    configuration : Configuration
    block : array, (parameter_block_words, W, C)
        Ninth bits (0 or 1), or the bytes where the configuration has none.

    Raises
    ------
    ValueError
        If the block has another shape.
    """
    _check_shape(configuration, block.shape)
    rows = np.ascontiguousarray(block).view(np.uint8).reshape(-1, configuration.columns)
    if configuration.ninth_bits:
        return decode(np.packbits(rows[:PARAMETER_BITS].T, axis=1, bitorder="little"))
    return decode(rows[: PARAMETER_BITS // 8].T)


def encode_block(
    configuration: Configuration, bias: np.ndarray, multiplier: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """Encodes a block for ``decode_block``: uint8 bits with ``ninth_bits``, else int8.

    Parameters
    ----------
    configuration : Configuration
    bias, multiplier, shift : array, (C,)
        The shift as ``encode_shift`` gives it.

    Raises
    ------
    ValueError
        If there are not as many as channels, or a value does not fit its field.
    """
    c = configuration
    channels = np.zeros(c.columns, LAYOUT)
    limits = {"bias": (-(1 << 31), (1 << 31) - 1), "multiplier": (0, (1 << 31) - 1)}
    limits["shift"] = (0, 255)
    for (name, (low, high)), values in zip(limits.items(), (bias, multiplier, shift), strict=True):
        if np.shape(values) != (c.columns,):
            raise ValueError(f"{name} must have {c.columns} values, not {np.shape(values)}")
        wrong = [int(value) for value in values if not low <= value <= high]
        if wrong:
            raise ValueError(f"{name} must be within {low}..{high}, not {wrong[0]}")
        channels[name] = values
    rows = channels.view(np.uint8).reshape(c.columns, -1)
    if c.ninth_bits:
        rows = np.unpackbits(rows, axis=1, bitorder="little")
    block = np.zeros((c.parameter_block_words * c.weight_rows, c.columns), np.uint8)
    block[: rows.shape[1]] = rows.T
    words = block.reshape(c.parameter_block_words, c.weight_rows, c.columns)
    return words if c.ninth_bits else words.view(np.int8)


def parameter_block(
    weights: np.ndarray, ninth: np.ndarray, address: int, configuration: Configuration
) -> Parameters:
    """The parameters of C channels in the block at a word of the weight memory, each (C,).

    Parameters
    ----------
    weights : array of int8, (words, W, C)
    ninth : array of uint8, (words, W, C)
    address : int
    configuration : Configuration

    Raises
    ------
    ValueError
        If the block reaches beyond the memory.
    """
    words = configuration.parameter_block_words
    if address < 0 or address + words > len(weights):
        raise ValueError(
            f"parameter words must lie within 0..{len(weights)}, not {address}..{address + words}"
        )
    source = ninth if configuration.ninth_bits else weights
    return decode_block(configuration, source[address : address + words])


def _check_shape(configuration: Configuration, shape: tuple[int, ...]) -> None:
    c = configuration
    expected = c.parameter_block_words, c.weight_rows, c.columns
    if shape != expected:
        raise ValueError(f"a block of parameters must be shaped {expected}, not {shape}")
