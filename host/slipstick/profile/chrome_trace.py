"""An inference as a Chrome trace, which Perfetto draws: what each unit did in which cycle."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from slipstick_rtl.isa import STREAMS, Opcode

from ..compiler.timing.attribution import LayerTimes, attribute
from .executed import Executed, ExecutedRun, executed_runs
from .measure import Benchmark
from .profiles import RunEvents

Event = dict[str, Any]
PROCESS = 1
MEASURED = "measured"
MODELLED = "modelled within measured instruction"


class Track(IntEnum):
    """The threads of the trace, from top to bottom; the numbers are theirs."""

    LAYERS = 1
    WEIGHT_LOAD = 2
    WINDOW_READER = 3
    ARRAY = 4
    POST_PROCESSOR = 5
    LINK = 6


_NAMES = {
    Track.LAYERS: f"layers ({MEASURED}, each cycle is one layer's)",
    Track.WEIGHT_LOAD: f"weight load ({MODELLED})",
    Track.WINDOW_READER: f"window reader ({MODELLED})",
    Track.ARRAY: f"array ({MEASURED})",
    Track.POST_PROCESSOR: f"post-processor ({MEASURED})",
    Track.LINK: f"link ({MEASURED})",
}
_UNITS = {"matrix": Track.ARRAY, "post": Track.POST_PROCESSOR}


def trace(benchmark: Benchmark) -> dict[str, Any]:
    """The trace as the JSON object of Chrome's trace event format; a cycle is a microsecond there.

    Layers, array, post-processor and link are what the simulated core did: an instruction's event
    lasts from its first vector, or step, until its results have landed, or until the next one of
    its unit has begun. Weight load and window reader are derived. A CONVOLVE's tiles are spread
    evenly over it, so that the last one's vectors have passed the array at its end; the weights of
    a tile load while the tile before streams, the first one's before the instruction. A compact
    engine, which does one thing at a time, has no such tracks.

    Parameters
    ----------
    benchmark : Benchmark
        As ``measure`` makes it.
    """
    program = benchmark.program
    begins = [*(run.begin for run in benchmark.runs), *(t.start for t in benchmark.transfers)]
    origin = min(begins, default=0)
    runs = executed_runs(program)
    writer = _Writer(benchmark, runs, origin)
    events = list(_titles(writer))
    for run, executed in zip(benchmark.runs, runs, strict=True):
        events += writer.run(run, executed)
    events += writer.link()
    events.sort(key=lambda event: (event["ts"], event["tid"]))
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "time": "1 us of this trace is 1 clock cycle",
            "network": program.name,
            "array": program.hardware.shape,
            "fingerprint": program.fingerprint,
            "cycles": benchmark.cycles,
            "share_of_peak": benchmark.utilisation,
            "clock_mhz": benchmark.clock_mhz,
        },
    }


def write_trace(path: Path, benchmark: Benchmark) -> None:
    """Writes ``trace`` to a file; OSError if that cannot be done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trace(benchmark)) + "\n", "utf-8")


def _titles(writer: "_Writer") -> Iterator[Event]:
    program = writer.program
    common = {"ph": "M", "ts": 0, "pid": PROCESS}
    title = f"{program.name} on {program.hardware.shape}"
    yield {**common, "tid": 0, "name": "process_name", "args": {"name": title}}
    for track in writer.tracks:
        own = {**common, "tid": int(track)}
        yield {**own, "name": "thread_name", "args": {"name": _NAMES[track]}}
        yield {**own, "name": "thread_sort_index", "args": {"sort_index": int(track)}}


class _Writer:
    """Makes the events of one trace, all in cycles after ``origin``."""

    def __init__(self, benchmark: Benchmark, runs: Sequence[ExecutedRun], origin: int) -> None:
        self.program = benchmark.program
        self._benchmark, self._origin = benchmark, origin
        self._slots: Counter[int] = Counter()
        for run in runs:
            for instruction in run.matrix:
                self._slots[instruction.layer] += instruction.array_cycles

    @property
    def tracks(self) -> list[Track]:
        """Those that the engine has."""
        derived = {Track.WEIGHT_LOAD, Track.WINDOW_READER}
        alone = not self.program.hardware.traits.overlaps_streams
        return [track for track in Track if not (alone and track in derived)]

    def run(self, run: RunEvents, executed: ExecutedRun) -> Iterator[Event]:
        """Yields the events of the units in one run."""
        yield from self._layers(run, executed)
        for stream in STREAMS:
            track = _UNITS[stream]
            spans = _spans(run, stream)
            for instruction, (start, end, done) in zip(executed.stream(stream), spans, strict=True):
                name = self.program.layers[instruction.layer].name
                arguments = self._arguments(instruction, end - start, done - start)
                yield self._event(track, name, run.begin + start, run.begin + end, arguments)
        if self.program.hardware.traits.overlaps_streams:
            yield from self._tiles(run, executed)

    def link(self) -> Iterator[Event]:
        """Transfers, as the device saw them."""
        for transfer in self._benchmark.transfers:
            cycles = transfer.end - transfer.start
            arguments = {"bytes": transfer.bytes, "bytes_per_cycle": _share(transfer.bytes, cycles)}
            yield self._event(Track.LINK, transfer.kind, transfer.start, transfer.end, arguments)

    def _event(
        self, track: Track, name: str, start: int, end: int, arguments: dict[str, Any]
    ) -> Event:
        return {
            "ph": "X",
            "name": name,
            "cat": track.name.lower(),
            "ts": start - self._origin,
            "dur": end - start,
            "pid": PROCESS,
            "tid": int(track),
            "args": {"cycles": end - start, **arguments},
        }

    def _layers(self, run: RunEvents, executed: ExecutedRun) -> Iterator[Event]:
        """The cycles that count as each layer's own, end to end."""
        times: dict[int, LayerTimes] = {}
        slots: Counter[int] = Counter()
        for stream in STREAMS:
            starts, ends = run.starts[stream].tolist(), run.completions[stream].tolist()
            for instruction, start, end in zip(executed.stream(stream), starts, ends, strict=True):
                own = times.setdefault(instruction.layer, LayerTimes())
                own.note(stream == "matrix", start, end)
                if stream == "matrix":
                    slots[instruction.layer] += instruction.array_cycles
        order = sorted(times)
        start = run.begin
        for layer, cycles in zip(
            order, attribute([times[n] for n in order], run.cycles), strict=True
        ):
            record = self.program.layers[layer]
            macs = self._macs(layer, slots[layer])
            arguments: dict[str, Any] = {"operator": record.operator, "macs": macs}
            if macs:
                arguments["share_of_peak"] = self._share_of_peak(macs, cycles)
            yield self._event(Track.LAYERS, record.name, start, start + cycles, arguments)
            start += cycles

    def _macs(self, layer: int, slots: int) -> int:
        """A layer's multiply-accumulates, shared out by the vectors that the array took."""
        whole = self._slots[layer]
        return round(self.program.layers[layer].macs * slots / whole) if whole else 0

    def _share_of_peak(self, macs: int, cycles: int) -> float:
        return _share(macs, cycles * self.program.hardware.macs_per_cycle)

    def _arguments(self, instruction: Executed, cycles: int, landed: int) -> dict[str, Any]:
        common = {"instruction": instruction.opcode.name, "results_landed_after": landed}
        if instruction.opcode != Opcode.CONVOLVE:
            return common
        macs = self._macs(instruction.layer, instruction.array_cycles)
        return {
            **common,
            "reduction_tiles": instruction.fields["reduction_tiles"],
            "vectors_a_tile": instruction.vectors,
            "macs": macs,
            "share_of_peak": self._share_of_peak(macs, cycles),
        }

    def _tiles(self, run: RunEvents, executed: ExecutedRun) -> Iterator[Event]:
        """Reduction tiles: when their weights load, and when their windows are read."""
        hardware = self.program.hardware
        load, depth = hardware.tile_words, hardware.rows + hardware.columns
        reached, loaded = None, 0
        for instruction, (start, end, done) in zip(
            executed.matrix, _spans(run, "matrix"), strict=True
        ):
            layer = self.program.layers[instruction.layer].name
            tiles, vectors = instruction.fields["reduction_tiles"], instruction.vectors
            last = max(min(done - depth, end) - vectors, start + (tiles - 1) * vectors)
            for tile in range(tiles):
                begin = start + (last - start) * tile // max(tiles - 1, 1)
                # the loader is a tile ahead: it goes on as soon as the tile before streams
                latest = begin - load
                first = max(loaded, latest if reached is None else min(reached, latest))
                reached, loaded = begin, max(min(first + load, begin), first)
                name = f"{layer}, tile {tile + 1} of {tiles}"
                for track, spell, what in (
                    (Track.WEIGHT_LOAD, (first, loaded), {"weight_words": load}),
                    (Track.WINDOW_READER, (begin, begin + vectors), {"vectors": vectors}),
                ):
                    at, until = run.begin + spell[0], run.begin + spell[1]
                    yield self._event(track, name, at, until, {"derived": MODELLED, **what})


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _spans(run: RunEvents, stream: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and completion of a stream's instructions; the next one's start ends one."""
    starts, ends = run.starts[stream].tolist(), run.completions[stream].tolist()
    for (start, following), end in zip(
        itertools.pairwise([*starts, *ends[-1:]]), ends, strict=True
    ):
        yield start, max(min(end, following), start), end
