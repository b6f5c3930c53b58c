"""A program loaded on a device, ready to run inputs: the face that onnxruntime's users know."""

import os
import threading
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from slipstick_rtl.config import Configuration

from .compiler.stages.staged_program import StagedProgram
from .devices import DEVICES, Device, DeviceGroup, hardware_of, open_device
from .devices.group import GroupKind
from .errors import DeviceError, InputError
from .loading import configuration_of, load_program
from .program import Program
from .runtime.arrivals import Reader, Source
from .runtime.async_results import AsyncResults
from .runtime.emulation import Emulation
from .runtime.executions import (
    group_execution,
    pool_of_one,
    single_execution,
    staged_execution,
)
from .runtime.executor import BatchDevice, Execution
from .runtime.feeds import numbered_feeds, numbered_feeds_async, prepare
from .runtime.pool.board import BoardStatus
from .runtime.pool.execution import PoolExecution
from .runtime.sharing import exclusive
from .runtime.stages.divided_execution import DividedExecution
from .runtime.stages.loading import is_divided, open_divided
from .targets import Target


@dataclass(frozen=True)
class TensorArgument:
    """An input or output: its ``name``, ``shape`` and ``type``, as ``tensor(int8)``."""

    name: str
    shape: list[int]
    type: str


class _Closable(Protocol):
    def close(self) -> None: ...


class InferenceSession:
    """Runs a network.

    Threads may share a session, and sessions an open device: inferences wait for each other.

    One that keeps something from run to run (``program.variables``) goes on where the last run of
    this session ended, or from its beginning after ``reset_state``. Inputs with a larger batch axis
    are runs one after the other. After an error the state is that before the failed call, or the
    error is a ``StateLostError``, as are all that follow until the reset.

    Parameters
    ----------
    model : path or Program
        A quantised .tflite or .onnx file, which is compiled; a .slip file or a ``Program``.
    device : str, Device, or list of these
        As for ``open_device``: ``sim`` (the compiled RTL), ``model`` (the golden model), either
        with ``:TARGET``. A device that is passed open stays open. Several, as a list or as
        ``pool:D1,D2,...``, share the images by how fast each is; one that fails is taken out, its
        images go to the others, and it comes back when it answers again.
    target : str, Target or Configuration, optional
        The hardware; by default the program's, the device's, or ``targets.DEFAULT_TARGET``.
    semantics : str, optional
        Whose rounding the network follows, "tflm" or "onnx"; by default that of the file's kind.

    Members
    -------
    program : Program
    device : Device

    Raises
    ------
    SlipstickError
        If the model cannot be read, compiled or loaded, the device not opened, or the program was
        compiled for other hardware; each by its own type.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Program,
        device: str | Device | Sequence[str | Device] = "sim",
        target: str | Target | Configuration | None = None,
        *,
        semantics: str | None = None,
    ) -> None:
        if isinstance(device, list | tuple):
            device = _as_pool(device)
        assert isinstance(device, str) or not isinstance(device, Sequence)
        wanted = _wanted_hardware(device, target)
        self._own = isinstance(device, str)
        self._name = device if isinstance(device, str) else type(device).__name__
        self.program: Program
        self.device: Device
        if is_divided(device):
            assert isinstance(device, str | DeviceGroup)
            self.program, self.device = open_divided(model, device, wanted, semantics)
        else:
            self.program = load_program(model, wanted, semantics)
            self.device = (
                open_device(device, wanted or self.program.hardware)
                if isinstance(device, str)
                else device
            )
        self._closed = False
        self._pool: PoolExecution | None = None
        self._pool_lock = threading.Lock()
        self._streams: weakref.WeakKeyDictionary[_Closable, int] = weakref.WeakKeyDictionary()
        """The streams, and the thread of each."""
        try:
            self._execution = self._make_execution(model, semantics)
        except BaseException:
            self.close()
            raise
        self._ran = False

    def _make_execution(
        self, model: str | os.PathLike[str] | Program, semantics: str | None
    ) -> Execution | Emulation | PoolExecution | DividedExecution:
        if not isinstance(self.device, DeviceGroup):
            return single_execution(self.program, self.device)
        if isinstance(self.program, StagedProgram):
            return staged_execution(self.program, self.device)
        self._pool = group_execution(
            self.program, self.device, lambda hardware: load_program(model, hardware, semantics)
        )
        return self._pool

    @property
    def last_cycles(self) -> int | None:
        """Cycles of the last inference on the device; None before one, and on the golden model,
        which has no clock."""
        if not self._ran or isinstance(self.device, BatchDevice):
            return None
        return self._execution.last_cycles

    def get_inputs(self) -> list[TensorArgument]:
        """The network's inputs."""
        return [self._argument(name) for name in self.program.inputs]

    def get_outputs(self) -> list[TensorArgument]:
        """The network's outputs."""
        return [self._argument(name) for name in self.program.outputs]

    def _argument(self, name: str) -> TensorArgument:
        described = self.program.tensors[name]
        return TensorArgument(name, list(described.shape), f"tensor({described.dtype})")

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: object = None,
    ) -> list[np.ndarray]:
        """Runs the network.

        Parameters
        ----------
        output_names : sequence of str or None
            Which outputs, in which order; None: all of them.
        input_feed : mapping of array by name
            Each of the input's type and shape; the batch axis may lack, or be larger: then images
            run one after the other. Real numbers (float) are quantised with the input's scale and
            zero point, what lies outside their range is clamped. Where the zero point is -128,
            uint8 images are taken, and 128 is subtracted.
        run_options : object
            Ignored; there for onnxruntime's users.

        Returns
        -------
        list of arrays
            One an output name, in the network's own codes; batch in the leading axis.

        Raises
        ------
        InputError
            If an input is missing, unknown, or of another shape, type or content; if an output is
            unknown.
        DeviceError
            If the device does not answer, or the session is closed.
        StateLostError
            If what the network keeps on the device was lost, now or before.
        """
        return self.run_batch(output_names, input_feed)

    def run_batch(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        advance: Callable[[int], object] = int,
    ) -> list[np.ndarray]:
        """As ``run``; ``advance`` is told how many more images are done.

        The golden model runs several images at a time on both cores, the others one by one.
        """
        names = self._output_names(output_names)
        inputs = prepare(self.program, input_feed)
        with exclusive(self.device):
            self._check_open()
            values = self._execution.infer_batch(inputs, names, advance)
            self._ran = True
        return [values[name] for name in names]

    def stream(
        self, iterable: Iterable[Any], output_names: Sequence[str] | None = None
    ) -> Generator[list[np.ndarray], None, None]:
        """Runs inputs as they come, many of them on their way at a time.

        A result is there as soon as the device has it: that of the last input does not wait for
        the next one. A thread reads the inputs, up to 16 ahead, so the iterable may wait for a
        camera.

        From the first result to the last the stream has the device: other threads wait, and calls
        of this thread that need the device are a ``DeviceError``. A stream that is left early has
        to be closed, by the thread that used it: ``with contextlib.closing(session.stream(...))
        as results``, or the end of the session. Then inputs that were read ahead are lost.

        Parameters
        ----------
        iterable : iterable of mapping, or of array for a network of one input
            Each as for ``run``, of one image: the batch axis is one, or lacks.
        output_names : sequence of str, optional
            Which outputs, in which order; by default all of them.

        Returns
        -------
        iterator of list of arrays
            As from ``run``, one list per input, in the order of the inputs.

        Raises
        ------
        InputError
            If an input is not as it must be; the message has its number, from 0 on. As all errors
            of the iterable it comes in the place of its result.
        DeviceError, StateLostError
            As from ``run``.
        """
        names = self._output_names(output_names)
        if isinstance(iterable, str | Mapping) or not isinstance(iterable, Iterable):
            raise InputError(f"a stream must be an iterable of inputs, not {_kind(iterable)}")
        self._check_open()
        results = self._stream_alone(iterable, names)
        self._streams[results] = threading.get_ident()
        return results

    def astream(
        self,
        iterable: Iterable[Any] | AsyncIterable[Any],
        output_names: Sequence[str] | None = None,
    ) -> AsyncGenerator[list[np.ndarray], None]:
        """As ``stream``, for ``async for``: the event loop never waits for the device.

        The iterable may be asynchronous. One thread has the device until the end. A stream that is
        left early has to be closed: ``async with contextlib.aclosing(session.astream(...)) as
        results``.
        """
        names = self._output_names(output_names)
        if isinstance(iterable, str | Mapping) or not isinstance(
            iterable, Iterable | AsyncIterable
        ):
            raise InputError(f"a stream must be an iterable of inputs, not {_kind(iterable)}")
        self._check_open()
        return self._stream_async(iterable, names)

    def submit(
        self, input_feed: Mapping[str, Any], output_names: Sequence[str] | None = None
    ) -> "Future[list[np.ndarray]]":
        """Puts one image behind those that wait, and returns at once.

        A thread per board runs what was submitted, many images on their way at a time. While there
        is something to do it has the board: other sessions take turns with it.

        Parameters
        ----------
        input_feed : mapping of array by name
            As for ``run``, of one image: the batch axis is one, or lacks.
        output_names : sequence of str, optional
            Which outputs, in which order; by default all of them.

        Returns
        -------
        Future of list of arrays
            What ``run`` returns, or its error. One that was cancelled in time is not computed.

        Raises
        ------
        InputError
            As from ``run``, at once.
        DeviceError
            If the session is closed, or the network keeps something from run to run.
        """
        names = self._output_names(output_names)
        inputs = prepare(self.program, input_feed)
        for name, value in inputs.items():
            if len(value) != 1:
                raise InputError(f"input {name!r} must be one image, not {len(value)}")
        self._check_open()
        if self.program.variables:
            raise DeviceError(
                f"{self.program.name} keeps something from run to run: its images follow each other"
                " in time, by run or stream"
            )
        result: Future[list[np.ndarray]] = Future()
        computed = self._boards().submit(inputs)

        def pass_on(done: "Future[dict[str, np.ndarray]]") -> None:
            if done.cancelled() or not result.set_running_or_notify_cancel():
                return
            error = done.exception()
            if error is not None:
                result.set_exception(error)
            else:
                self._ran = True
                result.set_result([done.result()[name] for name in names])

        def pass_back(asked: "Future[list[np.ndarray]]") -> None:
            if asked.cancelled():
                computed.cancel()

        computed.add_done_callback(pass_on)
        result.add_done_callback(pass_back)
        return result

    def boards(self) -> list[BoardStatus]:
        """Returns what each board does: one entry for a single device, several for a pool."""
        self._check_open()
        return self._boards().boards()

    @property
    def retried(self) -> int:
        """Images that were computed again since a board failed."""
        return 0 if self._pool is None else self._pool.retried

    @property
    def waiting(self) -> int:
        """Images that were submitted, and that no board has taken yet."""
        return 0 if self._pool is None else self._pool.waiting

    def _boards(self) -> PoolExecution:
        """The pool; a single device is made one."""
        with self._pool_lock:
            if self._pool is None:
                assert not isinstance(self._execution, PoolExecution)
                self._pool = pool_of_one(self.program, self.device, self._name, self._execution)
            return self._pool

    def _stream_alone(
        self, iterable: Iterable[Any], names: tuple[str, ...]
    ) -> Generator[list[np.ndarray], None, None]:
        reader = Reader(numbered_feeds(self.program, iterable))
        try:
            with closing(self._results(reader, names, None)) as results:
                yield from results
        finally:
            reader.stop()

    async def _stream_async(
        self, iterable: Iterable[Any] | AsyncIterable[Any], names: tuple[str, ...]
    ) -> AsyncGenerator[list[np.ndarray], None]:
        consumer = threading.get_ident()
        running = AsyncResults(
            lambda arrivals: self._results(arrivals, names, consumer),
            numbered_feeds_async(self.program, iterable)
            if isinstance(iterable, AsyncIterable)
            else numbered_feeds(self.program, iterable),
        )
        self._streams[running] = consumer
        async with aclosing(running.results()) as results:
            async for result in results:
                yield result

    def _results(
        self, source: Source[dict[str, np.ndarray]], names: tuple[str, ...], consumer: int | None
    ) -> Generator[list[np.ndarray], None, None]:
        with exclusive(self.device):
            self._check_open()
            with closing(self._execution.infer_stream(source, consumer)) as stream:
                for values in stream:
                    self._ran = True
                    yield [values[name] for name in names]

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError(f"the session of {self.program.name} is closed")

    def reset_state(self) -> None:
        """Sets all that the network keeps from run to run to its initial values.

        Raises
        ------
        DeviceError
            If the session is closed.
        """
        self._check_open()
        with exclusive(self.device):
            self._execution.reset_state()

    def _output_names(self, names: Sequence[str] | None) -> tuple[str, ...]:
        if names is None:
            return self.program.outputs
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"output names must be a list of names, not {names!r}")
        chosen = tuple(names)
        for name in chosen:
            if name not in self.program.outputs:
                raise InputError(
                    f"output {name!r} is unknown: {self.program.name} gives"
                    f" {', '.join(self.program.outputs)}"
                )
        return chosen

    def close(self) -> None:
        """Closes the device, if the session opened it, when no other thread runs on it any more.

        A stream of this thread is closed as well.
        """
        for stream, thread in list(self._streams.items()):
            if thread == threading.get_ident():
                stream.close()
        if self._pool is not None:
            self._pool.close()
        with exclusive(self.device):
            if not self._closed and self._own:
                self.device.close()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _kind(value: object) -> str:
    return "a mapping" if isinstance(value, Mapping) else type(value).__name__


def _wanted_hardware(
    device: str | Device, target: str | Target | Configuration | None
) -> Configuration | None:
    """The hardware that was asked for by name, None if it was not."""
    if not isinstance(device, str):
        wanted = getattr(device, "configuration", None)
        if not isinstance(wanted, Configuration):
            raise DeviceError(
                f"device must be one of {', '.join(DEVICES)}, or an open Device, not"
                f" {type(device).__name__}"
            )
        if target is not None and configuration_of(target).fingerprint != wanted.fingerprint:
            raise DeviceError(
                f"the device is {wanted.fingerprint} ({wanted.shape}), but the target"
                f" {configuration_of(target).fingerprint} ({configuration_of(target).shape})"
            )
        return wanted
    return configuration_of(target) if target is not None else hardware_of(device)


def _as_pool(devices: Sequence[str | Device]) -> str | Device:
    """A pool of names, or of open devices."""
    names = [each for each in devices if isinstance(each, str)]
    if not devices:
        raise DeviceError("device must be one or more devices, not an empty list")
    if len(names) == len(devices):
        return f"{GroupKind.POOL}:{','.join(names)}"
    opened = [each for each in devices if not isinstance(each, str)]
    if names or not all(
        isinstance(getattr(d, "configuration", None), Configuration) for d in opened
    ):
        raise DeviceError("a list of devices must hold names, or open devices, not both")
    told = [f"{type(each).__name__} {number}" for number, each in enumerate(opened)]
    return DeviceGroup(GroupKind.POOL, told, opened)
