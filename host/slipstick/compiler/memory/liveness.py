"""The order of things: groups, runs between host layers, lifetimes, and addresses."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slipstick_rtl.config import Configuration

from ...program.steps import Placement
from ..ir.operations import Alias, Convolution, HostOperation, Map, Operation
from ..mapping.activation_layout import Buffer
from .kept_variables import Pair, alike
from .planner import Block, Piece, PlanError, plan, prolonged

_BANDS = 8
"""Parts of an input that are looked at each by itself for the next one to come."""
_LONGER = 2
"""Moments that a buffer outlives its last one, if it may."""


@dataclass
class Moment:
    """Operations that are alive together: a group on the device, or one host operation."""

    operations: list[int]
    on_host: bool
    run: int


@dataclass
class Arrangement:
    """Who runs when, and where everything lies.

    Parameters
    ----------
    moments : list of Moment
    places : dict
        Placement of every tensor on the device, by name.
    row_tiles : dict
        Tiles of rows, at least, of a convolution that writes over its input, by its result.
    downloads, uploads : dict
        Tensors moved after and before each run, by the run's number.
    kept : set of str
        Sources of the variables that stay on the device: their results lie where they lay.
    """

    moments: list[Moment]
    places: dict[str, Placement] = field(default_factory=dict)
    row_tiles: dict[str, int] = field(default_factory=dict)
    downloads: dict[int, list[str]] = field(default_factory=dict)
    uploads: dict[int, list[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def moments_of(self, run: int) -> list[int]:
        """The moments of a run on the device."""
        return [i for i, m in enumerate(self.moments) if m.run == run and not m.on_host]


def _joins(group: Sequence[Operation], operation: Map, buffers: Mapping[str, Buffer]) -> bool:
    """Tells whether a map may follow each tile of a group: it reads what the group makes."""
    if not group or not isinstance(group[0], Convolution) or operation.gathers:
        return False
    members = [member for member in group if isinstance(member, Convolution | Map)]
    made = {buffers[member.result].name for member in members}
    tables = sum(
        (member.table if isinstance(member, Map) else member.function) is not None
        for member in members
    )
    if operation.table is not None and tables:
        return False
    return any(buffers[name].name in made for name in operation.sources)


def _moments(
    operations: Sequence[Operation], buffers: Mapping[str, Buffer], *, fuse: bool, inspect: bool
) -> list[Moment]:
    moments: list[Moment] = []
    run = 0
    for index, operation in enumerate(operations):
        if isinstance(operation, HostOperation):
            run += bool(moments) and not moments[-1].on_host
            moments.append(Moment([index], True, run))
            continue
        last = moments[-1] if moments and not moments[-1].on_host else None
        group = [operations[i] for i in last.operations] if last else []
        joins = isinstance(operation, Map) and fuse and _joins(group, operation, buffers)
        if last and (joins or isinstance(operation, Alias)):
            last.operations.append(index)
        else:
            run += inspect and last is not None
            moments.append(Moment([index], False, run))
    return moments


def _reads(operation: Operation) -> tuple[str, ...]:
    if isinstance(operation, HostOperation):
        return tuple(name for name in operation.node.inputs if name)
    return () if isinstance(operation, Alias) else operation.sources


class _Overlaps:
    """Buffers that share a block of memory, each at its distance from the block's beginning."""

    def __init__(self, names: Iterable[str]) -> None:
        self._places = {name: (name, 0) for name in names}

    def root(self, name: str) -> str:
        """The name of the block."""
        return self._places[name][0]

    def offset(self, name: str) -> int:
        """Its distance, at least 0."""
        root, offset = self._places[name]
        return offset - min(other for own, other in self._places.values() if own == root)

    def join(self, name: str, other: str, distance: int) -> None:
        """Puts a buffer ``distance`` bytes before another, into its block."""
        root, offset = self._places[other]
        self._places[name] = (root, offset - distance)

    def groups(self) -> dict[str, list[str]]:
        """The buffers of each block."""
        groups: dict[str, list[str]] = {}
        for name, (root, _) in self._places.items():
            groups.setdefault(root, []).append(name)
        return groups


class Arranger:
    """Works out an :class:`Arrangement`; see ``arrange``.

    With ``prolongs`` buffers live longer than they must where memory allows it, so that layers may
    be interleaved (``interleave.py``). ``staying`` are variables that stay on the device if they
    can. ``pinned`` tensors have their places already, apart from all others', which have ``room``
    bytes from ``base`` on. With ``returning`` nothing lies where the inputs of the only run do,
    from as early a moment on as memory allows: the next ones may come there.
    """

    def __init__(
        self,
        outputs: Collection[str],
        operations: Sequence[Operation],
        buffers: Mapping[str, Buffer],
        *,
        fuse: bool,
        inspect: bool,
        trailing: Mapping[str, int] | None = None,
        prolongs: bool = False,
        staying: Sequence[Pair] = (),
        returning: bool = False,
        pinned: Mapping[str, Placement] | None = None,
        base: int = 0,
        room: int | None = None,
    ) -> None:
        self._pinned, self._base, self._room = dict(pinned or {}), base, room
        self._prolongs, self._staying, self._returning = prolongs, staying, returning
        self._placed = {buffers[name].name for name in self._pinned}
        self._fixed = set(self._placed)
        self._outputs, self._operations, self._buffers = outputs, operations, buffers
        self._inspect = inspect
        self._trailing = dict(trailing or {})
        self._tight = trailing is not None
        self._arrangement = Arrangement(_moments(operations, buffers, fuse=fuse, inspect=inspect))
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._downloaded: dict[str, int] = {}

    def arrange(self, configuration: Configuration) -> Arrangement:
        """The arrangement; PlanError if the activation memory is too small."""
        self._live()
        overlaps = _Overlaps(self._first)
        kept = self._keep(overlaps)
        self._transfer(kept)
        if not self._inspect or self._tight:
            self._overlap(overlaps, configuration)
        blocks = []
        for root, names in overlaps.groups().items():
            if root in self._placed:
                continue
            first = min(self._first[name] for name in names)
            last = max(self._last[name] for name in names)
            pieces = tuple(
                Piece(
                    overlaps.offset(name),
                    self._buffers[name].bytes,
                    self._first[name],
                    self._last[name],
                )
                for name in names
            )
            end = max(piece.offset + piece.bytes for piece in pieces)
            blocks.append(Block(root, end, first, last, pieces))
        titles = [self._title(moment) for moment in self._arrangement.moments]
        alignment = max(configuration.banks, configuration.lanes)
        room = configuration.activation_bytes if self._room is None else self._room
        limits = (room, alignment, titles)
        if self._returning:
            blocks = self._with_returns(blocks, overlaps, limits)
        if self._prolongs:
            blocks = prolonged(blocks, *limits, _LONGER)
        addresses = plan(blocks, *limits)
        for name, buffer in self._buffers.items():
            if name in self._pinned:
                self._arrangement.places[name] = self._pinned[name]
            elif buffer.name in self._first:
                address = addresses[overlaps.root(buffer.name)] + overlaps.offset(buffer.name)
                address += self._base
                self._arrangement.places[name] = buffer.placed(address)
        return self._arrangement

    def _with_returns(
        self, blocks: Sequence[Block], overlaps: "_Overlaps", limits: tuple[int, int, list[str]]
    ) -> list[Block]:
        """The inputs live again to the end, from as early on as memory allows: the next ones come.

        They come in their order, so the beginning of the memory is wanted first.
        """
        names = list(dict.fromkeys(itertools.chain(*self._arrangement.uploads.values())))
        free = max((self._last[name] for name in names), default=0) + 1
        never = len(self._arrangement.moments)
        bands = list(itertools.product(names, range(_BANDS)))

        def trial(moments: Sequence[int]) -> list[Block]:
            made = []
            for block in blocks:
                again = tuple(
                    self._band(name, band, overlaps, moment, never - 1)
                    for (name, band), moment in zip(bands, moments, strict=True)
                    if overlaps.root(name) == block.name and moment < never
                )
                last = never - 1 if again else block.last
                made.append(replace(block, last=last, pieces=(*block.pieces, *again)))
            return made

        def fits(moments: Sequence[int]) -> bool:
            try:
                plan(trial(moments), *limits)
            except PlanError:
                return False
            return True

        together = (moment for moment in range(free, never) if fits([moment] * len(bands)))
        moments = [next(together, never)] * len(bands)
        for number in range(len(bands)):
            # one before it is of no use any earlier
            earliest = moments[number - 1] if number else free
            for moment in range(earliest, moments[number]):
                sooner = [*moments[:number], moment, *moments[number + 1 :]]
                if fits(sooner):
                    moments = sooner
                    break
        return trial(moments)

    def _band(self, name: str, band: int, overlaps: "_Overlaps", first: int, last: int) -> Piece:
        """A part of a buffer, one of ``_BANDS``, for the time from one moment to another."""
        size = self._buffers[name].bytes
        begin, end = (size * each // _BANDS for each in (band, band + 1))
        return Piece(overlaps.offset(name) + begin, end - begin, first, last)

    def _title(self, moment: Moment) -> str:
        node = self._operations[moment.operations[0]]
        return node.node.name

    def _live(self) -> None:
        """First and last moment of each buffer, by what the device does with it."""
        moments = self._arrangement.moments
        for at, moment in enumerate(moments):
            for index in moment.operations:
                operation = self._operations[index]
                if isinstance(operation, HostOperation | Alias):
                    continue
                for name in (*operation.sources, operation.result):
                    buffer = self._buffers[name]
                    start = at
                    if not buffer.by_device:
                        start = self._arrangement.moments_of(moment.run)[0]
                    self._first.setdefault(buffer.name, start)
                    self._last[buffer.name] = at

    def _keep(self, overlaps: "_Overlaps") -> set[str]:
        """Lays results of variables where their sources lay, which no one reads any more then.

        Sources are there from the beginning, and results to the end; returns the names of both.
        """
        kept: set[str] = set()
        for pair in self._staying:
            source, result = (self._buffers[name] for name in pair)
            taken = {source.name, result.name} & self._fixed
            if taken or not alike(source, result):
                continue
            if self._first[result.name] <= self._last[source.name]:
                continue
            self._first[source.name] = 0
            self._last[result.name] = len(self._arrangement.moments) - 1
            # never dies: the next run reads it
            self._downloaded[result.name] = len(self._arrangement.moments)
            overlaps.join(result.name, source.name, 0)
            self._fixed |= {source.name, result.name}
            self._arrangement.kept.add(pair[0])
            kept |= {source.name, pair[1]}
        return kept

    def _transfer(self, kept: set[str]) -> None:
        """Lists what goes up before and comes down after each run, but for what is ``kept``.

        A tensor that comes down lives until the run's end.
        """
        moments, uploads = self._arrangement.moments, self._arrangement.uploads
        wanted = set(self._outputs) - kept
        for operation in self._operations:
            if isinstance(operation, HostOperation):
                wanted |= set(_reads(operation))
        for at, moment in enumerate(moments):
            for index in moment.operations:
                operation = self._operations[index]
                if isinstance(operation, HostOperation):
                    continue
                for name in _reads(operation):
                    buffer = self._buffers[name]
                    up = uploads.setdefault(moment.run, [])
                    if (
                        not buffer.by_device
                        and buffer.name not in kept
                        and self._first[buffer.name]
                        == (self._arrangement.moments_of(moment.run)[0])
                    ):
                        up += [buffer.name] if buffer.name not in up else []
                if operation.result in wanted or self._inspect:
                    self._arrangement.downloads.setdefault(moment.run, []).append(operation.result)
                    name = self._buffers[operation.result].name
                    end = max(self._arrangement.moments_of(moment.run))
                    self._last[name] = max(self._last[name], end, at)
                    self._downloaded[name] = moment.run

    def _overlap(self, overlaps: "_Overlaps", configuration: Configuration) -> None:
        """Results that may overwrite an operand: of maps, in place; of convolutions, behind it."""
        for at, moment in enumerate(self._arrangement.moments):
            members = [self._operations[index] for index in moment.operations]
            for operation in members:
                if self._is_fixed(operation):
                    continue
                if isinstance(operation, Map) and operation.is_elementwise:
                    operand = self._dying_operand(at, members, operation)
                    if operand is not None:
                        overlaps.join(self._buffers[operation.result].name, operand, 0)
                elif isinstance(operation, Convolution) and operation.result in self._trailing:
                    self._trail(operation, overlaps, configuration)

    def _is_fixed(self, operation: Operation) -> bool:
        """Tells whether what an operation writes lies where a variable is kept."""
        if isinstance(operation, HostOperation):
            return False
        return self._buffers[operation.result].name in self._fixed

    def trailing_candidate(self, at: int) -> str | None:
        """The result of a convolution that may be written over a dying input alive ``at`` then."""
        for later in range(at, len(self._arrangement.moments)):
            convolution = self._lone_convolution(later)
            if convolution is not None and not self._is_fixed(convolution):
                source = self._buffers[convolution.source]
                if self._dies(source, later) and self._first[source.name] <= at:
                    return convolution.result
        return None

    def _lone_convolution(self, at: int) -> Convolution | None:
        members = [self._operations[index] for index in self._arrangement.moments[at].operations]
        first = members[0]
        return first if len(members) == 1 and isinstance(first, Convolution) else None

    def _trail(
        self, convolution: Convolution, overlaps: "_Overlaps", configuration: Configuration
    ) -> None:
        """Lets a result follow its dying input so closely that no row is lost that is still read.

        The convolution works tile of rows by tile, all channels of one before the next.
        """
        source, result = self._buffers[convolution.source], self._buffers[convolution.result]
        width, height = convolution.output.width, convolution.output.height
        most = max(configuration.accumulator_depth // -(-width // configuration.pixels), 1)
        more = self._trailing[convolution.result]
        tiles = min(-(-height // min(most, height)) + more, height)
        rows = -(-height // tiles)
        lag = 0
        for first in range(height):
            written = min(first + rows, height) * result.row_pitch
            needed = max(first * convolution.stride[0] - convolution.padding[0], 0)
            lag = max(lag, written - min(needed, source.view.height) * source.row_pitch)
        alignment = max(configuration.banks, configuration.lanes)
        overlaps.join(result.name, source.name, -(-lag // alignment) * alignment)
        self._arrangement.row_tiles[convolution.result] = tiles

    def _dies(self, operand: Buffer, at: int) -> bool:
        """Tells whether an operand is not needed any more after a moment.

        No one reads it after this moment, nor downloads it from this run on, and no variable is
        kept there.
        """
        run = self._arrangement.moments[at].run
        downloaded = self._downloaded.get(operand.name, -1) >= run
        return self._last[operand.name] == at and not downloaded and operand.name not in self._fixed

    def _dying_operand(self, at: int, members: Sequence[Operation], operation: Map) -> str | None:
        """An operand that no one reads after the map, or beside it in its group, or downloads."""
        result = self._buffers[operation.result]
        beside = [
            self._buffers[name].name
            for member in members
            if member is not operation
            for name in _reads(member)
        ]
        for name in operation.sources:
            operand = self._buffers[name]
            if (
                self._dies(operand, at)
                and operand.name not in beside
                and operand.pitches == result.pitches
                and operand.view == result.view
            ):
                return operand.name
        return None
