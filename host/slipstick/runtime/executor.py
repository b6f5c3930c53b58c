"""A program on a device: loaded once, then run step by step."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from slipstick_rtl.link.protocol import DeviceStatus

from ..devices.base import Device
from ..devices.link import LinkDevice, LostAnswerError
from ..errors import DeviceError, ProgramError, StateLostError
from ..program import Program
from ..program.resident_loads import Loaded
from ..program.steps import RunStep
from .arrivals import Source
from .device_memory import BatchMemory, DeviceMemory, Memory, SubmittedMemory
from .dram_memory import DramMemory
from .feeds import each_image, image_count, joined
from .kept_state import KeptState
from .pipeline import Pipeline
from .pipelined_runner import GRACE_SECONDS, RESTARTS, PipelinedRunner
from .sharing import Sharing, exclusive, sharing_of
from .step_runner import HostOperator, Sample, StepRunner, Values

Result = TypeVar("Result")
BATCH = 16
"""Images that a batch core runs together: enough to fill BLAS, few enough to stay in the cache."""
THREADS = 2


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
    operators : mapping of callable by operator, optional
        Steps of the host that these run, and not the kernels. Their errors are the inference's.

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

    def __init__(
        self,
        program: Program,
        device: Device,
        *,
        every: bool = False,
        operators: Mapping[str, HostOperator] | None = None,
    ) -> None:
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
        self._dram = DramMemory.of(program, device, self._finished, every=every)
        if program.batch > 1 and self._dram is None:
            raise ProgramError(
                f"program {program.name!r}: batch must be 1 for this device, not {program.batch}:"
                " only from DRAM images are computed together"
            )
        self._loaded = self._nothing_loaded()
        self._steps = StepRunner(program, operators or {}, self._state.started)
        pipeline = Pipeline.of(program, device)
        self._pipelined = pipeline and PipelinedRunner(pipeline, self._steps, self._sent)
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
        if self._pipelined is not None:
            self._pipelined.forget()

    def _nothing_loaded(self) -> Loaded:
        """Makes the record of a device whose memories may hold anything."""
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
        if self._pipelined is not None and self.on_run is None:
            return self._pipelined.run(values)
        if self._dram is not None and self.on_run is None:
            return self._run_from_dram(self._dram, values)
        return self._steps.run(values, self._memory, self._loaded, self.program.steps)

    def _run_from_dram(self, dram: DramMemory, values: Values) -> Values:
        for step in dram.program.before:
            self._steps.host(step, values)
        dram.infer(values)
        # a run of another kind finds nothing of its own there
        self._loaded.forget()
        for step in dram.program.after:
            self._steps.host(step, values)
        return values

    def _run_kept(self, inputs: Mapping[str, np.ndarray]) -> Values:
        """One of a program with variables, from what they hold."""
        values = self._run_alone({**inputs, **self._state.begin(self._memory)})
        self._state.end(values)
        return values

    def _keeping(self, action: Callable[[], Result]) -> Result:
        """Runs inferences; StateLostError if one fails in a run over what is kept."""
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
        """Runs an inference, or some; they are done again if a RUN is not answered."""
        for _ in range(RESTARTS):
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
        count = image_count(inputs)
        # a single sample takes the way of every other device, in frames
        batched = isinstance(self.device, BatchDevice) and count > 1
        if self.program.variables and count > 1:
            return self._follow(inputs, count, wanted, advance, batched=batched)
        if self.program.units and count > 1 and not batched and self._dram is None:
            return self._share_loads(inputs, count, wanted, advance)
        if self._pipelined is not None and not batched and self.on_run is None and count > 1:
            with self._flying():
                return self._pipelined.run_batch(inputs, count, wanted, advance)
        # both cores get work however few the samples; but of a network in many small runs the work
        # is mostly theirs, not the samples'
        share = count if self.program.is_streamed else -(-count // THREADS)
        size = min(BATCH, share) if batched else self.program.batch
        spans = [slice(start, start + size) for start in range(0, count, size)]
        parts = [{name: value[span] for name, value in inputs.items()} for span in spans]

        def run(part: Values) -> Values:
            values = self._run_together(part) if batched else self.infer(part)
            advance(image_count(part))
            return {name: values[name] for name in wanted} if wanted is not None else values

        if batched and len(parts) > 1:
            # the first prepares what the others share
            results = [run(parts[0])]
            with ThreadPoolExecutor(THREADS) as pool:
                results += pool.map(run, parts[1:])
        else:
            results = [run(part) for part in parts]
        return joined(results)

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
                if self._pipelined is not None and not batched and self.on_run is None:
                    with self._flying():
                        yield from self._pipelined.stream(source)
                    source.check()
                else:
                    yield from self._follow_source(source, BATCH if batched else 1)
            finally:
                sharing.consumer = None

    @contextmanager
    def _flying(self) -> Iterator[None]:
        """Images are on their way in the body; if it fails, some may be for longer."""
        sharing = sharing_of(self.device)
        if sharing.unfinished:
            self.device.reset()
            self._forget()
        sharing.unfinished = True
        yield
        sharing.unfinished = False

    def _sent(self) -> None:
        """The device will know the cycles of what was sent."""
        self._cycles_are_there = True

    def _follow_source(self, source: Source[Values], together: int) -> Iterator[Values]:
        """Samples one after the other, or up to so many together of those that are there."""
        while source.wait():
            samples = [source.take()]
            while len(samples) < together and source.wait(GRACE_SECONDS):
                samples.append(source.take())
            if len(samples) == 1:
                yield self._infer(samples[0])
                continue
            yield from each_image(self._run_together(joined(samples)))
        source.check()

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
            for sample in each_image(inputs):
                if batched:
                    begun = {**sample, **self._state.begin(memory)}
                    values = self._steps.run(begun, memory, loaded, self.program.steps)
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
        return joined(results)

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
            part = {name: value[first : first + BATCH] for name, value in inputs.items()}
            samples = list(each_image(part))
            results += self._restarting(lambda samples=samples: self._run_units(samples))
            advance(len(samples))
        return joined(results, wanted)

    def _run_units(self, samples: list[Values]) -> list[Values]:
        carried = [Sample(dict(inputs)) for inputs in samples]
        for unit in self.program.units:
            for sample in carried:
                self._steps.walk(sample, self._memory, self._loaded, unit)
        for sample in carried:
            sample.arrive()
        self._memory.settle()
        return [sample.values for sample in carried]

    def _run_together(self, inputs: Values) -> Values:
        count = image_count(inputs)
        assert isinstance(self.device, BatchDevice)
        # what is loaded on the way would be the other thread's too
        core = self.device.batch_core(count, shared=not self.program.loads)
        memory, loaded = BatchMemory(core), self._nothing_loaded()
        return self._steps.run(dict(inputs), memory, loaded, self.program.steps)
