"""Names the decisions that the compiler took, read back from the program that it made."""

import itertools
import math
from collections.abc import Iterator

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MapFlag, Opcode

from ...compiler.partition.offload import REASON
from ...graph import Graph
from ...passes import optimize
from ...profile.executed import Executed, ExecutedRun, executed_runs
from ...program import Program
from ...program.steps import DownloadStep, HostStep, LoadStep, RunStep, UploadStep

DECISIONS = {
    "layout: taps packed": "lanes run over all taps of the kernel",
    "layout: rows aligned": "each kernel row begins a new tile of the reduction",
    "layout: taps aligned": "each tap begins a new tile of the reduction",
    "layout: row merged": "the kernel covers the row: a row of pixels counts as one tap",
    "layout: pixels folded": "several output pixels are computed as channels of one",
    "layout: dual vectors": "a half-filled tile takes two vectors per cycle",
    "layout: dual vectors, even taps": "the same, with an even number of taps",
    "layout: diagonal": "depthwise: weights on the array's diagonal",
    "layout: sliding kernel": "depthwise: a 3 x 3 kernel slides within each column",
    "layout: sliding, rows kept": "the same; an input row is kept for the next block",
    "layout: sliding, shared column": "the same; one padding column serves two blocks",
    "layout: sliding, strided": "the same, with a stride",
    "layout: depthwise split": "depthwise of few channels: both halves of the image at once",
    "layout: whole words": "channels fill the words of the activation memory",
    "layout: parity-bit weights": "weights lie in the ninth bits of the weight memory",
    "tiling: reduction tiles": "a reduction takes several tiles",
    "tiling: channel tiles": "a layer's output channels take several tiles",
    "tiling: row tiles": "a layer's output rows take several instructions",
    "tiling: several roundings": "channels of one layer are rounded in different ways",
    "tiling: reduction in parts": "sums are continued by a later instruction",
    "tiling: turns": "one instruction repeats over channel tiles",
    "tiling: banks in parts": "accumulator banks are divided",
    "fusion: layers interleaved": "instructions of two layers take turns",
    "fusion: map beside convolution": "a post-processor layer runs while a convolution does",
    "fusion: function of results": "a layer's results go through a table as they come out",
    "map: pool": "windows of several taps",
    "map: maximum": "taps are compared",
    "map: sum of two": "two tensors, through two tables",
    "map: product": "two tensors, multiplied",
    "map: table": "a function of one code",
    "map: copy": "a plain copy",
    "offload: layer on the host": "a layer runs on the host",
    "offload: weights left out": "small layers run on the host to make room for weights",
    "streaming: loads": "weights or instructions are loaded during an inference",
    "streaming: several runs": "an inference takes several runs",
    "streaming: row stripes": "a tensor is moved in stripes of rows",
    "streaming: channel slices": "a tensor is moved in slices of channels",
    "streaming: column stripes": "a tensor is moved in stripes of columns",
    "streaming: transfers overlapped": "transfers run while the device computes",
    "streaming: partial sums": "a reduction is continued by a later run",
}
"""Every decision that is counted, with what it means."""


def possible(configuration: Configuration) -> frozenset[str]:
    """Returns the decisions that hardware of this configuration can take at all."""
    c, impossible = configuration, set[str]()
    if not c.takes_pairs:
        impossible |= {name for name in DECISIONS if "dual vectors" in name}
    if not c.takes_depthwise:
        impossible |= {name for name in DECISIONS if "sliding" in name or "depthwise split" in name}
    if not c.ninth_bits:
        impossible.add("layout: parity-bit weights")
    if not c.drain_tables:
        impossible.add("fusion: function of results")
    if not c.products:
        impossible.add("map: product")
    if not c.traits.overlaps_streams:
        impossible |= {"tiling: turns", "tiling: banks in parts", "layout: pixels folded"}
    if c.tile_words > c.columns:
        impossible.add("layout: diagonal")
    return frozenset(DECISIONS) - impossible


def decisions(program: Program, graph: Graph) -> frozenset[str]:
    """Returns the decisions that a program shows.

    Parameters
    ----------
    program : Program
    graph : Graph
        The network that it was compiled from.
    """
    runs = executed_runs(program)
    shapes = _kernels(optimize(graph))
    found = set(_of_steps(program))
    for run in runs:
        found |= set(_of_run(program, run))
        for instruction in run.matrix:
            found |= set(_of_convolve(program, instruction, shapes))
        for instruction in run.post:
            found |= set(_of_post(instruction))
    found |= set(_of_layers(program, runs))
    return frozenset(found)


def _kernels(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The weights' shape of each convolution, by node."""
    return {
        node.name: graph.tensors[node.inputs[1]].shape
        for node in graph.nodes
        if node.operator in ("conv2d", "depthwise_conv2d")
    }


def _of_convolve(
    program: Program, instruction: Executed, kernels: dict[str, tuple[int, ...]]
) -> Iterator[str]:
    fields = instruction.fields
    if fields["whole_words"]:
        yield "layout: whole words"
    if fields["from_ninth"]:
        yield "layout: parity-bit weights"
    if fields["reduction_tiles"] > 1:
        yield "tiling: reduction tiles"
    if fields["accumulate"]:
        yield "tiling: reduction in parts"
    if fields["repeats"]:
        yield "tiling: turns"
    if fields["parts"]:
        yield "tiling: banks in parts"
    if fields["depthwise"]:
        yield from _of_sliding(fields)
        return
    record = program.layers[instruction.layer]
    if "pixels at once" in record.why:
        yield "layout: pixels folded"
    shape = kernels.get(record.name)
    taps = math.prod(shape[1:3]) if shape else 1
    if fields["pairs"]:
        yield "layout: dual vectors"
        if taps % 2 == 0:
            yield "layout: dual vectors, even taps"
    if fields["diagonal"]:
        yield "layout: diagonal"
    elif shape and fields["kernel_x"] < shape[2]:
        yield "layout: row merged"
    elif fields["align_tap"]:
        yield "layout: taps aligned"
    elif fields["align_row"]:
        yield "layout: rows aligned"
    elif taps > 1:
        yield "layout: taps packed"


def _of_sliding(fields: object) -> Iterator[str]:
    assert isinstance(fields, dict)
    yield "layout: sliding kernel"
    if fields["kept_rows"]:
        yield "layout: sliding, rows kept"
    if fields["joined"]:
        yield "layout: sliding, shared column"
    if fields["skip"] > 1:
        yield "layout: sliding, strided"
    if fields["kernel_x"] == 2:
        yield "layout: depthwise split"


def _of_post(instruction: Executed) -> Iterator[str]:
    fields = instruction.fields
    if instruction.opcode == Opcode.DRAIN and fields["use_table"]:
        yield "fusion: function of results"
    if instruction.opcode != Opcode.MAP:
        return
    taps = fields["taps_y"] * fields["taps_x"]
    if fields["take_maximum"]:
        yield "map: maximum"
    elif fields["table_words"] & MapFlag.MULTIPLY:
        yield "map: product"
    elif fields["use_table"] == 3 or fields["shift_taps"]:
        yield "map: sum of two"
    elif taps > 1:
        yield "map: pool"
    elif fields["use_table"]:
        yield "map: table"
    else:
        yield "map: copy"


def _of_run(program: Program, run: ExecutedRun) -> Iterator[str]:
    for stream in (run.matrix, run.post):
        order = [layer for layer, _ in itertools.groupby(each.layer for each in stream)]
        if len(order) > len(set(order)):
            yield "fusion: layers interleaved"
    opcodes = {each.layer: each.opcode for each in run.post}
    order = [layer for layer, _ in itertools.groupby(each.layer for each in run.post)]
    for before, layer, behind in zip(order, order[1:], order[2:], strict=False):
        if before == behind and opcodes[layer] in (Opcode.MAP, Opcode.TABLE):
            yield "fusion: map beside convolution"


def _of_layers(program: Program, runs: list[ExecutedRun]) -> Iterator[str]:
    """Layers that take several instructions, and why."""
    spans: dict[int, set[tuple[int, int]]] = {}
    tiles: dict[int, set[int]] = {}
    roundings: dict[int, set[int]] = {}
    for instruction in itertools.chain.from_iterable((*run.matrix, *run.post) for run in runs):
        fields, layer = instruction.fields, instruction.layer
        if instruction.opcode == Opcode.CONVOLVE:
            spans.setdefault(layer, set()).add((fields["origin_y"], fields["origin"]))
            tiles.setdefault(layer, set()).add(fields["weight_address"])
        elif instruction.opcode == Opcode.DRAIN:
            roundings.setdefault(layer, set()).add(fields["rounding"])
    if any(len({y for y, _ in places}) > 1 for places in spans.values()):
        yield "tiling: row tiles"
    if any(len(addresses) > 1 for addresses in tiles.values()):
        yield "tiling: channel tiles"
    if any(len(kinds) > 1 for kinds in roundings.values()):
        yield "tiling: several roundings"
    first_of: dict[int, int] = {}
    for number, run in enumerate(runs):
        for instruction in run.matrix:
            begun = first_of.setdefault(instruction.layer, number)
            if instruction.fields["accumulate"] and begun < number:
                yield "streaming: partial sums"


def _of_steps(program: Program) -> Iterator[str]:
    if any(layer.why == REASON for layer in program.layers):
        yield "offload: weights left out"
    runs = 0
    for step in program.steps:
        match step:
            case HostStep():
                yield "offload: layer on the host"
            case LoadStep():
                yield "streaming: loads"
            case RunStep():
                runs += 1
                if step.overlapped:
                    yield "streaming: transfers overlapped"
            case UploadStep() | DownloadStep() if step.part is not None:
                place, whole = step.part.placement, step.part.whole
                sizes = (place.height, place.width, place.channels)
                names = ("row stripes", "column stripes", "channel slices")
                for name, size, full in zip(names, sizes, whole, strict=True):
                    if size < full:
                        yield f"streaming: {name}"
    if runs > 1:
        yield "streaming: several runs"
