"""A program on a device: loaded once, then run step by step."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from slipstick_rtl.link.protocol import DeviceStatus

from .. import kernels
from ..devices.base import Device
from ..devices.link import LinkDevice, LostAnswerError
from ..errors import DeviceError, ProgramError, SlipstickError, StateLostError
from ..graph import Node
from ..program import Program
from ..program.checks import graph_of, reason
from ..program.resident_loads import Loaded
from ..program.steps import (
    DownloadStep,
    HostStep,
    LoadStep,
    Part,
    Placement,
    RunStep,
    Step,
    TensorDescription,
    Transfer,
    UploadStep,
)
from .arrivals import Ready, Source
from .device_memory import BatchMemory, DeviceMemory, Download, Memory, SubmittedMemory
from .dram_memory import DramMemory
from .kept_state import KeptState
from .pipeline import Flight, Pipeline
from .sharing import Sharing, exclusive, sharing_of

Result = TypeVar("Result")
Values = dict[str, np.ndarray]
"""Tensors by name, each with a batch axis."""

BATCH = 16
"""Images that a batch core runs together: enough to fill BLAS, few enough to stay in the cache."""
THREADS = 2
_RESTARTS = 4
"""If an answer is lost and the device has gone on, all is done again from the inputs."""
_TOGETHER = 64
"""Images that the host's own layers take at once."""
_AHEAD = 64
"""Images that are submitted before the first one's results are looked at."""
_GRACE_SECONDS = 0.5e-3
"""How long the next image may take to come before the results of those before are asked for."""


@runtime_checkable
class BatchDevice(Protocol):
    """A device that runs many images at once: the golden model."""

    def batch_core(self, batch: int, *, shared: bool = True) -> Any:
        """A core for ``batch`` images over the memories that are loaded, or copies of them."""
        ...


class Execution:
    """Runs a program's steps, host layers included.

    What a program keeps from one inference to the next, the execution keeps (``KeptState``).
    Samples of such a program follow each other in time: a batch of them is as many inferences, one
    after the other. Threads may share an execution, and executions a device: one inference runs at
    a time, and each execution finds its program and its state again.

    Parameters
    ----------
    program : Program
    device : Device
        Its program memories are written here.
    every : bool
        Whether all tensors that a list for the DMA stores in DRAM come to the host; by default
        those that it needs.

    Members
    -------
    on_run : callable or None
        Told the status after each run.

    Raises
    ------
    ProgramError
        If the program was compiled for other hardware.
    DeviceError
        If the device does not answer as it must.
    """

    def __init__(self, program: Program, device: Device, *, every: bool = False) -> None:
        program.check(device.configuration)
        self.program, self.device = program, device
        self._cycles: int | None = 0
        self._cycles_are_there = False
        """The device knows them, and has not been asked."""
        self.on_run: Callable[[DeviceStatus], None] | None = None
        self._state = KeptState(program)
        self._submitted = self._memory_of(device)
        self._watched = DeviceMemory(device, program.name, self._finished)
        """For ``on_run``, which must be told before anything else happens."""
        self._pipeline = Pipeline.of(program, device)
        self._dram = DramMemory.of(program, device, self._finished, every=every)
        if program.batch > 1 and self._dram is None:
            raise ProgramError(
                f"program {program.name!r}: batch must be 1 for this device, not {program.batch}:"
                " only from DRAM images are computed together"
            )
        self._loaded = self._nothing_loaded()
        self._graph = graph_of(program)
        with exclusive(device) as sharing:
            device.identify()
            self._own(sharing)

    @property
    def lists(self) -> bool:
        """The program runs from the device's DRAM: one request per inference."""
        return self._dram is not None

    @property
    def _memory(self) -> DeviceMemory:
        return self._submitted if self.on_run is None else self._watched

    def _memory_of(self, device: Device) -> DeviceMemory:
        name = self.program.name
        if not isinstance(device, LinkDevice):
            return DeviceMemory(device, name, self._finished)
        runs = sum(isinstance(step, RunStep) for step in self.program.steps)
        # runs are not alike
        cycles = 2 * self.program.predicted_cycles / max(runs, 1)
        return SubmittedMemory(device, name, self._finished, cycles)

    @property
    def last_cycles(self) -> int | None:
        """Cycles of the last inference, all its runs together; None if the device cannot tell."""
        if sharing_of(self.device).consumer == threading.get_ident():
            # what the device counts now is of images behind
            return None if self._cycles_are_there else self._cycles
        with exclusive(self.device) as sharing:
            self._fetch_cycles(there=sharing.owned_by(self))
        return self._cycles

    def _fetch_cycles(self, *, there: bool) -> None:
        if self._cycles_are_there:
            self._cycles_are_there, self._cycles = False, None
            if there:
                with suppress(DeviceError):
                    self._cycles = self.device.status().cycles

    def reset_state(self) -> None:
        """The next inference begins as the first one did."""
        self._state.reset()

    def _own(self, sharing: Sharing) -> None:
        """Makes sure that the device holds this program, and not what another one left there."""
        if sharing.owned_by(self):
            return
        owner = sharing.owner
        if sharing.unfinished:
            self.device.reset()
            sharing.unfinished = False
        elif isinstance(owner, Execution):
            owner._fetch_cycles(there=True)
        if isinstance(owner, Execution):
            owner._state.leave()
        # a failure leaves a part of it there, which is nobody's
        sharing.give_to(None)
        for image in self.program.images:
            self._memory.load(image)
        self._memory.settle()
        if self._dram is not None:
            self._dram.load()
        self._forget()
        sharing.give_to(self)

    def _forget(self) -> None:
        """The device has been loaded, or reset: nothing else is there or on its way."""
        self._loaded.forget()
        if isinstance(self._submitted, SubmittedMemory):
            self._submitted.forget()
        if self._pipeline is not None:
            self._pipeline.forget()

    def _nothing_loaded(self) -> Loaded:
        """Of a device whose memories may hold anything."""
        return Loaded(self.program.loads, self.program.hardware)

    def _finished(self, status: DeviceStatus | None) -> None:
        """A run is over; None: how it was is not known."""
        if status is None or self._cycles is None:
            self._cycles = None
            return
        self._cycles += status.cycles
        if self.on_run is not None:
            self.on_run(status)

    def infer(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """Runs one sample (batch 1) and returns every tensor that the host saw."""
        with exclusive(self.device) as sharing:
            self._own(sharing)
            return self._infer(inputs)

    def _infer(self, inputs: Mapping[str, np.ndarray]) -> Values:
        if not self.program.variables:
            return self._restarting(lambda: self._run_alone(dict(inputs)))
        return self._keeping(lambda: self._restarting(lambda: self._run_kept(inputs)))

    def _run_alone(self, values: Values) -> Values:
        if self._pipeline is not None and self.on_run is None:
            flight = self._put(self._pipeline, values, more=False)
            self._pipeline.flush()
            return self._collect(self._pipeline, flight)
        if self._dram is not None and self.on_run is None:
            return self._run_from_dram(self._dram, values)
        return self._steps(values, self._memory, self._loaded, self.program.steps)

    def _run_from_dram(self, dram: DramMemory, values: Values) -> Values:
        for step in dram.program.before:
            self._host(step, values)
        dram.infer(values)
        # a run of another kind finds nothing of its own there
        self._loaded.forget()
        for step in dram.program.after:
            self._host(step, values)
        return values

    def _put(
        self, pipeline: Pipeline, values: Values, with_host: bool = True, *, more: bool
    ) -> Flight:
        if with_host:
            for step in pipeline.before:
                self._host(step, values)
        self._cycles_are_there = True
        return pipeline.put(values, more=more)

    def _collect(self, pipeline: Pipeline, flight: Flight, with_host: bool = True) -> Values:
        values = pipeline.collect(flight)
        if with_host:
            for step in pipeline.after:
                self._host(step, values)
        return values

    def _run_kept(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """One of a program with variables, from what they hold."""
        values = self._run_alone({**inputs, **self._state.begin(self._memory)})
        self._state.end(values)
        return values

    def _keeping(self, action: Callable[[], Result]) -> Result:
        """What inferences return; StateLostError if one fails in a run over what is kept."""
        try:
            return action()
        except BaseException as error:
            lost = self._state.failed()
            if lost and isinstance(error, DeviceError):
                raise StateLostError(
                    f"{error}; what {self.program.name} keeps on the device is lost with the run:"
                    " reset_state() begins anew"
                ) from error
            raise

    def _restarting(self, action: Callable[[], Result]) -> Result:
        """What an inference, or some, return; they are done again where a RUN is not answered."""
        for _ in range(_RESTARTS):
            try:
                return self._once(action)
            except LostAnswerError:
                if self.program.resident:
                    # it has run, over what it began with
                    raise
        return self._once(action)

    def _once(self, action: Callable[[], Result]) -> Result:
        self._cycles, self._cycles_are_there = 0, False
        sharing = sharing_of(self.device)
        if sharing.unfinished:
            # a run that nobody waited for would go on over the inputs
            self.device.reset()
            self._forget()
        sharing.unfinished = True
        result = action()
        sharing.unfinished = False
        return result

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """Runs any number of samples; on the model many at once, on both cores.

        Parameters
        ----------
        inputs : mapping of array, each (samples, ...)
        wanted : tuple of str, optional
            The tensors to keep; by default all that the host sees.
        advance : callable
            Told how many more samples are done.

        Returns
        -------
        dict of array, each (samples, ...)
        """
        with exclusive(self.device) as sharing:
            self._own(sharing)
            return self._infer_batch(inputs, wanted, advance)

    def _infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None,
        advance: Callable[[int], object],
    ) -> Values:
        count = len(next(iter(inputs.values()))) if inputs else 1
        # a single sample takes the way of every other device, in frames
        batched = isinstance(self.device, BatchDevice) and count > 1
        if self.program.variables and count > 1:
            return self._follow(inputs, count, wanted, advance, batched=batched)
        if self.program.units and count > 1 and not batched and self._dram is None:
            return self._share_loads(inputs, count, wanted, advance)
        if self._pipeline is not None and not batched and self.on_run is None and count > 1:
            return self._pipelined(self._pipeline, inputs, count, wanted, advance)
        # both cores get work however few the samples; but of a network in many small runs the work
        # is mostly theirs, not the samples'
        share = count if self.program.is_streamed else -(-count // THREADS)
        size = min(BATCH, share) if batched else self.program.batch
        spans = [slice(start, start + size) for start in range(0, count, size)]
        parts = [{name: value[span] for name, value in inputs.items()} for span in spans]

        def run(part: Values) -> Values:
            values = self._run_together(part) if batched else self.infer(part)
            advance(len(next(iter(part.values()))) if part else 1)
            return {name: values[name] for name in wanted} if wanted is not None else values

        if batched and len(parts) > 1:
            # the first prepares what the others share
            results = [run(parts[0])]
            with ThreadPoolExecutor(THREADS) as pool:
                results += pool.map(run, parts[1:])
        else:
            results = [run(part) for part in parts]
        return {name: np.concatenate([r[name] for r in results]) for name in results[0]}

    def _pipelined(
        self,
        pipeline: Pipeline,
        inputs: Mapping[str, np.ndarray],
        count: int,
        wanted: tuple[str, ...] | None,
        advance: Callable[[int], object],
    ) -> Values:
        """Samples one behind the other; host steps take many at once."""

        def samples() -> Iterator[Values]:
            for first in range(0, count, _TOGETHER):
                part = {name: value[first : first + _TOGETHER] for name, value in inputs.items()}
                for step in pipeline.before:
                    self._host(step, part)
                for at in range(min(_TOGETHER, count - first)):
                    yield {name: value[at : at + 1] for name, value in part.items()}

        def together(parts: list[Values]) -> Values:
            values = {n: np.concatenate([own[n] for own in parts]) for n in kept or parts[0]}
            for step in pipeline.after:
                self._host(step, values)
            return values if wanted is None else {name: values[name] for name in wanted}

        read = {name for step in pipeline.after for name in step.inputs}
        made = {name for step in pipeline.after for name in step.outputs}
        kept: set[str] | None = None
        results, parts = list[Values](), list[Values]()
        for values in self._pass_through(pipeline, Ready(samples()), with_host=False):
            if wanted is not None and kept is None:
                kept = {name for name in {*wanted, *read} - made if name in values}
            parts.append(values)
            advance(1)
            if len(parts) == _TOGETHER:
                results.append(together(parts))
                parts = []
        if parts:
            results.append(together(parts))
        return {name: np.concatenate([own[name] for own in results]) for name in results[0]}

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """Runs samples as they come; the values of each, in their order, as soon as they are there.

        The device is locked until the last one, or until the iterator is closed, which the thread
        that took the first one has to do.

        Parameters
        ----------
        source : Source of dict of array
            Each sample with a batch axis of one.
        consumer : int, optional
            The thread that takes the results; by default this one.
        """
        with exclusive(self.device) as sharing:
            self._own(sharing)
            sharing.consumer = threading.get_ident() if consumer is None else consumer
            try:
                # the model runs many images at once, without a link
                batched = isinstance(self.device, BatchDevice) and not self.program.variables
                if self._pipeline is not None and not batched and self.on_run is None:
                    yield from self._pass_through(self._pipeline, source)
                else:
                    yield from self._follow_source(source, BATCH if batched else 1)
            finally:
                sharing.consumer = None

    def _follow_source(self, source: Source[Values], together: int) -> Iterator[Values]:
        """Samples one after the other, or up to so many together of those that are there."""
        while source.wait():
            samples = [source.take()]
            while len(samples) < together and source.wait(_GRACE_SECONDS):
                samples.append(source.take())
            if len(samples) == 1:
                yield self._infer(samples[0])
                continue
            stacked = {n: np.concatenate([own[n] for own in samples]) for n in samples[0]}
            values = self._run_together(stacked)
            for at in range(len(samples)):
                yield {name: value[at : at + 1] for name, value in values.items()}
        source.check()

    def _pass_through(
        self, pipeline: Pipeline, source: Source[Values], *, with_host: bool = True
    ) -> Iterator[Values]:
        """Samples one behind the other; those whose answers are lost are run again.

        ``with_host``: with the host's steps, before and after.
        """
        sharing = sharing_of(self.device)
        if sharing.unfinished:
            self.device.reset()
            self._forget()
        sharing.unfinished = True
        flights = deque[tuple[Values, Flight]]()
        asked = True
        while flights or source.wait():
            room = len(flights) <= _AHEAD
            if room and source.wait(0.0 if asked else _GRACE_SECONDS):
                sample = source.take()
                flights.append((sample, self._put(pipeline, dict(sample), with_host, more=True)))
                # the last one's outputs are asked for with the next one
                asked = False
                continue
            if room and not asked:
                pipeline.flush()
                asked = True
            yield self._collect_or_again(pipeline, *flights.popleft(), with_host)
        sharing.unfinished = False
        source.check()

    def _collect_or_again(
        self, pipeline: Pipeline, sample: Values, flight: Flight, with_host: bool
    ) -> Values:
        for _ in range(_RESTARTS):
            try:
                return self._collect(pipeline, flight, with_host)
            except LostAnswerError:
                # behind all that are on their way
                flight = self._put(pipeline, dict(sample), with_host, more=True)
                pipeline.flush()
        return self._collect(pipeline, flight, with_host)

    def _follow(
        self,
        inputs: Mapping[str, np.ndarray],
        count: int,
        wanted: tuple[str, ...] | None,
        advance: Callable[[int], object],
        *,
        batched: bool,
    ) -> Values:
        """Samples that follow each other in time; if one fails, none has been."""
        before, results = self._state.saved(), list[Values]()
        memory: Memory = self._memory
        if batched:
            assert isinstance(self.device, BatchDevice)
            memory = BatchMemory(self.device.batch_core(1, shared=not self.program.loads))
        loaded = self._nothing_loaded()
        try:
            for at in range(count):
                sample = {name: value[at : at + 1] for name, value in inputs.items()}
                if batched:
                    begun = {**sample, **self._state.begin(memory)}
                    values = self._steps(begun, memory, loaded, self.program.steps)
                    self._state.end(values)
                else:
                    values = self._restarting(lambda part=sample: self._run_kept(part))
                names = values if wanted is None else wanted
                results.append({name: values[name] for name in names})
                advance(1)
            if batched:
                self._state.leave()
        except BaseException:
            self._state.restore(before)
            raise
        return {name: np.concatenate([own[name] for own in results]) for name in results[0]}

    def _share_loads(
        self,
        inputs: Mapping[str, np.ndarray],
        count: int,
        wanted: tuple[str, ...] | None,
        advance: Callable[[int], object],
    ) -> Values:
        """Many samples, each of the program's units for several of them before the next one."""
        results: list[Values] = []
        for first in range(0, count, BATCH):
            samples = range(first, min(first + BATCH, count))
            values = [
                {name: value[at : at + 1] for name, value in inputs.items()} for at in samples
            ]
            results += self._restarting(lambda part=values: self._run_units(part))
            advance(len(samples))
        names = wanted if wanted is not None else tuple(results[0])
        return {name: np.concatenate([own[name] for own in results]) for name in names}

    def _run_units(self, samples: list[Values]) -> list[Values]:
        carried = [_Sample(dict(inputs)) for inputs in samples]
        for unit in self.program.units:
            for sample in carried:
                self._walk(sample, self._memory, self._loaded, unit)
        for sample in carried:
            sample.arrive()
        self._memory.settle()
        return [sample.values for sample in carried]

    def _run_together(self, inputs: Values) -> Values:
        count = len(next(iter(inputs.values()))) if inputs else 1
        assert isinstance(self.device, BatchDevice)
        # what is loaded on the way would be the other thread's too
        core = self.device.batch_core(count, shared=not self.program.loads)
        memory, loaded = BatchMemory(core), self._nothing_loaded()
        return self._steps(dict(inputs), memory, loaded, self.program.steps)

    def _steps(
        self, values: Values, memory: Memory, loaded: Loaded, steps: Sequence[Step]
    ) -> Values:
        sample = _Sample(values)
        self._walk(sample, memory, loaded, steps)
        sample.arrive()
        memory.settle()
        return sample.values

    def _walk(
        self, sample: "_Sample", memory: Memory, loaded: Loaded, steps: Sequence[Step]
    ) -> None:
        number = 0
        while number < len(steps):
            step = steps[number]
            number += 1
            match step:
                case RunStep():
                    self._state.started()
                    memory.start(step)
                    for other in steps[number : number + step.overlapped]:
                        assert isinstance(other, Transfer)
                        self._transfer(other, sample, memory, loaded)
                    number += step.overlapped
                    memory.finish(step)
                case HostStep():
                    sample.arrive(step.inputs)
                    self._host(step, sample.values)
                case _:
                    self._transfer(step, sample, memory, loaded)

    def _transfer(self, step: Transfer, sample: "_Sample", memory: Memory, loaded: Loaded) -> None:
        values = sample.values
        if isinstance(step, UploadStep):
            sample.arrive((step.tensor,))
        match step:
            case LoadStep(load):
                if load not in loaded:
                    memory.load(self.program.loads[load])
                    loaded.add(load)
            case UploadStep(tensor, Part() as part):
                whole = values[tensor].reshape(-1, *part.whole)
                memory.upload(part.placement, whole[part.box])
            case UploadStep(tensor):
                memory.upload(self._placement(tensor), values[tensor])
            case DownloadStep(tensor, Part() as part):
                download = memory.download(part.placement)
                sample.expect(tensor, partial(self._join, tensor, part, download, values))
            case DownloadStep(tensor):
                download = memory.download(self._placement(tensor))
                sample.expect(tensor, partial(self._store, tensor, download, values))

    def _store(self, tensor: str, download: Download, values: Values) -> None:
        """Takes a tensor in."""
        flat = download()
        values[tensor] = flat.reshape(len(flat), *self.program.tensors[tensor].shape[1:])

    def _join(self, tensor: str, part: Part, download: Download, values: Values) -> None:
        """Puts a part into its tensor."""
        flat = download()
        if tensor not in values:
            shape = len(flat), *self.program.tensors[tensor].shape[1:]
            values[tensor] = np.zeros(shape, np.int8)
        place = part.placement
        box = flat.reshape(len(flat), place.height, place.width, place.channels)
        values[tensor].reshape(-1, *part.whole)[part.box] = box

    def _placement(self, tensor: str) -> Placement:
        described: TensorDescription = self.program.tensors[tensor]
        assert described.placement is not None
        return described.placement

    def _host(self, step: HostStep, values: Values) -> None:
        node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
        operands = [values[name] for name in step.inputs if name in values]
        try:
            outputs = kernels.run(node, self._graph, operands)
        except (SlipstickError, MemoryError):
            raise
        except Exception as error:
            # a program may come from a file, whose checks cannot foresee every kernel's
            raise ProgramError(
                f"program {self.program.name!r}: {step.operator} {step.name!r} failed:"
                f" {reason(error)}"
            ) from error
        values.update(zip(step.outputs, outputs, strict=True))


class _Sample:
    """A sample's tensors: those that are there, and those that were asked for.

    Parameters
    ----------
    values : dict of array
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self._expected: dict[str, list[Callable[[], None]]] = {}

    def expect(self, tensor: str, take: Callable[[], None]) -> None:
        """Notes that a tensor, or a part of one, comes; ``take`` waits for it."""
        self._expected.setdefault(tensor, []).append(take)

    def arrive(self, tensors: Iterable[str] | None = None) -> None:
        """Waits for these tensors, or for all."""
        for tensor in list(self._expected) if tensors is None else tensors:
            for take in self._expected.pop(tensor, ()):
                take()
