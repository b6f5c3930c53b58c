"""Runs the steps of a program, one after the other: transfers, runs, layers of the host."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from .. import kernels
from ..devices.turns import TURNS
from ..errors import ProgramError, SlipstickError
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
from .device_memory import Download, Memory

Values = dict[str, np.ndarray]
"""Tensors by name, each with a batch axis."""

_LARGE = 1 << 16
"""Elements of a step's operands from which on it is long against a change of threads."""

HostOperator = Callable[[HostStep, Sequence[np.ndarray]], Sequence[np.ndarray]]
"""Runs a step of the host: from the step and its operands to its outputs."""


class Sample:
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


class StepRunner:
    """Runs steps over a device's memories.

    Parameters
    ----------
    program : Program
    operators : mapping of HostOperator by operator
        Steps of the host that these run, and not the kernels.
    started : callable
        Called before each run of the device.
    """

    def __init__(
        self,
        program: Program,
        operators: Mapping[str, HostOperator],
        started: Callable[[], object],
    ) -> None:
        self._program, self._operators, self._started = program, dict(operators), started
        self._graph = graph_of(program)

    def run(self, values: Values, memory: Memory, loaded: Loaded, steps: Sequence[Step]) -> Values:
        """Runs steps to their end; returns every tensor that the host saw.

        Parameters
        ----------
        values : dict of array
            Inputs by name, each with a batch axis; gains what steps make.
        memory : Memory
        loaded : Loaded
            What the memory holds.
        steps : sequence of Step
        """
        sample = Sample(values)
        self.walk(sample, memory, loaded, steps)
        sample.arrive()
        memory.settle()
        return sample.values

    def walk(self, sample: Sample, memory: Memory, loaded: Loaded, steps: Sequence[Step]) -> None:
        """Runs steps of a sample; downloads may still be on their way then."""
        number = 0
        while number < len(steps):
            step = steps[number]
            number += 1
            match step:
                case RunStep():
                    self._started()
                    memory.start(step)
                    for other in steps[number : number + step.overlapped]:
                        assert isinstance(other, Transfer)
                        self._transfer(other, sample, memory, loaded)
                    number += step.overlapped
                    memory.finish(step)
                case HostStep():
                    sample.arrive(step.inputs)
                    self.host(step, sample.values)
                case _:
                    self._transfer(step, sample, memory, loaded)

    def _transfer(self, step: Transfer, sample: Sample, memory: Memory, loaded: Loaded) -> None:
        values = sample.values
        if isinstance(step, UploadStep):
            sample.arrive((step.tensor,))
        match step:
            case LoadStep(load):
                if load not in loaded:
                    memory.load(self._program.loads[load])
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
        values[tensor] = flat.reshape(len(flat), *self._program.tensors[tensor].shape[1:])

    def _join(self, tensor: str, part: Part, download: Download, values: Values) -> None:
        """Puts a part into its tensor."""
        flat = download()
        if tensor not in values:
            shape = len(flat), *self._program.tensors[tensor].shape[1:]
            values[tensor] = np.zeros(shape, np.int8)
        place = part.placement
        box = flat.reshape(len(flat), place.height, place.width, place.channels)
        values[tensor].reshape(-1, *part.whole)[part.box] = box

    def _placement(self, tensor: str) -> Placement:
        described: TensorDescription = self._program.tensors[tensor]
        assert described.placement is not None
        return described.placement

    def host(self, step: HostStep, values: Values) -> None:
        """Runs a step of the host."""
        operands = [values[name] for name in step.inputs if name in values]
        own = self._operators.get(step.operator)
        run: HostOperator = self._kernel if own is None else own
        # a user's operator may wait for something; NumPy works beside other threads on large
        # arrays, and gives its lock away for a moment's work on small ones
        if own is not None or sum(each.size for each in operands) >= _LARGE:
            outputs = TURNS.wait(run, step, operands)
        else:
            outputs = run(step, operands)
        values.update(zip(step.outputs, outputs, strict=True))

    def _kernel(self, step: HostStep, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
        try:
            return kernels.run(node, self._graph, list(operands))
        except (SlipstickError, MemoryError):
            raise
        except Exception as error:
            # a program may come from a file, whose checks cannot foresee every kernel's
            raise ProgramError(
                f"program {self._program.name!r}: {step.operator} {step.name!r} failed:"
                f" {reason(error)}"
            ) from error
