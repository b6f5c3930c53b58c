"""Reference runtime, golden model and RTL held against each other, layer by layer."""

import math
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration

from .devices import open_device
from .errors import InputError
from .execution import Execution, Values
from .feeds import prepare
from .loading import compile_file
from .program import Program
from .reference import TflmReference

Advance = Callable[[int], None]
Progress = Callable[[str, int], Advance]

CHUNK = 16
"""Images whose every tensor is kept at a time."""

MOST_RANDOM_ELEMENTS = 1 << 28
"""Of all inputs together: they are made at once."""


@dataclass(frozen=True)
class Comparison:
    """Elements that differ, over all images that were compared."""

    images: int
    mismatches: int


@dataclass(frozen=True)
class CheckedTensor:
    """A layer, or an output of the whole network.

    Parameters
    ----------
    layer, operator, where : str
        ``operator`` is "output" for the network's outputs, run by the ordinary program.
    tensor : str
    reference : Comparison or None
        The golden model against the reference; None where that has no such tensor.
    rtl : Comparison or None
        The compiled RTL against the golden model; None where it was not asked for.
    """

    layer: str
    operator: str
    where: str
    tensor: str
    reference: Comparison | None
    rtl: Comparison | None

    @property
    def mismatches(self) -> int:
        """All differing elements."""
        return sum(part.mismatches for part in (self.reference, self.rtl) if part is not None)


class Verifier:
    """Runs one network in every way and compares.

    Layers are compared by a program of their own, compiled so that each layer's output comes back
    to the host; the network's outputs by the program that users run.

    Parameters
    ----------
    path : path
        An int8 .tflite file.
    configuration : Configuration

    Raises
    ------
    ModelError, UnsupportedError, CapacityError
        If it cannot be compiled.
    DeviceError
        If the reference runtime is missing or refuses the network.
    """

    def __init__(self, path: str | os.PathLike[str], configuration: Configuration) -> None:
        self._configuration = configuration
        self.program = compile_file(path, configuration)
        self.inspected = compile_file(path, configuration, inspect=True)
        self._reference = TflmReference(os.fspath(path))

    def random_inputs(self, count: int, seed: int) -> Values:
        """Seeded random inputs over the whole range of their types; InputError if too many."""
        shapes = [self.program.tensors[name].shape[1:] for name in self.program.inputs]
        most = MOST_RANDOM_ELEMENTS // max(1, sum(math.prod(shape) for shape in shapes))
        if count > most:
            raise InputError(f"random inputs must be at most {most}, not {count}")
        generator = np.random.default_rng(seed)
        inputs = {}
        for name in self.program.inputs:
            described = self.program.tensors[name]
            shape = (count, *described.shape[1:])
            if described.dtype.startswith("float"):
                inputs[name] = generator.normal(size=shape).astype(described.dtype)
            elif described.dtype == "bool":
                inputs[name] = generator.integers(0, 2, shape).astype(bool)
            else:
                limits = np.iinfo(described.dtype)
                inputs[name] = generator.integers(
                    limits.min, limits.max, shape, dtype=described.dtype, endpoint=True
                )
        return inputs

    def check(
        self,
        feeds: Mapping[str, np.ndarray],
        progress: Progress,
        *,
        rtl: bool = True,
        layer_limit: int = 20,
    ) -> list[CheckedTensor]:
        """Compares all tensors.

        Parameters
        ----------
        feeds : mapping of array by input name
            As for ``InferenceSession.run``, with a batch.
        progress : callable
            Given what is being done and how many images there are, returns what is told of each.
        rtl : bool
            Whether the compiled RTL runs too: all images through the ordinary program, the first
            ``layer_limit`` through the one that shows every layer.
        layer_limit : int

        Returns
        -------
        list of CheckedTensor
            The layers in order, then the outputs.
        """
        inputs = prepare(self.program, feeds)
        count = _count(inputs)
        layers, outputs = _Tally(), _Tally()
        for program, tally, title in (
            (self.inspected, layers, "every layer"),
            (self.program, outputs, "outputs"),
        ):
            advance = progress(f"golden model against the reference, {title}", count)
            with closing(open_device("model", self._configuration)) as device:
                golden = Execution(program, device).infer_batch
                _compare(tally.reference, inputs, self._run_reference, golden, advance)
        shown = {name: value[:layer_limit] for name, value in inputs.items()}
        for program, tally, images in (
            (self.inspected, layers, shown),
            (self.program, outputs, inputs),
        ):
            if rtl and _count(images):
                what = "every layer" if images is shown else "outputs"
                advance = progress(f"RTL against the golden model, {what}", _count(images))
                self._check_rtl(program, images, tally, advance)
        lines = [
            CheckedTensor(
                layer.name, layer.operator, layer.where, layer.output, *layers.of(layer.output)
            )
            for layer in self.inspected.layers
        ]
        return lines + [
            CheckedTensor(name, "output", "device", name, *outputs.of(name))
            for name in self.program.outputs
        ]

    def _check_rtl(
        self, program: Program, images: Values, tally: "_Tally", advance: Advance
    ) -> None:
        with (
            closing(open_device("model", self._configuration)) as model,
            closing(open_device("sim", self._configuration)) as simulation,
        ):
            golden = Execution(program, model).infer_batch
            device = Execution(program, simulation).infer_batch
            _compare(tally.rtl, images, golden, device, advance)

    def _run_reference(self, inputs: Values) -> Values:
        # an output may be no operator's, but an input itself
        layers = self._reference.run_layers(*(inputs[name] for name in self._reference.inputs))
        return {**inputs, **layers}


class _Tally:
    """Comparisons by tensor, of both links of the chain."""

    def __init__(self) -> None:
        self.reference: dict[str, Comparison] = {}
        self.rtl: dict[str, Comparison] = {}

    def of(self, tensor: str) -> tuple[Comparison | None, Comparison | None]:
        """A tensor's, None where it was not compared."""
        return self.reference.get(tensor), self.rtl.get(tensor)


def _count(values: Values) -> int:
    return len(next(iter(values.values())))


def _compare(
    found: dict[str, Comparison],
    inputs: Values,
    wanted: Callable[[Values], Values],
    run: Callable[[Values], Values],
    advance: Advance,
) -> None:
    """Adds up the differences between two ways to run, some images at a time."""
    for start in range(0, _count(inputs), CHUNK):
        part = {name: value[start : start + CHUNK] for name, value in inputs.items()}
        expected, actual = wanted(part), run(part)
        for name in expected.keys() & actual.keys():
            before = found.get(name, Comparison(0, 0))
            found[name] = Comparison(
                before.images + _count(part),
                before.mismatches + _differing(expected[name], actual[name]),
            )
        advance(_count(part))


def _differing(wanted: np.ndarray, actual: np.ndarray) -> int:
    """Elements that differ; all of them where type or number do."""
    if wanted.dtype != actual.dtype or wanted.size != actual.size:
        return max(wanted.size, actual.size)
    return int((wanted.reshape(-1) != actual.reshape(-1)).sum())
