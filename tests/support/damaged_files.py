"""Ways to damage a file, for the fuzz tests of every front-end."""

import time
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from slipstick.errors import ModelError, UnsupportedError
from slipstick.graph import Graph

SECONDS = 2.0
"""No file of this size may take longer; a good one takes hundredths."""

EXTREMES = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000, 0x00100000)

QUIETLY = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Files = Callable[[], Sequence[bytes]]
"""What is to be damaged, made when it is first wanted."""

_choices = st.integers(0, 99)
_places = st.floats(0, 1, exclude_max=True)


def flipped_bits(files: Files) -> st.SearchStrategy[bytes]:
    """Up to four bytes have other bits."""

    def damage(choice: int, flips: list[tuple[float, int]]) -> bytes:
        data = bytearray(files()[choice % len(files())])
        for place, mask in flips:
            data[int(place * len(data))] ^= mask
        return bytes(data)

    flips = st.lists(st.tuples(_places, st.integers(1, 255)), max_size=4)
    return st.builds(damage, _choices, flips)


def extreme_words(files: Files) -> st.SearchStrategy[bytes]:
    """A word is one of ``EXTREMES``."""

    def damage(choice: int, place: float, value: int) -> bytes:
        data = bytearray(files()[choice % len(files())])
        word = 4 * int(place * (len(data) // 4))
        data[word : word + 4] = value.to_bytes(4, "little")
        return bytes(data)

    return st.builds(damage, _choices, _places, st.sampled_from(EXTREMES))


def cut_short(files: Files) -> st.SearchStrategy[bytes]:
    """The end is missing."""

    def damage(choice: int, place: float) -> bytes:
        data = files()[choice % len(files())]
        return data[: int(place * len(data))]

    return st.builds(damage, _choices, _places)


def check_load(load: Callable[[bytes], Graph], data: bytes) -> None:
    """A graph or an error of one line comes of it, soon."""
    begin = time.monotonic()
    try:
        assert isinstance(load(data), Graph)
    except (ModelError, UnsupportedError) as error:
        assert str(error).strip() and "\n" not in str(error)
    assert time.monotonic() - begin < SECONDS
