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
    span, columns = slice(address, address + words), configuration.columns
    if configuration.ninth_bits:
        bits = ninth[span].reshape(-1, columns)[:PARAMETER_BITS]
        return decode(np.packbits(bits.T, axis=1, bitorder="little"))
    data = weights[span].view(np.uint8).reshape(-1, columns)[: PARAMETER_BITS // 8]
    return decode(data.T)
