"""Reference runtime, golden model and RTL held against each other, layer by layer."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

import numpy as np
from slipstick_rtl.config import Configuration

from ..compiler import compile_graph
from ..devices import open_device
from ..errors import InputError
from ..frontends import load
from ..frontends.semantics import with_semantics
from ..kernels.lns.codes import decode
from ..loading import compile_file
from ..program import Program
from ..program.steps import HostStep
from ..runtime.executor import Execution, Values
from ..runtime.feeds import dequantise, prepare
from .comparisons import CheckedTensor, Comparison, Tally
from .onnx_agreement import Agreement
from .references import open_references
from .single_layers import single_layers

__all__ = ["CheckedTensor", "Comparison", "Verifier"]

Advance = Callable[[int], None]
Progress = Callable[[str, int], Advance]

CHUNK = 16
"""Images whose every tensor is kept at a time."""

MOST_RANDOM_ELEMENTS = 1 << 28
"""Most elements of all inputs together: they are made at once."""


class Verifier:
    """Runs one network in every way and compares.

    The images of a network that keeps something from run to run follow each other in time; each
    comparison begins with the initial values on both sides.

    Layers are compared by a program of their own, compiled so that each layer's output comes back
    to the host; the network's outputs by the program that users run.

    Parameters
    ----------
    path : path
        A quantised .tflite or .onnx file.
    configuration : Configuration
    semantics : str, optional
        Whose rounding the network follows, "tflm" or "onnx"; by default that of the file's kind.

    Raises
    ------
    ModelError, UnsupportedError
        If it cannot be compiled.
    DeviceError
        If the reference runtime is missing or refuses the network.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        configuration: Configuration,
        semantics: str | None = None,
    ) -> None:
        self._configuration = configuration
        self.program = compile_file(path, configuration, semantics=semantics)
        self._graph = with_semantics(load(os.fspath(path)), semantics)
        self.inspected = compile_graph(self._graph, configuration, inspect=True)
        self._reference, self._runtime = open_references(path, semantics)
        self._logarithmic = configuration.logarithmic

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
                inputs[name] = self._random_reals(name, shape, generator)
            elif described.dtype == "bool":
                inputs[name] = generator.integers(0, 2, shape).astype(bool)
            elif described.dtype in ("int32", "int64") and self.program.semantics == "onnx":
                inputs[name] = generator.integers(0, self._rows(), shape, described.dtype)
            else:
                limits = np.iinfo(described.dtype)
                inputs[name] = generator.integers(
                    limits.min, limits.max, shape, dtype=described.dtype, endpoint=True
                )
        return inputs

    def _rows(self) -> int:
        """Rows of the smallest table that is looked up: whole numbers are places in such."""
        tables = [
            self.program.constants[step.inputs[0]].shape[0]
            for step in self.program.steps
            if isinstance(step, HostStep)
            and step.operator == "gather"
            and step.inputs[0] in self.program.constants
        ]
        return min(tables, default=2)

    def _random_reals(
        self, name: str, shape: tuple[int, ...], generator: np.random.Generator
    ) -> np.ndarray:
        """Draws from the numbers of all codes if the input is quantised first; else normal ones."""
        for step in self.program.steps:
            if isinstance(step, HostStep) and (step.operator, step.inputs) == ("quantize", (name,)):
                codes = self.program.tensors[step.outputs[0]]
                if self._logarithmic is not None and codes.scale is not None:
                    largest = self._logarithmic.lns.largest_code
                    drawn = generator.integers(-largest, largest, shape, endpoint=True)
                    return decode(drawn, codes.scale, self._logarithmic).astype(np.float32)
                limits = np.iinfo(codes.dtype)
                drawn = generator.integers(limits.min, limits.max, shape, endpoint=True)
                return dequantise(drawn, codes).astype(np.float32)
        return generator.normal(size=shape).astype(np.float32)

    def check(
        self,
        feeds: Mapping[str, np.ndarray],
        progress: Progress,
        *,
        rtl: bool = True,
        layer_limit: int = 20,
        rtl_layers: Sequence[str] = (),
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
        rtl_layers : sequence of str
            The RTL runs only these layers, each on the golden model's inputs of it; by default all.

        Returns
        -------
        list of CheckedTensor
            The layers in order, the variables, then the outputs.
        """
        inputs = prepare(self.program, feeds)
        singles = single_layers(self._graph, self._configuration, rtl_layers if rtl else ())
        count = _count(inputs)
        layers, outputs = Tally(), Tally()
        for program, tally, title in (
            (self.inspected, layers, "every layer"),
            (self.program, outputs, "outputs"),
        ):
            advance = progress(f"golden model against the reference, {title}", count)
            self._reference.reset_state()
            with closing(open_device("model", self._configuration)) as device:
                golden = Execution(program, device, every=True).infer_batch
                _compare(tally.reference, inputs, self._run_reference, golden, advance)
        self._check_runtime(inputs, layers, outputs, progress)
        shown = {name: value[:layer_limit] for name, value in inputs.items()}
        if singles:
            self._check_single_layers(shown, singles, layers, progress)
            rtl = False
        for program, tally, images in (
            (self.inspected, layers, shown),
            (self.program, outputs, inputs),
        ):
            if rtl and _count(images):
                what = "every layer" if images is shown else "outputs"
                advance = progress(f"RTL against the golden model, {what}", _count(images))
                self._check_rtl(program, images, tally, advance)
        lines = [
            layers.checked(
                (layer.name, layer.operator, layer.where, layer.output),
                self._agreement(layer.output),
            )
            for layer in self.inspected.layers
        ]
        lines += [
            layers.checked((each.name, "variable", "host", each.source))
            for each in self.inspected.variables
        ]
        return lines + [
            outputs.checked((name, "output", "device", name)) for name in self.program.outputs
        ]

    @property
    def saturating(self) -> tuple[str, ...]:
        """Nodes that the runtime may compute wrongly on this machine."""
        return () if self._runtime is None else self._runtime.saturating

    def _agreement(self, tensor: str) -> Agreement | None:
        return None if self._runtime is None else self._runtime.agreements.get(tensor)

    def _check_runtime(
        self, inputs: Values, layers: Tally, outputs: Tally, progress: Progress
    ) -> None:
        if self._runtime is None:
            return
        other = "tflm" if self.program.semantics == "tflm" else "onnxruntime"
        other = other if self._logarithmic is None else "exact results"
        advance = progress(f"rule against {other}", _count(inputs))
        self._reference.reset_state()
        for part in _chunks(inputs):
            images = _count(part)

            def note(
                name: str, wanted: np.ndarray, actual: np.ndarray, count: int = images
            ) -> None:
                before = layers.runtime.get(name, Comparison(0, 0))
                layers.runtime[name] = before.plus(count, wanted, actual)

            shown = self._runtime.differences(part, note)
            rule, optimised = self._run_reference(part), self._runtime.optimised_outputs(part)
            for tally, one, other in (
                (outputs.runtime, shown, rule),
                (outputs.optimised, shown, optimised),
                (outputs.rule_optimised, optimised, rule),
            ):
                for name in one.keys() & other.keys() & set(self.program.outputs):
                    before = tally.get(name, Comparison(0, 0))
                    tally[name] = before.plus(images, one[name], other[name])
            advance(images)

    def _check_single_layers(
        self,
        images: Values,
        programs: Sequence[tuple[str, Program]],
        tally: Tally,
        progress: Progress,
    ) -> None:
        """Some layers on the RTL, on what the golden model gives them."""
        with closing(open_device("model", self._configuration)) as model:
            values = {**images, **Execution(self.inspected, model, every=True).infer_batch(images)}
        for name, program in programs:
            part = {source: values[source] for source in program.inputs}
            advance = progress(f"RTL against the golden model, {name}", _count(images))
            self._check_rtl(program, part, tally, advance, program.outputs)

    def _check_rtl(
        self,
        program: Program,
        images: Values,
        tally: Tally,
        advance: Advance,
        wanted: tuple[str, ...] | None = None,
    ) -> None:
        with (
            closing(open_device("model", self._configuration)) as model,
            closing(open_device("sim", self._configuration)) as simulation,
        ):
            golden, device = (
                partial(Execution(program, own, every=True).infer_batch, wanted=wanted)
                for own in (model, simulation)
            )
            _compare(tally.rtl, images, golden, device, advance)

    def _run_reference(self, inputs: Values) -> Values:
        # an output may be no operator's, but an input itself
        layers = self._reference.run_layers(*(inputs[name] for name in self._reference.inputs))
        return {**inputs, **layers}


def _count(values: Values) -> int:
    return len(next(iter(values.values())))


def _chunks(inputs: Values) -> Iterator[Values]:
    for start in range(0, _count(inputs), CHUNK):
        yield {name: value[start : start + CHUNK] for name, value in inputs.items()}


def _compare(
    found: dict[str, Comparison],
    inputs: Values,
    wanted: Callable[[Values], Values],
    run: Callable[[Values], Values],
    advance: Advance,
) -> None:
    """Adds up the differences between two ways to run, some images at a time."""
    for part in _chunks(inputs):
        expected, actual = wanted(part), run(part)
        for name in expected.keys() & actual.keys():
            before = found.get(name, Comparison(0, 0))
            found[name] = before.plus(_count(part), expected[name], actual[name])
        advance(_count(part))
