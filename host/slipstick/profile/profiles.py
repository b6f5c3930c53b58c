"""Attributes the cycles of an inference to layers, by the event log of the simulated core."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.isa import STREAMS

from ..compiler.timing.attribution import LayerTimes, attribute
from ..errors import DeviceError
from ..plots.figures import Span
from ..program import Program
from ..program.steps import LayerRecord, RunStep


@dataclass(frozen=True)
class RunEvents:
    """Events of one run of the core, in cycles from its start.

    Parameters
    ----------
    cycles : int
        Until both streams had ended.
    starts, completions : mapping of array of int by "matrix" and "post"
        The n-th entry is the stream's n-th instruction: when it began to work, and when its results
        had landed.
    begin : int
        The device's clock cycle at the run's start.
    """

    cycles: int
    starts: Mapping[str, np.ndarray]
    completions: Mapping[str, np.ndarray]
    begin: int = 0


@dataclass(frozen=True)
class LayerProfile:
    """A layer's line: the cycles that ``attribution`` counts as its own, and when it worked."""

    layer: LayerRecord
    cycles: int
    spans: tuple[Span, ...]

    def utilisation(self, macs_per_cycle: int) -> float | None:
        """Share of the array's peak, None for a layer without multiply-accumulates or cycles."""
        if not self.layer.macs or not self.cycles:
            return None
        return self.layer.macs / (self.cycles * macs_per_cycle)


def profile(program: Program, events: Sequence[RunEvents]) -> list[LayerProfile]:
    """The layers of an inference.

    Parameters
    ----------
    program : Program
    events : sequence of RunEvents
        One a RunStep of the program, in order. Runs are laid end to end; what the host does between
        them takes no cycles here.

    Returns
    -------
    list of LayerProfile
        In the order of ``program.layers``; their cycles sum up to the runs' cycles.

    Raises
    ------
    DeviceError
        If the log is not of this program's instructions.
    """
    runs = [step for step in program.steps if isinstance(step, RunStep)]
    _check_counts(program, runs, events)
    cycles = [0] * len(program.layers)
    spans: list[list[Span]] = [[] for _ in program.layers]
    offset = 0
    for step, run in zip(runs, events, strict=True):
        times: dict[int, LayerTimes] = {}
        for stream, owners in _owners(step):
            pairs = zip(run.starts[stream].tolist(), run.completions[stream].tolist(), strict=True)
            for owner, (start, end) in zip(owners, pairs, strict=True):
                times.setdefault(owner, LayerTimes()).note(stream == "matrix", start, end)
                name = program.layers[owner].name
                place = start + offset, max(start, end) + offset
                spans[owner].append(Span(name=name, unit=stream, start=place[0], end=place[1]))
        order = sorted(times)
        own = attribute([times[index] for index in order], run.cycles)
        for index, count in zip(order, own, strict=True):
            cycles[index] += count
        offset += run.cycles
    return [
        LayerProfile(layer, own, tuple(parts))
        for layer, own, parts in zip(program.layers, cycles, spans, strict=True)
    ]


def _check_counts(program: Program, runs: Sequence[RunStep], events: Sequence[RunEvents]) -> None:
    """DeviceError unless the log holds as many instructions as the runs."""
    expected = [sum(counts) for counts in zip(*(run.instructions for run in runs), strict=True)]
    for stream, count in zip(STREAMS, expected or [0, 0], strict=True):
        starts, completions = (
            sum(len(log[stream]) for log in logs)
            for logs in ([run.starts for run in events], [run.completions for run in events])
        )
        if not starts == completions == count:
            raise DeviceError(
                f"the event log must hold the {count} {stream} instructions of {program.name!r},"
                f" not {starts} starts and {completions} completions"
            )


def _owners(step: RunStep) -> Iterator[tuple[str, Iterator[int]]]:
    """Each stream, and the layer of each of its instructions."""
    for stream, owners in zip(STREAMS, step.owners, strict=True):
        yield stream, itertools.chain.from_iterable(itertools.repeat(*owner) for owner in owners)
