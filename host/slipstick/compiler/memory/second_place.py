"""Gives a run's inputs and outputs two places each, so that transfers may overlap runs.

The schedule stays as it is: inputs and outputs move to places that nothing else of the run uses,
and instructions take their addresses along. A place of its own can only take conflicts away, so
every order and every wait of the schedule stays right, and the predicted cycles stay the same.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode

from ...program.steps import Placement
from ..ir.operations import Alias, HostOperation, Operation
from ..mapping.activation_layout import Buffer, round_up
from ..timing.timeline import Instruction, Issued, Timeline
from .liveness import Arrangement

Addresses = Mapping[str, int]
"""Addresses of the buffers that are moved, by name."""


_WORD_BYTES = 16
"""No word of an activation memory is wider, unless R, L or C is."""


def word_bytes(configuration: Configuration) -> int:
    """Bytes of the widest word of the activation memory, or a multiple."""
    return max(configuration.banks, configuration.lanes, configuration.columns, _WORD_BYTES)


@dataclass(frozen=True)
class Doubled:
    """A run with two places: for each, its placements of what is transferred, and its streams."""

    places: tuple[Mapping[str, Placement], Mapping[str, Placement]]
    timelines: tuple[Timeline, Timeline]


class DoubleError(Exception):
    """Says why a run cannot have two places: which memory is too small, and by how much."""


def double(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    timeline: Timeline,
    configuration: Configuration,
) -> Doubled:
    """Two places for the transferred tensors of the only run; DoubleError if there is no room."""
    both = (*arrangement.uploads.values(), *arrangement.downloads.values())
    moved = {buffers[name].name: buffers[name] for names in both for name in names}
    needed = 2 * sum(len(stream) + 1 for stream in timeline.merged())
    if needed > configuration.instructions:
        raise DoubleError(
            f"two copies are {needed} instructions, the memory holds {configuration.instructions}"
        )
    addresses = _free(moved.values(), buffers, arrangement, configuration)
    placed = [
        {
            name: replace(arrangement.places[name], address=chosen[buffer.name])
            for name, buffer in buffers.items()
            if buffer.name in chosen and name in arrangement.places
        }
        for chosen in addresses
    ]
    timelines = [_relocated(timeline, operations, buffers, arrangement, one) for one in addresses]
    counts = [list(map(len, made.merged())) for made in (timeline, *timelines)]
    if any(other != counts[0] for other in counts):
        raise DoubleError("the copies would not have equally many instructions")
    return Doubled((placed[0], placed[1]), (timelines[0], timelines[1]))


def _free(
    moved: Iterable[Buffer],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    configuration: Configuration,
) -> tuple[Addresses, Addresses]:
    """Two addresses for each buffer, where nothing else of the run ever lies."""
    # the host writes one place while a run reads near it: they must share no word of the memory
    step = word_bytes(configuration)
    moved = sorted(moved, key=lambda buffer: -buffer.bytes)
    names = {buffer.name for buffer in moved}
    taken = [
        (place.address, place.end)
        for name, place in arrangement.places.items()
        if buffers[name].name not in names
    ]
    chosen: tuple[dict[str, int], dict[str, int]] = {}, {}
    for buffer in moved:
        for addresses in chosen:
            cursor = 0
            for start, end in sorted(taken):
                if start - cursor >= round_up(buffer.bytes, step):
                    break
                cursor = max(cursor, round_up(end, step))
            addresses[buffer.name] = cursor
            taken.append((cursor, cursor + round_up(max(buffer.bytes, 1), step)))
    excess = max((end for _, end in taken), default=0) - configuration.activation_bytes
    if excess > 0:
        raise DoubleError(f"the activation memory is {excess} bytes too small for two places")
    return chosen


def _relocated(
    timeline: Timeline,
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    addresses: Addresses,
) -> Timeline:
    """The same instructions, with what is transferred at these addresses."""

    def shift(names: Iterable[str], place: Placement) -> int:
        for name in names:
            at, buffer = arrangement.places[name].address, buffers[name].name
            if at == place.address and buffer in addresses:
                return addresses[buffer] - at
        return 0

    def changed(instruction: Instruction) -> Instruction:
        operation, fields = operations[instruction.operation], dict(instruction.fields)
        if isinstance(operation, HostOperation | Alias):
            return instruction
        read = [shift(operation.sources, region.place) for region in instruction.reads]
        written = [shift((operation.result,), region.place) for region in instruction.writes]
        match fields["opcode"]:
            case Opcode.CONVOLVE:
                fields["origin"] += read[0]
            case Opcode.DRAIN | Opcode.MAP:
                fields["destination"] += written[0]
        if fields["opcode"] == Opcode.MAP:
            fields["source"] += read[0]
            fields["tap_step_x"] += read[-1] - read[0]
        return replace(instruction, fields=fields)

    def moved(stream: Sequence[Issued]) -> list[Issued]:
        return [replace(issued, instruction=changed(issued.instruction)) for issued in stream]

    other = copy.copy(timeline)
    other.matrix, other.post = moved(timeline.matrix), moved(timeline.post)
    return other
