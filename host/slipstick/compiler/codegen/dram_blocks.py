"""Constants as the DMA moves them: words of DRAM, and the instructions for them."""

import itertools
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Operation, Target, Transfer
from slipstick_rtl.link.protocol import Space

from ...program.steps import Image

_MOST_BYTES = 1 << 16
"""Most bytes of a LOAD's run."""
_CELL_BITS = 9
_INSTRUCTION_BYTES = 4
_WORDS = {Target.WEIGHTS: GROUP_CELLS + 1, Target.CELLS: GROUP_CELLS, Target.NINTHS: 1}
"""Words of DRAM for eight groups, by target."""
_LOAD_WORDS = 12
"""Words that a LOAD costs: its own, and the time until the first of its data."""


def constant_loads(
    image: Image, configuration: Configuration, place: int
) -> tuple[bytes, list[Transfer]]:
    """Lays an image out in DRAM, and makes the LOADs that bring it to the chip.

    Parameters
    ----------
    image : Image
        Of INSTRUCTIONS or WEIGHTS, or of ACTIVATIONS.
    configuration : Configuration
        With DRAM.
    place : int
        The word of DRAM that the first byte is for.

    Returns
    -------
    (bytes, list of Transfer)
        Whole words. Each LOAD names the CRC of its own.
    """
    if image.space == Space.WEIGHTS:
        first = image.address * configuration.weight_word_bytes // GROUP_CELLS
        pieces = _weights(np.frombuffer(image.data, np.uint8), first, configuration)
    else:
        pieces = _linear(image)
    blocks, loads = list[bytes](), list[Transfer]()
    for target, chip, run_bytes, data in pieces:
        loads.append(
            Transfer(
                operation=Operation.LOAD,
                target=target,
                checked=True,
                chip=chip,
                dram=place,
                run_bytes=run_bytes,
                crc=zlib.crc32(data),
            )
        )
        blocks.append(data)
        place += len(data) // WORD_BYTES
    return b"".join(blocks), loads


def joined(
    transfers: Iterable[Transfer], blocks: bytes, configuration: Configuration
) -> Iterator[Transfer]:
    """Makes one LOAD of LOADs of constants that follow each other in the list, in DRAM and on chip.

    Each LOAD that is saved saves its own words and the wait for its first data.

    Parameters
    ----------
    transfers : iterable of Transfer
    blocks : bytes
        What lies in DRAM from word 0 on.
    configuration : Configuration
    """
    last: Transfer | None = None
    for transfer in transfers:
        if last is not None and _continues(last, transfer, configuration):
            place = transfer.dram * WORD_BYTES
            data = blocks[place : place + transfer.words * WORD_BYTES]
            last = replace(
                last,
                run_bytes=last.run_bytes + transfer.run_bytes,
                crc=zlib.crc32(data, last.crc),
            )
            continue
        if last is not None:
            yield last
        last = transfer
    if last is not None:
        yield last


def _continues(first: Transfer, second: Transfer, configuration: Configuration) -> bool:
    """Tells whether a LOAD of constants goes on where another one ends."""
    alike = (Operation.LOAD, first.target, True)
    if any((each.operation, each.target, each.checked) != alike for each in (first, second)):
        return False
    units = _units(first, configuration)
    return (
        units is not None
        and second.chip == first.chip + units
        and second.dram == first.dram + first.words
        and first.run_bytes + second.run_bytes <= _MOST_BYTES
    )


def _units(load: Transfer, configuration: Configuration) -> int | None:
    """Counts the memory units that a LOAD fills, if it ends with a whole word and a whole head."""
    if load.run_bytes % WORD_BYTES:
        return None
    if load.target is Target.INSTRUCTIONS:
        return load.run_bytes // _INSTRUCTION_BYTES
    if load.target is Target.ACTIVATIONS:
        return load.run_bytes
    has_heads = load.target is Target.WEIGHTS and configuration.ninth_bits
    if load.target is Target.NINTHS or (has_heads and load.words % (GROUP_CELLS + 1)):
        return None
    return load.words // (GROUP_CELLS + 1) * GROUP_CELLS if has_heads else load.words


def constant_bytes(image: Image, configuration: Configuration) -> int:
    """Bytes of DRAM that are read to load an image, its LOADs not counted."""
    return len(constant_loads(image, configuration, 0)[0])


_Piece = tuple[Target, int, int, bytes]
"""Parts of a LOAD: the target, the first address in its units, the run's bytes, whole words."""


def _linear(image: Image) -> Iterator[_Piece]:
    """Instructions and activations as they are; the last word is filled up."""
    instructions = image.space == Space.INSTRUCTIONS
    target = Target.INSTRUCTIONS if instructions else Target.ACTIVATIONS
    unit = _INSTRUCTION_BYTES if instructions else 1
    for begin in range(0, len(image.data), _MOST_BYTES):
        part = image.data[begin : begin + _MOST_BYTES]
        yield (
            target,
            image.address + begin // unit,
            len(part),
            part + bytes(-len(part) % WORD_BYTES),
        )


def _weights(units: np.ndarray, first: int, configuration: Configuration) -> Iterator[_Piece]:
    """Groups of cells from a group's address on."""
    if not configuration.ninth_bits:
        for begin, part in _parts(units.reshape(-1, GROUP_CELLS), _MOST_BYTES // WORD_BYTES):
            yield Target.WEIGHTS, first + begin, part.size, part.tobytes()
        return
    # nine bytes have eight cells of nine bits
    bits = np.unpackbits(units, bitorder="little").reshape(-1, GROUP_CELLS, _CELL_BITS)
    cells = np.packbits(bits[..., :8], axis=-1, bitorder="little")[..., 0]
    ninth = np.packbits(bits[..., 8], axis=-1, bitorder="little")[..., 0]
    for target, low, high in _spans(cells, ninth):
        # as many groups as a run of any kind can have, and whole heads
        most = _MOST_BYTES // WORD_BYTES // (GROUP_CELLS + 1) * GROUP_CELLS
        for begin, part in _parts(cells[low:high], most):
            begin += low
            heads = ninth[begin : begin + len(part)]
            if target is Target.CELLS:
                data, run_bytes = part.tobytes(), part.size
            elif target is Target.NINTHS:
                data, run_bytes = heads.tobytes() + bytes(-len(heads) % WORD_BYTES), len(heads)
            else:
                data = _with_heads(part, heads)
                run_bytes = len(data)
            yield target, first + begin, run_bytes, data


def _parts(groups: np.ndarray, most: int) -> Iterator[tuple[int, np.ndarray]]:
    """At most so many groups at a time, with the number of the first."""
    for begin in range(0, len(groups), most):
        yield begin, groups[begin : begin + most]


def _spans(cells: np.ndarray, ninth: np.ndarray) -> list[tuple[Target, int, int]]:
    """Chooses which groups come with both kinds of bits, and which with one: the fewest words."""
    count = -(-len(cells) // GROUP_CELLS)
    has_cells, has_ninth = np.zeros((2, count * GROUP_CELLS), bool)
    has_cells[: len(cells)] = (cells != 0).any(axis=1)
    has_ninth[: len(cells)] = ninth != 0
    has_cells = has_cells.reshape(count, -1).max(axis=1)
    has_ninth = has_ninth.reshape(count, -1).max(axis=1)
    kinds = 2 * has_cells + has_ninth
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), count]
    # the cheapest way to end with each target: words, and spans of groups of eight
    ways: dict[Target, tuple[int, list[tuple[Target, int, int]]]] = {}
    for low, high in itertools.pairwise(edges):
        found = {}
        for target, words in _WORDS.items():
            if (has_cells[low] and target is Target.NINTHS) or (
                has_ninth[low] and target is Target.CELLS
            ):
                continue
            options = [
                (total, spans) if spans[-1][0] is target else (total + _LOAD_WORDS, spans)
                for total, spans in ways.values()
            ]
            total, spans = min(options, key=lambda option: option[0], default=(0, []))
            begin = low
            if spans and spans[-1][0] is target:
                begin, spans = spans[-1][1], spans[:-1]
            found[target] = total + words * (high - low), [*spans, (target, begin, high)]
        ways = found
    _, spans = min(ways.values(), key=lambda way: way[0])
    return [
        (target, low * GROUP_CELLS, min(high * GROUP_CELLS, len(cells)))
        for target, low, high in spans
    ]


def _with_heads(cells: np.ndarray, ninth: np.ndarray) -> bytes:
    """A word of ninth bits before each eight words of cells."""
    count = len(cells)
    heads = -(-count // GROUP_CELLS)
    words = np.zeros((heads * (GROUP_CELLS + 1), WORD_BYTES), np.uint8)
    is_head = np.arange(len(words)) % (GROUP_CELLS + 1) == 0
    ninths = np.zeros(heads * GROUP_CELLS, np.uint8)
    ninths[:count] = ninth
    words[is_head] = ninths.reshape(-1, GROUP_CELLS)
    body = np.zeros((heads * GROUP_CELLS, WORD_BYTES), np.uint8)
    body[:count] = cells
    words[~is_head] = body
    # what is behind the last group is not loaded
    return words[: count + heads].tobytes()
