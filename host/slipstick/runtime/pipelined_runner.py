"""Runs images through a pipeline, with the host's steps before and after."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..devices.link import LostAnswerError
from .arrivals import Ready, Source
from .feeds import each_image, joined
from .pipeline import Flight, Pipeline
from .step_runner import StepRunner, Values

RESTARTS = 4
"""If an answer is lost and the device has gone on, all is done again from the inputs."""
GRACE_SECONDS = 0.5e-3
"""Longest wait for the next image before the results of those before are asked for."""
_TOGETHER = 256
"""Images that the host's own layers take at once."""


class PipelinedRunner:
    """Images one behind the other; those whose answers are lost are run again.

    Parameters
    ----------
    pipeline : Pipeline
    steps : StepRunner
    sent : callable
        Called when an image is sent.
    """

    def __init__(self, pipeline: Pipeline, steps: StepRunner, sent: Callable[[], object]) -> None:
        self._pipeline, self._steps, self._sent = pipeline, steps, sent

    def forget(self) -> None:
        """The device has been loaded, or reset: nothing else is there or on its way."""
        self._pipeline.forget()

    def run(self, values: Values) -> Values:
        """One image; returns every tensor that the host saw."""
        flight = self._put(values, with_host=True, more=False)
        self._pipeline.flush()
        return self._collect(flight, with_host=True)

    def run_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        count: int,
        wanted: tuple[str, ...] | None,
        advance: Callable[[int], object],
    ) -> Values:
        """Images of a batch; the host's steps take many at once.

        Parameters
        ----------
        inputs : mapping of array, each (count, ...)
        count : int
        wanted : tuple of str or None
            The tensors to keep; None: all that the host sees.
        advance : callable
            Told how many more images are done.
        """
        after = self._pipeline.after
        read = {name for step in after for name in step.inputs}
        made = {name for step in after for name in step.outputs}
        kept: set[str] | None = None
        results, parts = list[Values](), list[Values]()
        for values in self.stream(Ready(self._samples(inputs, count)), with_host=False):
            if wanted is not None and kept is None:
                kept = {name for name in {*wanted, *read} - made if name in values}
            parts.append(values)
            advance(1)
            if len(parts) == _TOGETHER:
                results.append(self._together(parts, kept, wanted))
                parts = []
        if parts:
            results.append(self._together(parts, kept, wanted))
        return joined(results)

    def _samples(self, inputs: Mapping[str, np.ndarray], count: int) -> Iterator[Values]:
        for first in range(0, count, _TOGETHER):
            part = {name: value[first : first + _TOGETHER] for name, value in inputs.items()}
            for step in self._pipeline.before:
                self._steps.host(step, part)
            yield from each_image(part)

    def _together(
        self, parts: list[Values], kept: set[str] | None, wanted: tuple[str, ...] | None
    ) -> Values:
        """The host's steps behind the device's, of some images."""
        values = joined(parts, kept or None)
        for step in self._pipeline.after:
            self._steps.host(step, values)
        return values if wanted is None else {name: values[name] for name in wanted}

    def stream(self, source: Source[Values], *, with_host: bool = True) -> Iterator[Values]:
        """The values of images as they come, in their order.

        Parameters
        ----------
        source : Source of dict of array
            Each image with a batch axis of one.
        with_host : bool
            With the host's steps, before and after.
        """
        flights = deque[tuple[Values, Flight]]()
        asked = True
        while flights or source.wait():
            room = len(flights) <= source.ahead
            if room and source.wait(0.0 if asked else GRACE_SECONDS):
                sample = source.take()
                flight = self._put(dict(sample), with_host=with_host, more=True)
                flights.append((sample, flight))
                # the last one's outputs are asked for with the next one
                asked = False
                continue
            if room and not asked:
                self._pipeline.flush()
                asked = True
            yield self._collect_or_again(*flights.popleft(), with_host=with_host)

    def _put(self, values: Values, *, with_host: bool, more: bool) -> Flight:
        if with_host:
            for step in self._pipeline.before:
                self._steps.host(step, values)
        self._sent()
        return self._pipeline.put(values, more=more)

    def _collect(self, flight: Flight, *, with_host: bool) -> Values:
        values = self._pipeline.collect(flight)
        if with_host:
            for step in self._pipeline.after:
                self._steps.host(step, values)
        return values

    def _collect_or_again(self, sample: Values, flight: Flight, *, with_host: bool) -> Values:
        for _ in range(RESTARTS):
            try:
                return self._collect(flight, with_host=with_host)
            except LostAnswerError:
                # behind all that are on their way
                flight = self._put(dict(sample), with_host=with_host, more=True)
                self._pipeline.flush()
        return self._collect(flight, with_host=with_host)
