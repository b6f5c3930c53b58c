"""Checks that a program from a file can be run: what each step reads, does and leaves.

``Program`` checks its parts as it is made; here are the checks that only a stranger's file needs.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    INSTRUCTION_BITS,
    STREAMS,
    WORDS_PER_INSTRUCTION,
    Field,
    Opcode,
    opcode_of,
    unpack,
)
from slipstick_rtl.link.protocol import Space

from ..errors import ProgramError, SlipstickError
from ..graph import Graph, Node, Tensor
from ..kernels.attribute_rules import check_node
from ..kernels.dispatch import kernels_of, run
from . import Program
from .alternate import Alternate
from .steps import DownloadStep, HostStep, Image, LoadStep, RunStep, Step, UploadStep, require

LARGEST_BYTES = 1 << 29
"""Most bytes of all the tensors that a host holds in one inference."""
_MOST_STEPS = 1 << 20
_TRIED = 1 << 20
"""Numbers that a host step may read, make and go over for it to be tried."""
_WORD_BYTES = 4


def check_program(program: Program) -> None:
    """Checks every step of a program.

    Raises
    ------
    ProgramError
        If a step reads what no step before it has made, an operator or an attribute is none, its
        kernel refuses its tensors, or a stream of instructions is none.
    """
    where = f"program {program.name!r}"
    graph = graph_of(program)
    for name, tensor in program.tensors.items():
        require(
            tensor.shape[:1] == (1,) or tensor.shape == (),
            f"{where}: tensor {name!r} must have a batch of 1 in front, not {tensor.shape}",
        )
    held = sum(
        math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
        for tensor in program.tensors.values()
    )
    require(held <= LARGEST_BYTES, f"{where}: tensors must be {LARGEST_BYTES} bytes, not {held}")
    count = len(program.steps) + sum(map(len, program.units))
    require(count <= _MOST_STEPS, f"{where}: steps must be at most {_MOST_STEPS}, not {count}")
    orders = [program.steps]
    if program.units:
        orders.append(tuple(step for unit in program.units for step in unit))
    _check_ends(program, where)
    for name, tensor in program.constants.items():
        _check_constant(tensor, f"{where}: constant {name!r}")
    for steps in orders:
        _check_order(program, steps, where)
        _check_streams(program, steps, where)
    tried: set[int] = set()
    for step in (step for steps in orders for step in steps):
        if isinstance(step, HostStep) and id(step) not in tried:
            tried.add(id(step))
            _check_host_step(step, graph, where)


def graph_of(program: Program) -> Graph:
    """A program's tensors, as the host's kernels take them."""
    tensors = {name: tensor.as_tensor(name) for name, tensor in program.tensors.items()}
    return Graph(
        program.name,
        program.inputs,
        program.outputs,
        {**tensors, **program.constants},
        (),
        program.semantics,
    )


def _check_ends(program: Program, where: str) -> None:
    for what, names in (("input", program.inputs), ("output", program.outputs)):
        good = bool(names) and len(set(names)) == len(names)
        require(good, f"{where}: {what}s must be different ones, not {names}")
        for name in names:
            require(name in program.tensors, f"{where}: {what} {name!r} must be described")
    both = set(program.tensors) & set(program.constants)
    require(not both, f"{where}: {sorted(both)} must be tensors or constants, not both")
    require("" not in program.constants, f"{where}: a constant must have a name")


def _check_constant(tensor: Tensor, what: str) -> None:
    data, quantization = tensor.data, tensor.quantization
    require(data is not None, f"{what} must have data")
    if data is not None:
        good = (data.dtype.name, data.shape) == (tensor.dtype, tensor.shape)
        require(good, f"{what} must be {tensor.dtype} of {tensor.shape}, not {data.dtype}")
    if quantization is None:
        return
    scale, point, axis = quantization.scale, quantization.zero_point, quantization.axis
    good = scale.dtype == np.float64 and point.dtype == np.int64 and scale.ndim == point.ndim == 1
    require(good, f"{what} must have lists of float64 scales and int64 zero points")
    require(0 < len(scale) == len(point), f"{what} must have as many zero points as scales")
    finite = bool(np.isfinite(scale).all() and (scale > 0).all())
    require(finite, f"{what} must have finite scales above 0")
    along = axis is not None and 0 <= axis < len(tensor.shape)
    good = len(scale) == 1 or (along and len(scale) == tensor.shape[axis or 0])
    require(good, f"{what} must have a scale an element of axis {axis}, not {len(scale)}")


def _check_order(program: Program, steps: Sequence[Step], where: str) -> None:
    """Whatever is read was made before."""
    made = {*program.inputs, *(variable.source for variable in program.variables)}
    for number, step in enumerate(steps):
        what = f"{where}: step {number}"
        if isinstance(step, UploadStep):
            require(step.tensor in made, f"{what} uploads {step.tensor!r} before it is made")
        elif isinstance(step, DownloadStep):
            made.add(step.tensor)
        elif isinstance(step, HostStep):
            for name in filter(None, step.inputs):
                known = name in made or name in program.constants
                require(known, f"{what} ({step.operator}) reads {name!r} before it is made")
            good = bool(step.outputs) and all(name in program.tensors for name in step.outputs)
            require(good, f"{what} ({step.operator}) must write tensors, not {step.outputs}")
            made.update(step.outputs)
    for name in program.outputs:
        require(name in made, f"{where}: no step makes the output {name!r}")
    for variable in program.variables:
        # the device leaves what is resident where it is read
        known = variable.result in made or variable.source in program.resident
        require(known, f"{where}: no step makes {variable.result!r}, which is kept")


def _check_host_step(step: HostStep, graph: Graph, where: str) -> None:
    what = f"{where}: {step.operator} {step.name!r}"
    known = step.operator in kernels_of(graph.semantics)
    require(known, f"{what}: there is no such operator in the semantics {graph.semantics}")
    node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
    try:
        check_node(node, graph.tensors)
    except SlipstickError as error:
        raise ProgramError(f"{what}: {error}") from None
    if _work(node, graph) <= _TRIED:
        _try(node, graph, what)


def _work(node: Node, graph: Graph) -> int:
    """About how many numbers a kernel goes over."""
    tensors = [graph.tensors[name] for name in (*node.inputs, *node.outputs) if name]
    most = max(math.prod(tensor.shape) for tensor in tensors)
    window = math.prod(node.attributes.get("window", ()))
    weights = math.prod(tensors[1].shape) if len(tensors) > 2 else 1
    return most * max(window, weights if node.operator != "lookup" else 1, 1)


def _try(node: Node, graph: Graph, what: str) -> None:
    """Runs a host step on zeros: its kernel is the judge of what its tensors must be."""
    tensors = [graph.tensors[name] for name in node.inputs if name]
    zeros = [np.zeros(t.shape, t.dtype) for t in tensors if t.data is None]
    try:
        with np.errstate(all="ignore"):
            results = run(node, graph, zeros)
    except SlipstickError as error:
        raise ProgramError(f"{what}: {error}") from None
    except Exception as error:
        # a kernel trusts the compiler, and a forged program may break any of its assumptions
        raise ProgramError(f"{what} must suit its tensors: {reason(error)}") from None
    good = len(results) == len(node.outputs)
    require(good, f"{what} makes {len(results)} tensors, not {len(node.outputs)}")
    for name, made in zip(node.outputs, results, strict=True):
        output = graph.tensors[name]
        good = (made.dtype.name, made.shape) == (output.dtype, output.shape)
        require(
            good, f"{what} makes {made.dtype} of {made.shape}, not {output.dtype} {output.shape}"
        )


def reason(error: Exception) -> str:
    """An unforeseen exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}, {text:.200}" if text else type(error).__name__


class _Streams:
    """The instruction memory as the steps leave it, and what its streams hold."""

    def __init__(self, configuration: Configuration) -> None:
        self._memory = bytearray(configuration.instruction_words * _WORD_BYTES)
        self._lengths: dict[tuple[int, str], int | str] = {}

    def write(self, image: Image) -> None:
        if image.space == Space.INSTRUCTIONS:
            start = image.address * _WORD_BYTES
            self._memory[start : start + len(image.data)] = image.data
            self._lengths.clear()

    def length(self, pc: int, stream: str) -> int | str:
        """Instructions to the stream's HALT, turns counted; or what is wrong with it."""
        key = pc, stream
        if key not in self._lengths:
            self._lengths[key] = self._walk(pc, stream)
        return self._lengths[key]

    def instructions(self, pc: int, stream: str) -> list[dict[str, int]]:
        """The fields of a stream's instructions, its HALT left out; ``length`` is a number."""
        found, size, fields = [], INSTRUCTION_BITS // 8, STREAMS[stream].fields
        for start in itertools.count(pc * _WORD_BYTES, size):
            data = bytes(self._memory[start : start + size])
            if opcode_of(data) == Opcode.HALT:
                return found
            found.append(unpack(fields, data))
        return found

    def _walk(self, pc: int, stream: str) -> int | str:
        count, word = 0, pc
        known, repeats = STREAMS[stream].opcodes, _REPEATS[stream]
        while True:
            start = word * _WORD_BYTES
            data = bytes(self._memory[start : start + INSTRUCTION_BITS // 8])
            if len(data) * 8 < INSTRUCTION_BITS:
                return "must end before the memory does"
            opcode = opcode_of(data)
            if opcode not in known:
                return f"must have known opcodes, not {opcode} at word {word}"
            if opcode == Opcode.HALT:
                return count
            repeated = opcode in (Opcode.CONVOLVE, Opcode.DRAIN)
            turns = int.from_bytes(data, "little") >> repeats & 0xFF if repeated else 0
            count += turns + 1
            word += WORDS_PER_INSTRUCTION


def _place(fields: Mapping[str, Field], wanted: str) -> int:
    """The first bit of a field."""
    names = list(fields)
    return sum(fields[name].width for name in names[: names.index(wanted)])


_REPEATS = {name: _place(kind.fields, "repeats") for name, kind in STREAMS.items()}


def _check_streams(program: Program, steps: Sequence[Step], where: str) -> None:
    """Every run's streams end, of known instructions, as many as their layers have."""
    streams = _Streams(program.hardware)
    for image in program.images:
        streams.write(image)
    for number, step in enumerate(steps):
        if isinstance(step, LoadStep):
            streams.write(program.loads[step.load])
        elif isinstance(step, RunStep):
            for name, pc, wanted in zip(STREAMS, step.pcs, step.instructions, strict=True):
                found = streams.length(pc, name)
                what = f"{where}: step {number}: the {name} stream"
                require(isinstance(found, int), f"{what} at word {pc} {found}")
                require(found == wanted, f"{what} must hold {wanted} instructions, not {found}")
            if program.alternate is not None:
                _check_copy(program, streams, step, program.alternate, where)


def _check_copy(
    program: Program, streams: _Streams, step: RunStep, alternate: Alternate, where: str
) -> None:
    """The second copy of the instructions does what the first one does, in the second place."""
    moves = {0}
    for name, second in alternate.placements.items():
        first = program.tensors[name].placement
        moves |= set() if first is None else {second.address - first.address}
    pairs = {one - other for one, other in itertools.product(moves, repeat=2)}
    for name, pc, copy in zip(STREAMS, step.pcs, alternate.pcs, strict=True):
        what = f"{where}: the second copy of the {name} stream"
        found = streams.length(copy, name)
        require(isinstance(found, int), f"{what} at word {copy} {found}")
        firsts, seconds = streams.instructions(pc, name), streams.instructions(copy, name)
        require(len(firsts) == len(seconds), f"{what} must be {len(firsts)}, not {len(seconds)}")
        for number, (one, other) in enumerate(zip(firsts, seconds, strict=True)):
            for field, value in one.items():
                allowed = moves if field in _MOVING else pairs if field == _APART else {0}
                good = other[field] - value in allowed
                wrong = f"{what}: instruction {number} has {field} {other[field]}, not {value}"
                require(good, f"{wrong}, nor that in the second place")


_MOVING = ("origin", "source", "destination")
"""Fields that are addresses of activations."""
_APART = "tap_step_x"
"""Field of a MAP of two operands that tells how far the second lies behind the first."""
