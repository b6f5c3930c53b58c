"""Damaged TFLite files: read, compiled, run on the golden model, and held against tflm."""

import dataclasses
import math
import random
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...compiler import compile_graph
from ...errors import DeviceError, SlipstickError
from ...frontends.tflite import load_tflite_bytes
from ...frontends.tflite.legacy import legacy_tensors
from ...frontends.tflite.options import options as known_options
from ...frontends.tflite.reader import RawModel, RawOperator, RawTensor, read_model
from ...graph import Graph
from ...kernels import run_graph
from ...session import InferenceSession
from ...targets import find_target
from ..isolation import run_apart
from ..references import library_tensors
from ..tflm_reference import TflmReference
from .damage import damaged_bytes, other_real, other_shape, other_whole
from .outcomes import EQUAL, READ, UNKNOWN, Parser, WrongResultError
from .tflite_seeds import tflite_networks
from .tflite_tables import CODES, TYPES, write_model

LARGEST = 1 << 14
"""Elements of networks that are run as well."""
TARGET = "sim-small"
_COMPILED = 0.25
"""Share of the accepted files that are compiled."""
WHOLE_NUMBERS = frozenset(
    name for name in TYPES if name.startswith("int") and name in np.sctypeDict
)
"""The schema's signed types that NumPy has as well."""


@cache
def tflite_seeds() -> tuple[bytes, ...]:
    """Small networks of every operator."""
    return tuple(write_model(model) for model in tflite_networks())


def mutate_tflite(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other bytes, or other entries of the tables."""
    if pick.random() < 0.35:
        return damaged_bytes(pick, data, files)
    model = read_model(data, "seed")
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        model = _mutated(pick, model)
    try:
        return write_model(model)
    # what no field of the schema can hold is damaged otherwise
    except (struct.error, TypeError, OverflowError, AssertionError, ValueError):
        return damaged_bytes(pick, data, files)


def _mutated(pick: random.Random, model: RawModel) -> RawModel:
    way = pick.random()
    if way < 0.5:
        place = pick.randrange(len(model.tensors))
        tensors = list(model.tensors)
        tensors[place] = _other_tensor(pick, tensors[place])
        return dataclasses.replace(model, tensors=tuple(tensors))
    if way < 0.9:
        place = pick.randrange(len(model.operators))
        operators = list(model.operators)
        operators[place] = _other_operator(pick, operators[place], len(model.tensors))
        return dataclasses.replace(model, operators=tuple(operators))
    if way < 0.95:
        return dataclasses.replace(model, inputs=_other_indices(pick, model.inputs, model))
    return dataclasses.replace(model, outputs=_other_indices(pick, model.outputs, model))


def _other_indices(
    pick: random.Random, indices: tuple[int, ...], model: RawModel | int
) -> tuple[int, ...]:
    count = model if isinstance(model, int) else len(model.tensors)
    made = list(indices)
    way = pick.random()
    if made and way < 0.3:
        del made[pick.randrange(len(made))]
    elif way < 0.5:
        made.insert(pick.randint(0, len(made)), pick.randrange(count))
    elif made:
        made[pick.randrange(len(made))] = pick.choice((-1, count, pick.randrange(count)))
    return tuple(made)


def _other_tensor(pick: random.Random, item: RawTensor) -> RawTensor:
    way = pick.random()
    if way < 0.45:
        same = item.data is not None and pick.random() < 0.8
        return dataclasses.replace(item, shape=other_shape(pick, item.shape, same_size=same))
    if way < 0.55:
        return dataclasses.replace(item, dtype=pick.choice(tuple(TYPES)))
    if way < 0.65:
        return dataclasses.replace(item, scales=_other_reals(pick, item.scales))
    if way < 0.75:
        points = [other_whole(pick, int(value)) for value in item.zero_points] or [5]
        return dataclasses.replace(item, zero_points=np.array(points, np.int64))
    if way < 0.8:
        return dataclasses.replace(item, axis=pick.choice((0, 1, 2, 3, 4, -1, 1 << 30)))
    if way < 0.85:
        size = len(item.data) if item.data is not None else math.prod(item.shape[:4]) & 0xFFFF
        data = np.frombuffer(pick.randbytes(max(size, 1)), np.uint8)
        return dataclasses.replace(item, data=data if item.data is None else None)
    # some of the schema's types have no NumPy type: strings, 4-bit integers
    if item.data is not None and item.dtype in WHOLE_NUMBERS:
        kind = np.dtype(item.dtype)
        if len(item.data) % kind.itemsize == 0:
            values = item.data.view(kind).copy()
            limits = np.iinfo(kind)
            place = pick.randrange(len(values))
            changed = other_whole(pick, int(values[place]))
            values[place] = min(max(changed, int(limits.min)), int(limits.max))
            return dataclasses.replace(item, data=values.view(np.uint8))
    return dataclasses.replace(item, scales=np.zeros(0, np.float32))


def _other_reals(pick: random.Random, values: np.ndarray) -> np.ndarray:
    made = [float(value) for value in values] or [0.5]
    way = pick.random()
    if way < 0.2:
        made = made * pick.choice((2, 3, 4))
    else:
        place = pick.randrange(len(made))
        made[place] = other_real(pick, made[place])
    with np.errstate(all="ignore"):
        return np.array(made, np.float64).astype(np.float32)


def _other_operator(pick: random.Random, item: RawOperator, tensors: int) -> RawOperator:
    way = pick.random()
    if way < 0.3:
        return dataclasses.replace(item, inputs=_other_indices(pick, item.inputs, tensors))
    if way < 0.35:
        return dataclasses.replace(item, outputs=_other_indices(pick, item.outputs, tensors))
    if way < 0.45:
        known = pick.choice((tuple(known_options()), tuple(CODES)))
        return dataclasses.replace(item, name=pick.choice(known))
    options: dict[str, Any] = dict(item.options)
    if options:
        name = pick.choice(tuple(options))
        value = options[name]
        if isinstance(value, float):
            options[name] = other_real(pick, value)
        elif isinstance(value, bool):
            options[name] = not value
        else:
            options[name] = pick.choice((0, 1, 2, 3, 4, 5, -1, other_whole(pick, int(value))))
    return dataclasses.replace(item, options=options)


def check_tflite(data: bytes, pick: random.Random) -> str:
    """Reads a file; what is small enough is run, by the kernels and on the golden model."""
    graph = load_tflite_bytes(data, "fuzzed")
    if not is_small(graph):
        return READ
    rng = np.random.default_rng(pick.getrandbits(32))
    inputs = [random_input(rng, graph, name) for name in graph.inputs]
    with np.errstate(all="ignore"):
        values = run_graph(graph, inputs)
    check_described(graph, values)
    wanted = [values[name] for name in graph.outputs]
    if pick.random() < _COMPILED:
        check_compiled(graph, inputs, wanted)
    if legacy_tensors(read_model(data, "fuzzed")) or _deviates(graph):
        return READ
    reference = run_apart(lambda: _reference(data, inputs))
    if reference is None:
        return UNKNOWN
    for name, value, expected in zip(graph.outputs, wanted, reference, strict=True):
        check_equal(f"output {name}, to tflm", value.reshape(-1), expected.reshape(-1))
    return EQUAL


def _deviates(graph: Graph) -> bool:
    """Tells whether a result is documented not to be tflm's.

    It is a table's (``activation_table``), or comes of a C library's function.
    """
    if library_tensors(graph):
        return True
    for node in graph.nodes:
        names = (*node.inputs, *node.outputs)
        ends = [graph.tensors[name].quantization for name in names if name]
        if node.operator in ("relu6", "hard_swish") and None not in ends:
            (scale, zero), (other, point) = (
                (float(item.scale[0]), int(item.zero_point[0])) for item in ends if item is not None
            )
            differs = (scale, zero) != (other, point)
            if differs if node.operator == "relu6" else other > 512 * scale:
                return True
    return False


def _reference(data: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    try:
        return TflmReference(data).run(*inputs)
    except (DeviceError, RuntimeError, ValueError):
        return None


def is_small(graph: Graph, largest: int = LARGEST) -> bool:
    """Tells whether a graph takes milliseconds to run."""
    total = sum(math.prod(tensor.shape) for tensor in graph.tensors.values())
    return total < largest


def random_input(rng: np.random.Generator, graph: Graph, name: str) -> np.ndarray:
    """Numbers of an input's type and shape."""
    tensor = graph.tensors[name]
    kind = np.dtype(tensor.dtype)
    if kind.kind == "f":
        return rng.normal(0, 3, tensor.shape).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, tensor.shape).astype(kind)
    limits = np.iinfo(kind)
    high = 1 if kind.itemsize > 1 else int(limits.max)
    low = 0 if kind.itemsize > 1 else int(limits.min)
    return rng.integers(low, high + 1, tensor.shape).astype(kind)


def check_described(graph: Graph, values: dict[str, np.ndarray]) -> None:
    """WrongResultError unless every tensor is as the graph describes it."""
    for name, value in values.items():
        tensor = graph.tensors[name]
        if (value.dtype, value.shape[1:]) != (np.dtype(tensor.dtype), tensor.shape[1:]):
            raise WrongResultError(
                f"tensor {name} is {value.dtype} of {value.shape}, not {tensor.dtype} of"
                f" {tensor.shape}"
            )


def check_compiled(
    graph: Graph, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
) -> None:
    """WrongResultError unless the golden model gives what the kernels do."""
    try:
        program = compile_graph(graph, find_target(TARGET).configuration)
    except SlipstickError:
        return
    with InferenceSession(program, "model") as session:
        feeds = dict(zip(graph.inputs, inputs, strict=True))
        with np.errstate(all="ignore"):
            made = session.run(None, feeds)
    for name, value, expected in zip(graph.outputs, made, wanted, strict=True):
        check_equal(f"output {name}, golden model to kernels", value, expected)


def check_equal(what: str, value: np.ndarray, expected: np.ndarray) -> None:
    """WrongResultError unless two arrays are the same, NaN included."""
    if not np.array_equal(value, expected, equal_nan=value.dtype.kind == "f"):
        count = np.sum(value != expected) if value.shape == expected.shape else expected.size
        raise WrongResultError(f"{what}: {count} of {expected.size} differ")


TFLITE = Parser(name="tflite", seeds=tflite_seeds, mutate=mutate_tflite, check=check_tflite)
