"""Images through a program of one run, without waiting between them.

A program with one place for its tensors computes while nothing moves::

    PUT(1) RUN_GET(scores of 1, after)  PUT(2) RUN_GET(scores of 2, after) ...

With two places an image arrives, and the scores before leave, while one is computed::

    PUT(A) RUN(A)  PUT(B) RUN_GET(B; scores of A)  PUT(A) RUN_GET(A; scores of B) ... GET(scores)

With one place that the run releases, the next image arrives as the run has done with its own::

    PUT(1) RUN  HOLD PUT(2) GET(scores of 1) RUN  HOLD PUT(3) GET(scores of 2) RUN ... GET(scores)
"""

from collections.abc import Callable, Mapping, Sequence
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
        device = self._device
        flight = Flight(values, self._next_place)
        place = self._places[self._next_place]
        waiting, self._waits = self._waits, False
        before = self._computing
        for each in place.inputs:
            data = np.ascontiguousarray(values[each.name], np.int8).tobytes()
            holds = each.holds if before is not None else ()
            device.submit_put(each.region, data, waiting=waiting, holds=holds)
            waiting = False
        if self._overlaps and (more or before is not None):
            if before is not None and len(self._places) == 2:
                self._ask(before, lambda region: self._run_get(place, region, waiting=True))
            else:
                if before is not None:
                    self._ask(before, lambda region: device.submit_get(region, waiting=True))
                device.submit_run(place.pcs, waiting=waiting, run_seconds=self._run_seconds)
            self._computing = flight
            self._next_place = (self._next_place + 1) % len(self._places)
        else:
            self._ask(
                flight, lambda region: self._run_get(place, region, waiting=waiting, after=True)
            )
            self._waits = True
        device.push()
        return flight

    def flush(self) -> None:
        """Asks for the outputs of the last image, where that has not been done."""
        flight, self._computing = self._computing, None
        if flight is not None:
            self._ask(flight, lambda region: self._device.submit_get(region, waiting=True))
            self._device.push()
            self._next_place = 0

    def collect(self, flight: Flight) -> Values:
        """Waits for an image's outputs; returns its values with them."""
        outputs = {output.name: output for output in self._places[flight.place].outputs}
        for name, requests in flight.answers.items():
            data = b"".join(self._device.answer(request) for request in requests)
            flat = np.frombuffer(data, np.int8)[np.newaxis]
            if not outputs[name].regions:
                flat = gather(outputs[name].placement, flat)
            shape = self._program.tensors[name].shape
            flight.values[name] = flat.reshape(1, *shape[1:])
        return flight.values

    def _run_get(
        self, place: _Place, region: Region, *, waiting: bool, after: bool = False
    ) -> Request:
        return self._device.submit_run_get(
            region, place.pcs, waiting=waiting, after=after, run_seconds=self._run_seconds
        )

    def _ask(self, flight: Flight, begin: Callable[[Region], Request]) -> None:
        """Asks for all outputs of an image; ``begin`` submits the first request."""
        for number, output in enumerate(self._places[flight.place].outputs):
            requests = flight.answers.setdefault(output.name, [])
            regions = output.regions
            if not number:
                requests.append(begin(regions[0]))
                regions = regions[1:]
            requests += [self._device.submit_get(region) for region in regions]
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
