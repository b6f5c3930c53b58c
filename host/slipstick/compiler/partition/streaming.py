"""The steps of a network that is cut: runs, and the transfers that go on meanwhile."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES
from slipstick_rtl.link.protocol import Space

from ...program import space_units
from ...program.resident_loads import Loaded
from ...program.steps import (
    DownloadStep,
    HostStep,
    Image,
    LoadStep,
    Part,
    Placement,
    RunStep,
    Step,
    UploadStep,
)
from ..codegen.assemble import layer_cycles, owners
from ..ir.operations import Operation, View
from ..memory.double_buffer import DoubleBuffer
from ..timing.timeline import packed
from .batch_order import turns
from .cost_estimate import dram_cycles
from .halo import Region
from .kept_rows import are_apart, first_base, kept_base, missing
from .partitioner import Piece, halves
from .subprograms import Tile

_PIECE_BYTES = 1152
"""Bytes of a load from DRAM, nearly: small enough that most of what a run leaves of the DMA's time
can be used. Pieces that follow each other in the list become one LOAD, see
``dram_blocks.joined``."""
_WORD_OF_MAP = 2
"""Cycles of a word of a map during a run, at least: it waits for the post-processor at the port."""
_MOST_AHEAD = 300
"""Runs behind one, whose loads may come during it."""


def addresses(hardware: Configuration) -> dict[str, Space]:
    """Returns the instruction fields that are addresses, and the memory of each one."""
    own = hardware.traits.has_parameter_memory
    return {
        "weight_address": Space.WEIGHTS,
        "table_address": Space.WEIGHTS,
        "parameter_address": Space.PARAMETERS if own else Space.WEIGHTS,
        "origin": Space.ACTIVATIONS,
        "source": Space.ACTIVATIONS,
        "destination": Space.ACTIVATIONS,
    }


@dataclass(eq=False)
class _Run:
    """A tile at its place: what it takes of each memory, in units, first and behind the last."""

    tile: Tile
    image: int = 0
    spans: dict[Space, tuple[int, int]] = field(default_factory=dict)
    loads: dict[Space, list[int]] = field(default_factory=dict)
    starts: tuple[int, ...] = ()
    code: bytes = b""

    def assemble(self, hardware: Configuration) -> None:
        """Packs its instructions, once it is known where the rest lies."""
        timeline = self.tile.timeline
        moved = {
            name: self.spans.get(space, (0, 0))[0] for name, space in addresses(hardware).items()
        }
        codes = [packed(stream, moved) for stream in timeline.merged()]
        self.code = b"".join(codes)
        lengths = (len(code) // 4 for code in codes[:-1])
        self.starts = tuple(itertools.accumulate(lengths, initial=0))

    def step(self, overlapped: int) -> RunStep:
        """The run itself."""
        timeline, numbers = self.tile.timeline, self.tile.job.numbers
        first = self.spans[Space.INSTRUCTIONS][0]
        return RunStep(
            tuple(first + start for start in self.starts),
            tuple(owners(stream, numbers) for stream in timeline.streams),
            overlapped=overlapped,
            cycles=timeline.end,
        )

    def leaves(self, other: "_Run", space: Space) -> bool:
        """Tells whether it does not touch what another run has in a memory."""
        if space not in self.spans or space not in other.spans:
            return True
        return not self.meets(space)(other.spans[space])

    def meets(self, space: Space) -> Callable[[tuple[int, int]], bool]:
        """Tells of parts of a memory whether it has something there."""
        first, end = self.spans[space]
        return lambda other: first < other[1] and other[0] < end

    def depends(self, other: "_Run") -> bool:
        """Tells whether it reads what another run makes."""
        mine, made = self.tile.job, other.tile.job.owned
        return any(
            self.image == other.image
            and name in made
            and (name in mine.views or mine.regions[name].meets(made[name]))
            for name in mine.inputs
        )

    def placed(self, name: str) -> Placement:
        """Returns where a tensor's box lies."""
        place = self.tile.places[name]
        base = self.spans[Space.ACTIVATIONS][0]
        return dataclasses.replace(place, address=place.address + base)

    def arriving(self, views: Mapping[str, View]) -> list[tuple[str, Part]]:
        """Its inputs."""
        job = self.tile.job
        return [
            (name, _part(self.placed(name), job.regions[name], job.views.get(name, views[name])))
            for name in job.inputs
        ]

    def downloads(self, views: Mapping[str, View]) -> list[DownloadStep]:
        """Its results, those that no other run makes."""
        steps = []
        for name, region in self.tile.job.owned.items():
            place, local = self.placed(name), self.tile.job.regions[name]
            y, x, c = (a - b for a, b in zip(region.origin, local.origin, strict=True))
            address = place.address + y * place.row_pitch + x * place.pixel_pitch + c
            view = region.view
            inner = Placement(
                address, place.row_pitch, place.pixel_pitch, view.height, view.width, view.channels
            )
            part = _part(inner, region, views[name])
            steps.append(DownloadStep(name, part, image=self.image))
        return steps


@dataclass(frozen=True)
class Streamed:
    """Holds what goes into a program."""

    steps: tuple[Step, ...]
    units: tuple[tuple[Step, ...], ...]
    images: tuple[Image, ...]
    loads: tuple[Image, ...]
    cycles: Mapping[int, int]


class Streamer:
    """Lays the pieces of a network one behind the other; see ``stream``.

    While a run works on one half of the memories, the results of the run before leave the other,
    and what the next run needs comes there.

    Parameters
    ----------
    pieces : sequence of Piece
    operations : sequence of Operation
    views : mapping of View by tensor
        The whole of each tensor that crosses the link.
    configuration : Configuration
    batch : int
        Images that share the loads.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        operations: Sequence[Operation],
        views: Mapping[str, View],
        configuration: Configuration,
        batch: int = 1,
    ) -> None:
        self._operations, self._views = operations, views
        self._configuration = configuration
        self._events = [
            turn if isinstance(turn, int) else _Run(*turn[1:])
            for turn in turns(pieces, views, configuration, batch)
        ]
        self._steps: list[Step] = []
        self._images: list[Image] = []
        self._loads: dict[tuple[Space, int, bytes], int] = {}
        self._load_images: tuple[Image, ...] = ()
        self._loaded = Loaded((), configuration)
        self._intact: list[tuple[int, str, Part]] = []
        self._prepared = False
        self._leaving: _Run | None = None

    def stream(self) -> Streamed:
        """All steps, and what they load."""
        runs = [event for event in self._events if isinstance(event, _Run)]
        self._place(runs)
        loads = tuple(Image(int(space), place, data) for space, place, data in self._loads)
        self._load_images = loads
        self._loaded = Loaded(loads, self._configuration)
        for number, event in enumerate(self._events):
            if isinstance(event, _Run):
                behind = self._events[number + 1 :][:_MOST_AHEAD]
                runs_behind = itertools.takewhile(lambda each: isinstance(each, _Run), behind)
                self._run(event, [each for each in runs_behind if isinstance(each, _Run)])
            else:
                self._steps.append(self._host(event))
        cycles: Counter[int] = Counter()
        for run in runs:
            numbers = run.tile.job.numbers
            for member, count in layer_cycles(run.tile.timeline).items():
                cycles[numbers[member]] += count if run.image == 0 else 0
        units = tuple(map(tuple, self._units()))
        return Streamed(tuple(self._steps), units, tuple(self._images), loads, cycles)

    def _units(self) -> Iterator[list[Step]]:
        """The same work in units that leave nothing behind on the device but loads."""
        unit: list[Step] = []
        for event in self._events:
            if isinstance(event, int):
                yield [self._host(event)]
                continue
            if event.image:
                continue
            unit += map(LoadStep, itertools.chain(*event.loads.values()))
            unit += [UploadStep(name, part) for name, part in event.arriving(self._views)]
            unit += [event.step(0), *event.downloads(self._views)]
            # sums that are not whole wait in the accumulators, maps in the memory
            if event.tile.job.owned and not event.tile.job.goes_on:
                yield unit
                unit = []

    def _host(self, number: int) -> HostStep:
        node = self._operations[number].node
        return HostStep(node.name, node.operator, node.inputs, node.outputs, node.attributes)

    def _place(self, runs: Sequence[_Run]) -> None:
        """Gives every run its place in all memories."""
        hardware = self._configuration
        before: _Run | None = None
        for run, following in itertools.zip_longest(runs, runs[1:]):
            base = 0 if run.tile.job.pinned else self._base(run, before, following)
            run.spans[Space.ACTIVATIONS] = (base, base + run.tile.activation_bytes)
            before = run
        units = space_units(hardware)
        self._reside(runs, Space.WEIGHTS, [run.tile.weights for run in runs], units)
        self._reside(runs, Space.PARAMETERS, [run.tile.parameters for run in runs], units)
        for run in runs:
            run.assemble(hardware)
        self._reside(runs, Space.INSTRUCTIONS, [run.code for run in runs], units)

    def _base(self, run: _Run, before: _Run | None, following: _Run | None) -> int:
        """Places a run's activations: beside those of the run before, if there is room."""
        hardware, size = self._configuration, run.tile.activation_bytes
        if hardware.dram and before is not None and before.image == run.image:
            kept = kept_base(before.tile, before.spans[Space.ACTIVATIONS][0], run.tile, hardware)
            if kept is not None:
                return kept
        half = halves(hardware).activation_bytes
        places = [0, half] if size <= half < hardware.activation_bytes else [0]
        if hardware.dram and following is not None and following.image == run.image:
            first = first_base(run.tile, following.tile, hardware)
            places = places if first is None else [first, *places]
        if before is None:
            return places[0]
        meets = before.meets(Space.ACTIVATIONS)
        return next((base for base in places if not meets((base, base + size))), places[0])

    def _reside(
        self,
        runs: Sequence[_Run],
        space: Space,
        contents: Sequence[bytes],
        units: Mapping[Space, tuple[int, int]],
    ) -> None:
        """Places what runs need of a memory: once for all if it fits, else as they need it."""
        unit, capacity = units[space]
        far = bool(self._configuration.dram)
        buffer = DoubleBuffer(capacity, unit, contents, far=far)
        known = set()
        for run, data in zip(runs, contents, strict=True):
            if not data:
                continue
            address = buffer.place(data)
            run.spans[space] = (address, address + len(data) // unit)
            if not buffer.holds_all:
                run.loads[space] = [
                    self._loads.setdefault((space, *piece), len(self._loads))
                    for piece in self._pieces(data, address, unit)
                ]
            elif data not in known:
                known.add(data)
                self._images.append(Image(int(space), address, data))

    def _pieces(self, data: bytes, address: int, unit: int) -> Iterator[tuple[int, bytes]]:
        """A load and its address, in pieces of which the DMA brings some during a short run."""
        step = max(1, len(data) // unit)
        if self._configuration.dram:
            # whole heads of ninth bits, or they could not be joined
            step = max(1, _PIECE_BYTES // (unit * GROUP_CELLS)) * GROUP_CELLS
        for first in range(0, len(data) // unit, step):
            yield address + first, data[first * unit : (first + step) * unit]

    def _run(self, run: _Run, behind: Sequence[_Run]) -> None:
        """A run, and all transfers until the next one can begin."""
        following = behind[0] if behind else None
        if not self._prepared:
            self._steps += [load for _, load in self._loading(run)]
            self._steps += self._uploads(run)
        self._spoil([run.placed(operation.result) for operation in run.tile.job.operations])
        meanwhile: list[Step] = []
        if self._leaving is not None:
            meanwhile += self._leaving.downloads(self._views)
            self._leaving = None
        after: list[Step] = []
        coming, apart = False, False
        if following is not None and not following.depends(run):
            apart = following.leaves(run, Space.ACTIVATIONS)
            coming = apart or self._comes_beside(following, run)
            apart = apart or (coming and self._stays(run, following))
        if following is not None:
            for space, step in self._loading(following):
                touched = space in run.spans and run.meets(space)(self._span(step.load))
                (after if touched else meanwhile).append(step)
            (meanwhile if coming else after).extend(self._uploads(following))
        self._prepared = following is not None
        meanwhile += self._ahead(run, behind, meanwhile)
        self._steps += [run.step(len(meanwhile)), *meanwhile]
        if apart:
            self._leaving = run
        else:
            self._steps += run.downloads(self._views)
        self._steps += after

    def _ahead(
        self, run: _Run, behind: Sequence[_Run], meanwhile: Sequence[Step]
    ) -> list[LoadStep]:
        """Lists what later runs load, while the DMA would only wait for the end of this one."""
        if not self._configuration.dram:
            return []
        left = run.tile.timeline.end - sum(map(self._cycles_of, meanwhile))
        steps = list[LoadStep]()
        # what the runs until then use, until something of it would be overwritten
        used = {space: {run.spans[space]} for space in run.loads}
        for before, later in itertools.pairwise(behind):
            for space, span in before.spans.items():
                if space in used:
                    used[space].add(span)
            for space in tuple(used):
                missing = [load for load in later.loads.get(space, ()) if load not in self._loaded]
                free = [load for load in missing if not self._touches(load, used[space])]
                if len(free) < len(missing):
                    # what is behind them can come when they have come
                    del used[space]
                for load in free:
                    left -= self._cycles_of(LoadStep(load))
                    if left < 0:
                        return steps
                    self._loaded.add(load)
                    steps.append(LoadStep(load))
        return steps

    def _span(self, load: int) -> tuple[int, int]:
        """Returns where a load lies, in units of its memory."""
        image = self._load_images[load]
        unit, _ = space_units(self._configuration)[Space(image.space)]
        return image.address, image.address + len(image.data) // unit

    def _touches(self, load: int, used: Iterable[tuple[int, int]]) -> bool:
        first, end = self._span(load)
        return any(low < end and first < high for low, high in used)

    def _cycles_of(self, step: Step) -> int:
        """Estimates the cycles of the DMA for a transfer."""
        if isinstance(step, LoadStep):
            size = len(self._load_images[step.load].data)
        elif isinstance(step, UploadStep | DownloadStep) and step.part is not None:
            place = step.part.placement
            size = place.height * place.width * place.channels
            least = _WORD_OF_MAP * size // WORD_BYTES
            return max(dram_cycles(size, self._configuration), least)
        else:
            return 0
        return dram_cycles(size, self._configuration)

    def _loading(self, run: _Run) -> list[tuple[Space, LoadStep]]:
        """Lists the loads that are not there yet."""
        missing = [
            (space, load)
            for space, loads in run.loads.items()
            for load in loads
            if load not in self._loaded
        ]
        for _, load in missing:
            self._loaded.add(load)
        return [(space, LoadStep(load)) for space, load in missing]

    def _uploads(self, run: _Run) -> list[UploadStep]:
        """The run's inputs, less what is still there from a run before."""
        steps = []
        for name, part in run.arriving(self._views):
            for rows in self._missing(run, name, part):
                self._spoil([rows.placement])
                steps.append(UploadStep(name, rows, image=run.image))
            if (run.image, name, part) not in self._intact:
                self._intact.append((run.image, name, part))
        return steps

    def _missing(self, run: _Run, name: str, part: Part) -> list[Part]:
        """The rows of an input that are not there yet."""
        there = [have for image, own, have in self._intact if (image, own) == (run.image, name)]
        return list(missing(part, there))

    def _comes_beside(self, following: _Run, run: _Run) -> bool:
        """Tells whether a run does not use the places of what the next one still needs."""
        if not self._configuration.dram or run.tile.job.pinned or following.tile.job.pinned:
            return False
        coming = [
            rows.placement
            for name, part in following.arriving(self._views)
            for rows in self._missing(following, name, part)
        ]
        return are_apart(coming, map(run.placed, run.tile.places))

    def _stays(self, run: _Run, following: _Run) -> bool:
        """Tells whether a run's results may leave the chip during the next one."""
        leaving = list(map(run.placed, run.tile.job.owned))
        return are_apart(leaving, map(following.placed, following.tile.places))

    def _spoil(self, written: Sequence[Placement]) -> None:
        """Forgets what lies there: it is overwritten."""
        self._intact = [
            (image, name, part)
            for image, name, part in self._intact
            if all(
                place.end <= part.placement.address or part.placement.end <= place.address
                for place in written
            )
        ]


def _part(place: Placement, region: Region, whole: View) -> Part:
    return Part(place, region.origin, (whole.height, whole.width, whole.channels))
