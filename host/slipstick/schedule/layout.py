"""Where the bytes of an activation lie relative to its first: row and pixel pitches."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.config import Configuration

from ..steps import Placement
from .operations import Alias, Convolution, HostOperation, Map, Operation, View
from .reduction import channel_tiles


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
    row_pitch, pixel_pitch : int
        In bytes.
    names : list of str
        The tensor and its aliases.
    """

    name: str
    view: View
    by_device: bool
    mapped: bool = False
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
        buffer(operation.result)
        if isinstance(operation, Map):
            for source in sources:
                source.mapped = True
    return buffers


def _classes(operations: Iterable[Operation], buffers: Mapping[str, Buffer]) -> list[list[Buffer]]:
    """Buffers that must have equal pitches: operands and result of each elementwise map or sum."""
    classes: dict[int, list[Buffer]] = {id(b): [b] for b in buffers.values()}
    for operation in operations:
        if isinstance(operation, Map) and (operation.is_elementwise or operation.is_sum):
            merged: list[Buffer] = []
            for name in (*operation.sources, operation.result):
                group = classes[id(buffers[name])]
                merged += [b for b in group if all(b is not other for other in merged)]
            for b in merged:
                classes[id(b)] = merged
    return list({id(group): group for group in classes.values()}.values())


def _cycles(
    convolution: Convolution, pitches: tuple[int, int], configuration: Configuration
) -> int:
    """Cycles that the array needs, weight loads hidden, if its input has these pitches."""
    tiles = channel_tiles(convolution, pitches, configuration)
    groups = -(-convolution.output.width // configuration.pixels)
    vectors = max(convolution.output.height * groups, configuration.rows)
    return vectors * sum(tile.reduction.tiles for tile in tiles)


def assign_pitches(
    operations: Sequence[Operation], buffers: Mapping[str, Buffer], configuration: Configuration
) -> None:
    """Chooses the pitches of every buffer.

    The post-processor moves whole slices of L bytes, so what it touches has pitches that are
    multiples of L; where windows are aligned all pitches are multiples of R. The row pitch is the
    smallest that costs the convolutions which read the buffer the fewest cycles: with the right
    one, tiles of lanes may span kernel rows.
    """
    # an aligned window needs pixels and rows that begin at multiples of R
    least = configuration.rows if configuration.aligned else 1
    lanes = max(configuration.lanes, least)
    readers: dict[int, list[Convolution]] = {}
    for operation in operations:
        if isinstance(operation, Convolution):
            readers.setdefault(id(buffers[operation.source]), []).append(operation)
    for group in _classes(operations, buffers):
        step = lanes if any(b.by_device or b.mapped for b in group) else least
        for b in group:
            b.pixel_pitch = round_up(b.view.channels, step)
        smallest = round_up(max(b.view.width * b.pixel_pitch for b in group), step)
        consumers = [reader for b in group for reader in readers.get(id(b), [])]
        candidates = range(smallest, smallest + configuration.rows + 1, step)
        if not consumers or group[0].view.height == 1:
            candidates = range(smallest, smallest + 1)

        def cost(
            row_pitch: int,
            consumers: list[Convolution] = consumers,
        ) -> int:
            return sum(
                _cycles(reader, (row_pitch, buffers[reader.source].pixel_pitch), configuration)
                for reader in consumers
            )

        chosen = min(candidates, key=cost)
        for b in group:
            b.row_pitch = chosen
