"""Describes where the bytes of an activation lie relative to its first: row and pixel pitches."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from ...program.steps import Placement
from ..ir.operations import Alias, Convolution, HostOperation, Map, Operation, View
from .reduction import channel_tiles, is_diagonal

_IMPOSSIBLE = 1 << 40
"""Cycles of what no instruction can do with these pitches."""

SPARES_SHARE = 2
"""A buffer whose pixels are spread takes at most one part in so many of the activation memory."""


def round_up(value: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-value // step) * step


@dataclass
class Buffer:
    """A piece of activation memory: one tensor, and its aliases.

    Parameters
    ----------
    name : str
        The tensor that it was made for.
    view : View
    by_device : bool
        The post-processor writes it, whole slices of L channels.
    mapped : bool
        A MAP reads it, whole slices too.
    folded : bool
        Several of its pixels are written at once, which fill slices without gaps.
    row_pitch, pixel_pitch : int
        In bytes.
    names : list of str
        The tensor and its aliases.
    """

    name: str
    view: View
    by_device: bool
    mapped: bool = False
    folded: bool = False
    row_pitch: int = 0
    pixel_pitch: int = 0
    names: list[str] = field(default_factory=list)

    @property
    def pitches(self) -> tuple[int, int]:
        return self.row_pitch, self.pixel_pitch

    @property
    def bytes(self) -> int:
        return self.view.height * self.row_pitch

    def placed(self, address: int) -> Placement:
        """Its placement at an address."""
        view = self.view
        return Placement(
            address, self.row_pitch, self.pixel_pitch, view.height, view.width, view.channels
        )


def make_buffers(
    operations: Sequence[Operation], views: Mapping[str, View], by_device: Collection[str]
) -> dict[str, Buffer]:
    """The buffers of all tensors on the device, by tensor name; aliases share one.

    Parameters
    ----------
    operations : sequence of Operation
    views : mapping of View by name
        Of every tensor that the device reads or writes.
    by_device : collection of str
        The tensors that it writes.
    """
    buffers: dict[str, Buffer] = {}

    def buffer(name: str) -> Buffer:
        if name not in buffers:
            buffers[name] = Buffer(name, views[name], name in by_device, names=[name])
        return buffers[name]

    for operation in operations:
        if isinstance(operation, HostOperation):
            continue
        sources = [buffer(name) for name in operation.sources]
        if isinstance(operation, Alias):
            buffers[operation.result] = sources[0]
            sources[0].names.append(operation.result)
            continue
        made = buffer(operation.result)
        if isinstance(operation, Convolution):
            made.folded = operation.pixels > 1
        if isinstance(operation, Map):
            for source in sources:
                source.mapped = True
    return buffers


def _classes(
    operations: Iterable[Operation],
    buffers: Mapping[str, Buffer],
    together: Iterable[tuple[str, str]],
) -> list[list[Buffer]]:
    """Buffers that must have equal pitches: operands and result of each elementwise map or sum, and
    those of two tensors that are to lie ``together``."""
    classes: dict[int, list[Buffer]] = {id(b): [b] for b in buffers.values()}
    equal = [
        (*operation.sources, operation.result)
        for operation in operations
        if isinstance(operation, Map) and (operation.is_elementwise or operation.is_binary)
    ]
    for names in (*equal, *(pair for pair in together if buffers.keys() >= set(pair))):
        merged: list[Buffer] = []
        for name in names:
            group = classes[id(buffers[name])]
            merged += [b for b in group if all(b is not other for other in merged)]
        for b in merged:
            classes[id(b)] = merged
    return list({id(group): group for group in classes.values()}.values())


def _cycles(
    convolution: Convolution, pitches: tuple[int, int], configuration: Configuration
) -> int:
    """Cycles that the array needs, weight loads hidden, if its input has these pitches."""
    try:
        tiles = channel_tiles(convolution, pitches, configuration)
    except CapacityError:
        return _IMPOSSIBLE
    return sum(tile.reduction.twice_cycles(convolution, configuration) for tile in tiles) // 2


def assign_pitches(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    configuration: Configuration,
    *,
    spares: bool = False,
    together: Iterable[tuple[str, str]] = (),
    pinned: Mapping[str, Placement] | None = None,
    turning: Collection[str] = (),
) -> bool:
    """Chooses the pitches of every buffer; tensors that are to lie ``together`` have the same.

    Those of ``pinned`` tensors are given, and hold for all that must have the same.

    The post-processor moves whole slices of L bytes, so what it touches has pitches that are
    multiples of L; where windows are aligned all pitches are multiples of R. The pitches are the
    smallest that cost the convolutions which read the buffer the fewest cycles: with the right
    row pitch, tiles of lanes may span kernel rows; with the right pixel pitch, those of a depthwise
    convolution several taps. That one may be larger than the channels only with ``spares``, and
    for a small buffer; and for tensors of ``turning``. Of these, pixels side by side do not begin
    in the same slot of the memory's port: the post-processor writes one slice of all pixels, and
    meanwhile the DMA would not come to that slot.

    Returns
    -------
    bool
        Whether any pixel pitch is larger.
    """
    # an aligned window needs pixels and rows that begin at multiples of R
    least = configuration.rows if configuration.aligned else 1
    lanes = max(configuration.lanes, least)
    readers: dict[int, list[Convolution]] = {}
    spared = False
    for operation in operations:
        if isinstance(operation, Convolution):
            readers.setdefault(id(buffers[operation.source]), []).append(operation)
    for group in _classes(operations, buffers, together):
        given = [pinned[name] for b in group for name in b.names if pinned and name in pinned]
        if given:
            for b in group:
                b.row_pitch, b.pixel_pitch = given[0].row_pitch, given[0].pixel_pitch
            continue
        step = lanes if any(b.by_device or b.mapped for b in group) else least
        # what is written several pixels at once needs no slice for each
        fill = 1 if any(b.folded for b in group) else step
        consumers = [(b.view.channels, reader) for b in group for reader in readers.get(id(b), [])]
        extras = {0}
        # nor may there be gaps between them
        if spares and fill == step:
            extras.add(_spare(group, [reader for _, reader in consumers], fill, configuration))
        turns = all(name in turning for b in group for name in b.names)
        if turns and fill == step and _stay_in_slot(group, fill, configuration):
            extras = {configuration.lanes}

        def cost(
            row_pitch: int,
            extra: int,
            fill: int = fill,
            consumers: list[tuple[int, Convolution]] = consumers,
        ) -> tuple[int, int]:
            cycles = sum(
                _cycles(reader, (row_pitch, round_up(channels, fill) + extra), configuration)
                for channels, reader in consumers
            )
            return cycles, row_pitch

        candidates = []
        for extra in sorted(extras):
            widest = max(b.view.width * (round_up(b.view.channels, fill) + extra) for b in group)
            smallest = round_up(widest, step)
            more = configuration.banks if consumers and group[0].view.height > 1 else 0
            candidates += [
                (row_pitch, extra) for row_pitch in range(smallest, smallest + more + 1, step)
            ]
        row_pitch, extra = min(candidates, key=lambda pair: cost(*pair))
        spared |= extra > 0
        for b in group:
            b.row_pitch, b.pixel_pitch = row_pitch, round_up(b.view.channels, fill) + extra
    return spared


def _stay_in_slot(group: Iterable[Buffer], step: int, configuration: Configuration) -> bool:
    """Tells whether all pixels begin in the same slot, and there are others (``PortArbiter``)."""
    pitches = (round_up(b.view.channels, step) for b in group)
    return configuration.slots > 1 and not any(pitch % configuration.banks for pitch in pitches)


def _spare(
    group: Sequence[Buffer], readers: Sequence[Convolution], step: int, configuration: Configuration
) -> int:
    """Bytes behind each pixel with which taps of a depthwise convolution lie R / C to a tile."""
    rows, columns = configuration.rows, configuration.columns
    channels = {b.view.channels for b in group}
    if rows <= columns or len(channels) > 1:
        return 0
    if not any(is_diagonal(reader, configuration) for reader in readers):
        return 0
    pitch = round_up(channels.pop(), step)
    spare = (columns - pitch) % configuration.banks
    largest = max(b.view.pixels for b in group) * (pitch + spare)
    small = SPARES_SHARE * largest <= configuration.activation_bytes
    return spare if small and not spare % step else 0
