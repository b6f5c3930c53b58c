"""Ways to damage bytes, whatever they mean: the least that every parser must stand."""

import random
from collections.abc import Sequence

EXTREMES = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000, 0x00100000)
"""Words that lengths, offsets and numbers are likely to be wrong about."""

WHOLE = (0, 1, -1, 2, 3, 5, 7, 64, 127, -128, 255, 4096, 1 << 20, (1 << 31) - 1, -(1 << 31))
REAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-38, 1e30, -1e30, 1e300, float("inf"), float("nan"))
TEXT = ("", "x", "int8", "float32", "none", "tflm", "../..", "\N{SNOWMAN}", "a" * 300)


def damaged_bytes(pick: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The bytes with one kind of damage.

    Parameters
    ----------
    pick : Random
        Chooses how and where.
    data : bytes
    others : sequence of bytes
        Files that parts are taken from.
    """
    way = pick.random()
    if way < 0.4:
        return _flipped(pick, data)
    if way < 0.6:
        return _with_extreme(pick, data)
    if way < 0.75:
        return data[: pick.randint(0, len(data))]
    if way < 0.9:
        return _spliced(pick, data, pick.choice(others) if others else data)
    return _resized(pick, data)


def _flipped(pick: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(pick.choice((1, 1, 2, 4, 16))):
        if made:
            made[pick.randrange(len(made))] ^= pick.randint(1, 255)
    return bytes(made)


def _with_extreme(pick: random.Random, data: bytes) -> bytes:
    size = pick.choice((2, 4, 4, 4, 8))
    made = bytearray(data)
    if len(made) >= size:
        place = size * pick.randrange(len(made) // size)
        word = pick.choice(EXTREMES) & (1 << 8 * size) - 1
        made[place : place + size] = word.to_bytes(size, pick.choice(("little", "big")))
    return bytes(made)


def _spliced(pick: random.Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return data[: pick.randint(0, len(data))] + other[pick.randint(0, len(other)) :]


def _resized(pick: random.Random, data: bytes) -> bytes:
    """Bytes inside are left out, or there twice."""
    begin = pick.randint(0, len(data))
    end = min(len(data), begin + pick.choice((1, 2, 4, 16, 64)))
    if pick.random() < 0.5:
        return data[:begin] + data[end:]
    return data[:end] + data[begin:]


def other_whole(pick: random.Random, value: int) -> int:
    """Another whole number: a near one, or an extreme one."""
    near = (value + 1, value - 1, -value, 2 * value, value // 2)
    return pick.choice(near) if pick.random() < 0.5 else pick.choice(WHOLE)


def other_real(pick: random.Random, value: float) -> float:
    """Another real number: a near one, or an extreme one."""
    near = (value * 1.5, -value, value * 2.0**20, value * 2.0**-20, value + 1)
    return pick.choice(near) if pick.random() < 0.5 else pick.choice(REAL)


def other_shape(pick: random.Random, shape: Sequence[int], *, same_size: bool) -> tuple[int, ...]:
    """Another shape, of a rank of 0 to 5; of as many elements if that is asked for."""
    sizes = list(shape)
    if same_size or pick.random() < 0.4:
        for _ in range(pick.randint(1, 3)):
            if len(sizes) > 1 and pick.random() < 0.6:
                place = pick.randrange(len(sizes) - 1)
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
            elif sizes == [1] and pick.random() < 0.6:
                sizes = []
            elif len(sizes) < 5:
                sizes.insert(pick.randint(0, len(sizes)), 1)
        return tuple(sizes)
    if pick.random() < 0.4:
        return tuple(pick.choice((0, 1, 2, 3, 8)) for _ in range(pick.randint(0, 5)))
    if sizes:
        place = pick.randrange(len(sizes))
        sizes[place] = other_whole(pick, sizes[place])
    return tuple(sizes)
