"""Images through a program of one run, without waiting between them.

A program with one place for its tensors computes while nothing moves::

    PUT(1) RUN_GET(scores of 1, after)  PUT(2) RUN_GET(scores of 2, after) ...

With two places an image arrives, and the scores before leave, while one is computed::

    PUT(A) RUN(A)  PUT(B) RUN_GET(B; scores of A)  PUT(A) RUN_GET(A; scores of B) ... GET(scores)

With one place that the run releases, the next image arrives as the run has done with its own::

    PUT(1) RUN  HOLD PUT(2) GET(scores of 1) RUN  HOLD PUT(3) GET(scores of 2) RUN ... GET(scores)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from slipstick_rtl.link.protocol import Region

from ..devices.link import Hold, LinkDevice, Request
from ..program import Program
from ..program.alternate import odd_step
from ..program.steps import DownloadStep, HostStep, Placement, RunStep, Step, UploadStep
from .placement_io import gather, region_of, stored_bytes

Values = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class _Output:
    """A tensor to be read: by regions, or as what lies between its first and last byte."""

    name: str
    placement: Placement
    regions: tuple[Region, ...]


_BUSY = 3
"""Images whose results are not there: behind so many a run need not be started at once."""


@dataclass(frozen=True, kw_only=True)
class _Input:
    """A tensor to be written."""

    name: str
    region: Region
    holds: tuple[Hold, ...]


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Place of one image on the device."""

    inputs: tuple["_Input", ...]
    outputs: tuple[_Output, ...]
    pcs: tuple[int, ...]

    @property
    def first_answer(self) -> Region:
        """The first stretch of the first output, which is asked for with a run."""
        return self.outputs[0].regions[0]


@dataclass(eq=False)
class Flight:
    """An image on its way.

    Members
    -------
    values : dict of array
        What the host knows of it.
    answers : dict of list of Request
        For each output, where its bytes come.
    """

    values: Values
    place: int
    answers: dict[str, list[Request]] = field(default_factory=dict)


def is_simple(steps: Sequence[Step]) -> bool:
    """Checks that these are host steps, uploads, one run, downloads, host steps, in that order."""
    if odd_step(steps) is not None:
        return False
    runs = [step for step in steps if isinstance(step, RunStep)]
    moved = any(isinstance(step, DownloadStep) for step in steps)
    return moved and len(runs) == 1 and runs[0].clear_counters and not runs[0].overlapped


class Pipeline:
    """Submits images to a device that holds the program.

    Parameters
    ----------
    program : Program
        One that ``of`` accepts.
    device : LinkDevice
    places : sequence of _Place
        One or two.
    """

    def __init__(self, program: Program, device: LinkDevice, places: Sequence[_Place]) -> None:
        self._program, self._device, self._places = program, device, places
        self._overlaps = len(places) == 2 or bool(program.releases)
        self._run_seconds = program.predicted_cycles / device.cycles_per_second
        steps = program.steps
        run = next(k for k, step in enumerate(steps) if isinstance(step, RunStep))
        self.before = [step for step in steps[:run] if isinstance(step, HostStep)]
        self.after = [step for step in steps[run:] if isinstance(step, HostStep)]
        self.forget()

    @classmethod
    def of(cls, program: Program, device: object) -> "Pipeline | None":
        """The pipeline of a program; None if program or device are of another kind."""
        if not isinstance(device, LinkDevice) or program.variables or program.loads:
            return None
        if not is_simple(program.steps):
            return None
        run = next(step for step in program.steps if isinstance(step, RunStep))
        known = {name: each.placement for name, each in program.tensors.items()}
        sources: list[tuple[Mapping[str, Placement | None], tuple[int, ...]]] = [(known, run.pcs)]
        if program.alternate is not None:
            sources.append((program.alternate.placements, program.alternate.pcs))
        places = []
        for placements, pcs in sources:
            place = _place_of(program, placements, pcs, device.cycles_per_second)
            if place is None:
                return None
            places.append(place)
        return cls(program, device, places)

    def forget(self) -> None:
        """Nothing is on its way: after a failure, and at the beginning."""
        self._computing: Flight | None = None
        """The flight whose outputs nobody has asked for yet."""
        self._held: Request | None = None
        """The start of its run, which goes with the next image's bytes: one burst per image."""
        self._on_the_way = 0
        self._waits = False
        self._next_place = 0

    def put(self, values: Values, *, more: bool) -> Flight:
        """Submits an image, inputs of the device included.

        Parameters
        ----------
        values : dict of array
            Its tensors, each with a batch axis of one.
        more : bool
            Another image follows at once, or ``flush``.
        """
        flight = Flight(values, self._next_place)
        place, before = self._places[self._next_place], self._computing
        waiting, self._waits = self._waits, False
        overlaps = self._overlaps and (more or before is not None)
        run_waits = waiting and not place.inputs
        # with the last input's bytes goes the question for what the device has computed
        answered = before if overlaps else flight
        asked = self._question(place, answered, overlaps=overlaps, waiting=run_waits)
        self._upload(flight, waiting=waiting, holds=before is not None, last=asked)
        self._on_the_way += 1
        if asked is not None and answered is not None:
            self._ask(answered, asked)
        if overlaps:
            if before is None or len(self._places) == 1:
                self._start(place, waiting=run_waits, at_once=not more)
            self._computing = flight
            self._next_place = (self._next_place + 1) % len(self._places)
        else:
            self._waits = True
        # another image will take it along, unless the device has nothing to do meanwhile
        self._device.push(if_idle=more)
        return flight

    def _upload(self, flight: Flight, *, waiting: bool, holds: bool, last: Request | None) -> None:
        """Submits the start of the run before, an image's bytes, and a request behind them.

        Parameters
        ----------
        flight : Flight
        waiting : bool
            Once no program runs.
        holds : bool
            A run may still read what these bytes replace.
        last : Request or None
        """
        place, device = self._places[flight.place], self._device
        if not place.inputs:
            self._start_held()
            if last is not None:
                device.submit(last)
        first, self._held = self._held, None
        for number, each in enumerate(place.inputs, 1):
            device.submit_put(
                each.region,
                np.ascontiguousarray(flight.values[each.name], np.int8).tobytes(),
                waiting=waiting,
                holds=each.holds if holds else (),
                first=first,
                last=last if number == len(place.inputs) else None,
            )
            waiting, first = False, None

    def _start(self, place: _Place, *, waiting: bool, at_once: bool) -> None:
        """Submits a run's start, or holds it until another image's bytes take it along."""
        seconds = self._run_seconds
        self._held = self._device.start(place.pcs, waiting=waiting, run_seconds=seconds)
        if at_once or not self._device.holds_back or self._on_the_way <= _BUSY:
            self._start_held()

    def _start_held(self) -> None:
        """Submits the start that waits for another image's bytes."""
        start, self._held = self._held, None
        if start is not None:
            self._device.submit(start)

    def _question(
        self, place: _Place, answered: Flight | None, *, overlaps: bool, waiting: bool
    ) -> Request | None:
        """Makes the request for an image's first output; with two places, or without overlap, it
        starts the run of the image at hand as well."""
        if answered is None:
            return None
        region = self._places[answered.place].first_answer
        if overlaps and len(self._places) == 1:
            return self._device.get(region, waiting=True)
        return self._device.run_get(
            region,
            place.pcs,
            waiting=overlaps or waiting,
            after=not overlaps,
            run_seconds=self._run_seconds,
        )

    def flush(self) -> None:
        """Asks for the outputs of the last image, where that has not been done."""
        flight, self._computing = self._computing, None
        self._start_held()
        if flight is not None:
            region = self._places[flight.place].first_answer
            self._ask(flight, self._device.submit(self._device.get(region, waiting=True)))
            self._device.push()
            self._next_place = 0

    def collect(self, flight: Flight) -> Values:
        """Waits for an image's outputs; returns its values with them."""
        self._on_the_way -= 1
        outputs = {output.name: output for output in self._places[flight.place].outputs}
        for name, requests in flight.answers.items():
            data = b"".join(self._device.answer(request) for request in requests)
            flat = np.frombuffer(data, np.int8)[np.newaxis]
            if not outputs[name].regions:
                flat = gather(outputs[name].placement, flat)
            shape = self._program.tensors[name].shape
            flight.values[name] = flat.reshape(1, *shape[1:])
        return flight.values

    def _ask(self, flight: Flight, first: Request) -> None:
        """Asks for all outputs of an image; ``first`` is the first request, submitted already."""
        for number, output in enumerate(self._places[flight.place].outputs):
            requests = flight.answers.setdefault(output.name, [])
            regions = output.regions
            if not number:
                requests.append(first)
                regions = regions[1:]
            requests += [self._device.submit(self._device.get(region)) for region in regions]
            if not output.regions:
                place = output.placement
                requests += self._device.submit_read(place.address, stored_bytes(place))


def _place_of(
    program: Program,
    placements: Mapping[str, Placement | None],
    pcs: tuple[int, ...],
    hertz: float,
) -> _Place | None:
    inputs, outputs = [], []
    for step in program.steps:
        if isinstance(step, UploadStep):
            place = placements[step.tensor]
            region = None if place is None else region_of(place)
            if place is None or region is None:
                return None
            row = place.width * place.channels
            holds = tuple(
                Hold(
                    place=release.rows[0] * row,
                    completed=release.completed,
                    seconds=release.cycle / hertz,
                )
                for release in program.releases
                if release.tensor == step.tensor and any(release.completed)
            )
            inputs.append(_Input(name=step.tensor, region=region, holds=holds))
        elif isinstance(step, DownloadStep):
            place = placements[step.tensor]
            if place is None:
                return None
            regions = _answer_regions(place, program.hardware.payload_bytes)
            outputs.append(_Output(name=step.tensor, placement=place, regions=regions))
    # what answers with the run must be a region
    outputs.sort(key=lambda output: not output.regions)
    if not outputs or not outputs[0].regions:
        return None
    return _Place(inputs=tuple(inputs), outputs=tuple(outputs), pcs=pcs)


def _answer_regions(place: Placement, longest: int) -> tuple[Region, ...]:
    """The tensor's bytes in regions that an answer can hold, of whole rows; none if a row is
    longer."""
    row = place.width * place.channels
    rows = min(place.height, longest // row) if row else 0
    regions = []
    for first in range(0, place.height, rows or place.height or 1):
        if not rows:
            return ()
        part = replace(
            place,
            address=place.address + first * place.row_pitch,
            height=min(rows, place.height - first),
        )
        region = region_of(part)
        if region is None:
            return ()
        regions.append(replace(region, count=region.size))
    return tuple(regions)
