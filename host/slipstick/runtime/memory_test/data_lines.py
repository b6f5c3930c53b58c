"""Tests the data lines between FPGA and DRAM: stuck, shorted or open ones."""

from collections.abc import Iterator

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer
from slipstick_rtl.dram.chips import DramChip

from ..dram_port import DramPort
from .verdict import Verdict, name_bits

NAME = "data lines"
_PAIR_BYTES = 2 * WORD_BYTES
"""Bytes of a pattern and its inverse."""


def line_patterns(data_bits: int) -> list[int]:
    """Returns words of the chip: each single bit, every second bit, and none."""
    return [*(1 << bit for bit in range(data_bits)), sum(1 << k for k in range(0, data_bits, 2)), 0]


def check_data_lines(port: DramPort, chip: DramChip) -> tuple[Verdict, int]:
    """Writes and reads each pattern and its inverse, at both ends of the memory.

    The inverse is written between a pattern and its reading: an open line keeps for a while what
    was last on it.

    Returns
    -------
    (Verdict, int)
        And the data bits that are sound, as a mask.
    """
    bits = chip.data_bits
    kind = np.dtype(f"<u{bits // 8}")
    values = np.array(line_patterns(bits), np.uint64).astype(kind)
    # every word of the chip within a word of eight bytes is the same
    copies = 8 * WORD_BYTES // bits
    expected = np.stack([values, ~values], axis=1).repeat(copies, axis=1)
    found = np.concatenate([*_read_back(port, chip, expected)]).reshape(-1)
    expected = expected.reshape(-1)
    faults, unsound = diagnose_data_lines(expected, found, bits)
    detail = "; ".join(faults) or f"all {bits} bits carry ones and zeros independently"
    return Verdict(name=NAME, passed=not faults, detail=detail), (1 << bits) - 1 & ~unsound


def _read_back(port: DramPort, chip: DramChip, pairs: np.ndarray) -> Iterator[np.ndarray]:
    """As many pairs at a time as the activation memory holds twice."""
    last = chip.bytes // WORD_BYTES - 1
    step = port.stage_bytes // (2 * _PAIR_BYTES)
    for begin in range(0, len(pairs), step):
        part = pairs[begin : begin + step]
        size = part.nbytes
        port.stage(part.tobytes())
        for place in range(0, size, _PAIR_BYTES):
            inverse = place + WORD_BYTES
            port.give(
                Transfer(operation=Operation.STORE, chip=place, dram=0, run_bytes=WORD_BYTES),
                Transfer(operation=Operation.STORE, chip=inverse, dram=last, run_bytes=WORD_BYTES),
                Transfer(operation=Operation.LOAD, chip=size + place, dram=0, run_bytes=WORD_BYTES),
                Transfer(
                    operation=Operation.LOAD, chip=size + inverse, dram=last, run_bytes=WORD_BYTES
                ),
            )
        port.finish()
        yield np.frombuffer(port.device.read(size, size), pairs.dtype).reshape(part.shape)


def diagnose_data_lines(
    expected: np.ndarray, found: np.ndarray, data_bits: int
) -> tuple[list[str], int]:
    """Says what is wrong with the data lines.

    Parameters
    ----------
    expected, found : array of unsigned integers
        Words of the chip, in which no two bits are always equal.
    data_bits : int

    Returns
    -------
    (list of str, int)
        A sentence per fault, and a mask of the bits that are wrong.
    """
    wanted, seen = _bits_of(expected, data_bits), _bits_of(found, data_bits)
    wrong = (wanted != seen).any(axis=0)
    stuck = {level: wrong & (seen == level).all(axis=0) for level in (False, True)}
    told = [
        f"{name_bits('data bit', np.flatnonzero(stuck[level]).tolist())} stuck at {int(level)}"
        for level in (False, True)
        if stuck[level].any()
    ]
    others = [int(bit) for bit in np.flatnonzero(~stuck[False] & ~stuck[True])]
    alike = dict[bytes, list[int]]()
    for bit in others:
        alike.setdefault(seen[:, bit].tobytes(), []).append(bit)
    shorted = [group for group in alike.values() if len(group) > 1]
    told += [f"{name_bits('data bit', group)} shorted: they carry the same" for group in shorted]
    single = [group[0] for group in alike.values() if len(group) == 1 and wrong[group[0]]]
    if single:
        count = int((wanted != seen)[:, single].any(axis=1).sum())
        told.append(f"{name_bits('data bit', single)} wrong in {count} of {len(expected)} words")
    return told, sum(1 << int(bit) for bit in np.flatnonzero(wrong))


def _bits_of(words: np.ndarray, data_bits: int) -> np.ndarray:
    """Array of bool, (words, bits)."""
    places = np.arange(data_bits, dtype=words.dtype)
    return (words[:, None] >> places & words.dtype.type(1)).astype(bool)
