"""In which order the images of a batch are computed: as many together as the DRAM has room for.

Images that are computed together share what is loaded, and their maps wait in DRAM meanwhile. The
early maps of a network are the large ones, and its early layers have few weights.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import TRANSFER_WORDS, WORD_BYTES
from slipstick_rtl.isa import WORDS_PER_INSTRUCTION

from ..ir.operations import View
from ..mapping.activation_layout import round_up
from .partitioner import Piece
from .subprograms import Tile

_INSTRUCTION_BYTES = 4 * WORDS_PER_INSTRUCTION
_OWN_INSTRUCTIONS = 0.7
"""Share of all tiles' instructions that are no other tile's as well, nearly."""
_TRANSFERS_OF_RUN = 6
"""Transfers of a list for each run, nearly: a run, a wait, maps and constants."""

Turn = tuple[int, Tile, int]
"""The number of a piece, a tile of it, and an image."""


def turns(
    pieces: Sequence[Piece], views: Mapping[str, View], configuration: Configuration, batch: int
) -> list[Turn | int]:
    """All tiles of all images, and the layers of the host, in an order in which they can run.

    Parameters
    ----------
    pieces : sequence of Piece
    views : mapping of View by tensor
        The whole of each tensor that is moved.
    configuration : Configuration
    batch : int
    """
    together = [batch] * len(pieces)
    if batch > 1 and configuration.dram:
        # a layer of the host is computed for all images at once
        first = next((at for at, piece in enumerate(pieces) if piece.host is None), 0)
        behind = itertools.takewhile(lambda piece: piece.host is None, pieces[first:])
        planner = _Planner(list(behind), pieces[first:], views, configuration, batch)
        found = planner.together()
        together[first : first + len(found)] = found
    return list(_order(pieces, together, configuration, batch))


class _Planner:
    """Finds how many images pass together through each piece; see ``together``.

    Parameters
    ----------
    pieces : sequence of Piece
        Without the host's.
    all_pieces : sequence of Piece
        These and those behind them.
    views : mapping of View by tensor
    configuration : Configuration
    batch : int
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        all_pieces: Sequence[Piece],
        views: Mapping[str, View],
        configuration: Configuration,
        batch: int,
    ) -> None:
        self._batch = batch
        self._room = max(_room(all_pieces, configuration, batch), 0)
        self._more = -(-self._room // 16) + WORD_BYTES
        self._weights = [_weight_bytes(piece.tiles) for piece in pieces]
        self._shared = [len(list(_sharing(piece.tiles, configuration))) == 1 for piece in pieces]
        made, read = dict[str, int](), dict[str, int]()
        for at, piece in enumerate(all_pieces):
            for tile in piece.tiles:
                made |= {name: at for name in tile.job.owned if name not in made}
                read |= dict.fromkeys(tile.job.inputs, at)
        sizes = {name: _bytes(views[name]) for name in made.keys() | read.keys()}
        inputs = read.keys() - made.keys()
        self._inputs = sum(sizes[name] for name in inputs)
        self._inputs_read = max((read[name] for name in inputs), default=-1)
        # bytes of an image before each piece, and while it is computed
        self._waiting, self._alive = [0] * (len(pieces) + 1), [0] * len(pieces)
        for name, at in made.items():
            last = read.get(name, len(pieces))
            for number in range(at, min(last + 1, len(pieces))):
                self._alive[number] += sizes[name]
            for number in range(at + 1, min(last, len(pieces)) + 1):
                self._waiting[number] += sizes[name]

    def together(self) -> list[int]:
        """Images for each piece, never fewer than for the piece before.

        If there is no room by the estimates, the order that wants little more than that.
        """
        while True:
            found = self._fewer(self._batch, len(self._weights), 0)
            if found is not None:
                return found
            self._room += self._more

    def _fewer(self, count: int, end: int, waiting: int) -> list[int] | None:
        """For the pieces before one, which have so many images at once at most; None: no room.

        Of the choices that have room, the one that loads the fewest bytes. What waits meanwhile
        for the pieces behind takes room as well.
        """
        first = end
        while first and waiting + self._most(first - 1, count) <= self._room:
            first -= 1
        if first == 0 or count == 1:
            return [count] * end if first == 0 else None
        half, least, found = -(-count // 2), self._room, list[list[int]]()
        for at in range(first, end + 1):
            # more pieces with fewer images load more, unless less waits behind them
            if self._waiting[at] < least:
                least = self._waiting[at]
                early = self._fewer(half, at, waiting + half * least)
                if early is not None:
                    found.append([*early, *[count] * (end - at)])
        return min(found, key=self._loaded, default=None)

    def _most(self, at: int, count: int) -> int:
        """Bytes of maps while a piece is computed for so many images at once, at most."""
        is_read = count < self._batch or at <= self._inputs_read
        # those of the images before are no longer needed when most maps wait
        inputs = count * self._inputs if is_read else 0
        if not self._shared[at]:
            return inputs + count * self._alive[at]
        others = max(self._waiting[at], self._waiting[at + 1])
        return inputs + (count - 1) * others + self._alive[at]

    def _loaded(self, together: Sequence[int]) -> int:
        """Bytes of weights for the whole batch."""
        return sum(
            size * -(-self._batch // count)
            for size, count in zip(self._weights, together, strict=False)
        )


def _order(
    pieces: Sequence[Piece], together: Sequence[int], configuration: Configuration, batch: int
) -> Iterator[Turn | int]:
    for on_host, members in itertools.groupby(
        range(len(pieces)), lambda number: pieces[number].host
    ):
        if on_host is not None:
            yield from itertools.repeat(on_host, len(list(members)))
        else:
            yield from _stretch(pieces, together, list(members), range(batch), configuration)


def _stretch(
    pieces: Sequence[Piece],
    together: Sequence[int],
    numbers: Sequence[int],
    images: Sequence[int],
    configuration: Configuration,
) -> Iterator[Turn]:
    """Some pieces for some images; the first pieces for fewer images at a time."""
    count = len(images)
    apart = [number for number in numbers if together[number] < count]
    if apart:
        half = -(-count // 2)
        for some in (images[:half], images[half:]):
            yield from _stretch(pieces, together, apart, some, configuration)
    for number in numbers[len(apart) :]:
        tiles = pieces[number].tiles
        for shared in _sharing(tiles, configuration) if count > 1 else [tiles]:
            for image, tile in itertools.product(images, shared):
                yield number, tile, image


def _sharing(tiles: Sequence[Tile], configuration: Configuration) -> Iterator[list[Tile]]:
    """Tiles one behind the other whose constants fill no more than half of the weight memory."""
    unit = configuration.weight_unit_bytes
    room = configuration.weight_words // 2
    some, constants = list[Tile](), dict[bytes, int]()
    for tile in tiles:
        constants[tile.weights] = len(tile.weights) // unit
        # sums that are not whole wait in the accumulators
        goes_on = bool(some) and not some[-1].job.owned
        if some and not goes_on and sum(constants.values()) > room:
            yield some
            some, constants = [], {tile.weights: len(tile.weights) // unit}
        some.append(tile)
    yield some


def _bytes(view: View) -> int:
    """Returns the bytes of a tensor in DRAM, at most."""
    return view.pixels * round_up(view.channels, WORD_BYTES)


def _weight_bytes(tiles: Iterable[Tile]) -> int:
    return sum(map(len, {tile.weights for tile in tiles}))


def _room(pieces: Sequence[Piece], configuration: Configuration, batch: int) -> int:
    """Bytes of DRAM for maps, nearly: beside constants, and the list itself."""
    chip = configuration.dram_chip
    assert chip is not None
    tiles = [tile for piece in pieces for tile in piece.tiles]
    units = _weight_bytes(tiles) // configuration.weight_unit_bytes
    instructions = int(_OWN_INSTRUCTIONS * sum(len(tile.timeline) for tile in tiles))
    transfers = _TRANSFERS_OF_RUN * batch * len(tiles)
    return (
        chip.bytes
        - units * configuration.weight_word_bytes
        - instructions * _INSTRUCTION_BYTES
        - transfers * TRANSFER_WORDS * WORD_BYTES
    )
