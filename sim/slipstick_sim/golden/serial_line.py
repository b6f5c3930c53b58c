"""Models a serial line, bit by bit, as the UART sees it."""

from collections.abc import Iterable, Sequence

HIGH, LOW = 1, 0


def bits_of(byte: int) -> list[int]:
    """The ten bits of a byte: low, the data from the least significant bit on, high."""
    return [LOW, *(byte >> place & 1 for place in range(8)), HIGH]


def levels_of(data: Iterable[int], divisor: int) -> list[int]:
    """The line, cycle by cycle, of bytes sent without a pause at ``divisor`` cycles a bit."""
    return [bit for byte in data for bit in bits_of(byte) for _ in range(divisor)]


def bytes_of(levels: Sequence[int], divisor: int) -> tuple[list[int], int]:
    """Reads a line.

    Parameters
    ----------
    levels : sequence of int
        The line, cycle by cycle, from rest on.
    divisor : int
        Cycles of a bit.

    Returns
    -------
    tuple of list of int, int
        The bytes, and how many more lacked their stop bit.
    """
    data: list[int] = []
    errors = 0
    place = 0
    while place + 10 * divisor <= len(levels):
        if levels[place] == HIGH:
            place += 1
            continue
        bits = [levels[place + number * divisor + divisor // 2] for number in range(10)]
        if bits[0] == HIGH:
            place += divisor // 2
        elif bits[9] == HIGH:
            data.append(sum(bit << number for number, bit in enumerate(bits[1:9])))
            place += 9 * divisor + divisor // 2
        else:
            errors += 1
            place += 9 * divisor + divisor // 2
            while place < len(levels) and levels[place] == LOW:
                place += 1
    return data, errors
