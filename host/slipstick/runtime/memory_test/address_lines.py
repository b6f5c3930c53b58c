"""Tests the address lines between FPGA and DRAM: lines without effect, and shorted ones."""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer
from slipstick_rtl.dram.chips import DramChip

from ..dram_port import DramPort
from .verdict import Verdict, address_text

NAME = "address lines"
_SEED = 0x51
_MOST_PAIRS = 3
"""Pairs of addresses that a message lists."""


@dataclass(frozen=True)
class AddressBit:
    """A bit of the address of a word of the chip.

    Parameters
    ----------
    name : str
        Such as "row bit 3".
    pin : str
        Of the chip: rows and columns go over the same ones.
    """

    name: str
    pin: str


def address_bits(chip: DramChip) -> list[AddressBit]:
    """Returns the bits in their order: LiteDRAM's, where columns come first, then banks, rows."""
    parts = (("column", "A", chip.columns), ("bank", "BA", chip.banks), ("row", "A", chip.rows))
    return [
        # no column goes over A10, which is a flag of READ and WRITE
        AddressBit(f"{kind} bit {bit}", f"{pin}{bit + (kind == 'column' and bit >= 10)}")
        for kind, pin, count in parts
        for bit in range(count.bit_length() - 1)
    ]


def check_address_lines(port: DramPort, chip: DramChip, sound_bits: int) -> Verdict:
    """Writes different words at 0 and at each power of two, then reads all of them.

    Parameters
    ----------
    port : DramPort
    chip : DramChip
    sound_bits : int
        Data bits that can be trusted, as a mask.
    """
    words = chip.bytes // WORD_BYTES
    places = [0, *(1 << bit for bit in range(words.bit_length() - 1))]
    parts = 8 * WORD_BYTES // chip.data_bits
    written = distinct_words(parts * len(places), sound_bits)
    if written is None:
        detail = f"not judged: only {sound_bits.bit_count()} data bits are sound"
        return Verdict(name=NAME, passed=None, detail=detail)
    data = written.astype(f"<u{chip.data_bits // 8}").tobytes()
    port.stage(data)
    moves = [(WORD_BYTES * k, place) for k, place in enumerate(places)]
    for operation, offset in ((Operation.STORE, 0), (Operation.LOAD, len(data))):
        port.give(
            *(
                Transfer(operation=operation, chip=offset + at, dram=place, run_bytes=WORD_BYTES)
                for at, place in moves
            )
        )
    port.finish()
    read = np.frombuffer(port.device.read(len(data), len(data)), f"<u{chip.data_bits // 8}")
    addresses = [parts * place + part for place in places for part in range(parts)]
    found = read.astype(np.uint64) & np.uint64(sound_bits)
    told = diagnose_address_lines(
        chip, dict(zip(addresses, written.tolist(), strict=True)), found.tolist()
    )
    count = len(address_bits(chip))
    detail = "; ".join(told) or f"all {count} bits tell words apart"
    return Verdict(name=NAME, passed=not told, detail=detail)


def distinct_words(count: int, mask: int) -> np.ndarray | None:
    """Returns random words, all different and none zero, with ones in bits of the mask only.

    None if so many bits are too few.
    """
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1][:32]
    if 1 << len(bits) <= count:
        return None
    numbers = 1 + np.random.default_rng(_SEED).permutation((1 << min(len(bits), 16)) - 1)[:count]
    words = np.zeros(count, np.uint64)
    for k, bit in enumerate(bits[:16]):
        words |= (numbers.astype(np.uint64) >> np.uint64(k) & np.uint64(1)) << np.uint64(bit)
    return words


def diagnose_address_lines(chip: DramChip, written: dict[int, int], found: list[int]) -> list[str]:
    """Says what is wrong with the address lines.

    Parameters
    ----------
    chip : DramChip
    written : dict of int by int
        A different word for each address, counted in words of the chip.
    found : list of int
        The words that were read, in the same order.

    Returns
    -------
    list of str
        A sentence per fault.
    """
    owner = {word: address for address, word in written.items()}
    size, pairs, strange = chip.data_bits // 8, list[tuple[int, int]](), list[str]()
    differing = 0
    for (address, word), seen in zip(written.items(), found, strict=True):
        if seen == word:
            continue
        other = owner.get(seen)
        if other is None:
            strange.append(
                f"address {address_text(size * address)} holds 0x{seen:x}, not 0x{word:x}, which"
                " was written nowhere"
            )
            continue
        pairs.append((address, other))
        differing |= address ^ other
    if not pairs:
        return strange[:_MOST_PAIRS]
    alike = ", ".join(
        f"{address_text(size * first)} and {address_text(size * second)}"
        for first, second in pairs[:_MOST_PAIRS]
    )
    more = len(pairs) - _MOST_PAIRS
    rest = f", and {more} more pair{'s' if more > 1 else ''}" if more > 0 else ""
    return [f"{_name_lines(chip, differing)}: one word is at addresses {alike}{rest}", *strange[:1]]


def _name_lines(chip: DramChip, differing: int) -> str:
    """The pins and bits of the address that make no difference."""
    known = address_bits(chip)
    bits = [known[bit] for bit in range(differing.bit_length()) if differing >> bit & 1]
    pins = list(dict.fromkeys(bit.pin for bit in bits))
    names = ", ".join(bit.name for bit in bits)
    if len(pins) == 1:
        return f"pin {pins[0]} has no effect ({names})"
    return f"pins {', '.join(pins)} have no effect, or are shorted ({names})"
