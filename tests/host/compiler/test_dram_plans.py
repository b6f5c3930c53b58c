"""Plans for DRAM: what is moved, in which order, and where it lies; results are the reference's."""

import dataclasses
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from program_runner import run_program
from random_networks import NetworkBuilder, random_network
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_list import find_dram_program, make_dram_program
from slipstick.compiler.memory.double_buffer import DoubleBuffer
from slipstick.compiler.partition.kept_rows import missing
from slipstick.compiler.partition.subprograms import Job, Tile, TileCompiler
from slipstick.devices.model import ModelDevice
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.program.steps import (
    DownloadStep,
    LoadStep,
    Part,
    Placement,
    RunStep,
    UploadStep,
)
from slipstick.runtime.executor import Execution
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES
from slipstick_rtl.dram import chips
from slipstick_rtl.link.protocol import Space

SMALL = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 11,
    weight_bytes=1 << 12,
    instruction_words=1 << 9,
    accumulator_depth=64,
    dram="MT48LC16M16",
)


def strided(builder: NetworkBuilder, outputs: int) -> str:
    """Every second pixel of every second row."""
    height, width = builder.shape()[1:3]
    sides = height // 2, width // 2
    return builder.conv2d(
        outputs, (1, 1), stride=(2, 2), dilation=(1, 1), padding=(0,) * 4, sides=sides
    )


def check(program: Program, builder: NetworkBuilder, count: int) -> None:
    """Some images from DRAM, on the golden model."""
    images = np.concatenate([builder.images() for _ in range(count)])
    expected = run_graph(builder.graph(builder.last), [images])
    execution = Execution(program, ModelDevice(program.hardware))
    assert execution.lists
    found = execution.infer_batch({"input": images})
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


def check_overlaps(program: Program, builder: NetworkBuilder) -> None:
    """Transfers during a run may come before all of it, or behind it."""
    image = builder.images()
    expected = run_graph(builder.graph(*program.outputs), [image])
    for early in (False, True):
        found = run_program(program, {"input": image}, early=early)
        for name in program.outputs:
            np.testing.assert_array_equal(found[name], expected[name])


def uploaded(program: Program, tensor: str) -> int:
    """Bytes of a tensor that come to the chip."""
    parts = [
        step.part.placement
        for step in program.steps
        if isinstance(step, UploadStep) and step.tensor == tensor and step.part is not None
    ]
    return sum(place.height * place.width * place.channels for place in parts)


@pytest.mark.parametrize("batch", [1, 2])
def test_pixels_that_a_stride_skips_stay_in_dram(batch: int) -> None:
    builder = NetworkBuilder(3, 16, 16, 32)
    source = builder.last
    strided(builder, 32)
    program = compile_graph(builder.graph(builder.last), SMALL, batch=batch)
    assert uploaded(program, source) == batch * 8 * 8 * 32
    check(program, builder, batch)


def test_a_map_on_the_chip_may_be_read_with_a_stride_and_whole() -> None:
    """As the input of a stage of ResNet-50 is: by the shortcut and by the first convolution."""
    hardware = dataclasses.replace(SMALL, activation_bytes=1 << 13)
    builder = NetworkBuilder(5, 8, 8, 32)
    before = builder.last
    shortcut = strided(builder, 64)
    builder.last = before
    builder.same_conv2d(1, 32)
    builder.same_conv2d(3, 32)
    strided(builder, 64)
    builder.add(shortcut)
    program = compile_graph(builder.graph(builder.last), hardware)
    check(program, builder, 2)


def test_sums_of_many_channels_wait_in_the_accumulators() -> None:
    """All weights and inputs pass but once, though neither fit."""
    hardware = dataclasses.replace(SMALL, columns=16, rows=16, activation_bytes=1 << 12)
    hardware = dataclasses.replace(hardware, weight_bytes=1 << 15, accumulator_depth=128)
    builder = NetworkBuilder(9, 5, 5, 256)
    source = builder.last
    builder.same_conv2d(3, 64)
    program = compile_graph(builder.graph(builder.last), hardware)
    assert uploaded(program, source) == 5 * 5 * 256
    weights = (image for image in program.loads if image.space == Space.WEIGHTS)
    assert sum(len(image.data) for image in weights) < 1.1 * 9 * 256 * 64
    check(program, builder, 2)


def test_most_rows_that_two_stripes_read_come_once() -> None:
    """The halo of a stripe is there from the stripe before, but where the memory ends."""
    hardware = dataclasses.replace(SMALL, activation_bytes=1 << 13)
    builder = NetworkBuilder(11, 64, 16, 16)
    source = builder.last
    builder.same_conv2d(3, 16)
    program = compile_graph(builder.graph(builder.last), hardware)
    stripes = sum(isinstance(step, UploadStep) for step in program.steps)
    assert stripes > 8
    halo = 2 * (stripes - 1) * 16 * 16
    assert uploaded(program, source) < 64 * 16 * 16 + 0.6 * halo
    check(program, builder, 2)
    check_overlaps(program, builder)


def test_a_pass_begins_with_what_the_one_before_ended_with() -> None:
    """Neither the input nor the weights fit: the input comes for each of some tiles of channels."""
    hardware = dataclasses.replace(SMALL, activation_bytes=1 << 12)
    builder = NetworkBuilder(13, 8, 8, 128)
    source = builder.last
    builder.same_conv2d(1, 96)
    program = compile_graph(builder.graph(builder.last), hardware)
    weights = [image for image in program.loads if image.space == Space.WEIGHTS]
    passes = sum(len(image.data) for image in weights) / hardware.weight_bytes
    assert passes > 2
    whole, moved = 8 * 8 * 128, uploaded(program, source)
    assert moved < math.ceil(passes) * whole
    check(program, builder, 2)
    check_overlaps(program, builder)


@pytest.mark.parametrize("seed", range(300, 330))
def test_random_networks_from_dram(seed: int) -> None:
    builder = random_network(seed)
    hardware = dataclasses.replace(SMALL, activation_bytes=1 << 12)
    program = compile_graph(builder.graph(builder.last), hardware)
    check_overlaps(program, builder)


def test_missing_rows() -> None:
    whole = Part(Placement(100, 10, 2, 8, 5, 2), (4, 0, 0), (20, 5, 2))
    rows = dataclasses.replace(whole.placement, address=140, height=2)
    inner = Part(rows, (8, 0, 0), whole.whole)
    found = list(missing(whole, [inner]))
    assert [(part.origin[0], part.placement.height) for part in found] == [(4, 4), (10, 2)]
    assert [part.placement.address for part in found] == [100, 160]
    assert list(missing(inner, [whole])) == []
    # other rows at that place, and other columns
    elsewhere = dataclasses.replace(inner, origin=(9, 0, 0))
    narrow = dataclasses.replace(rows, width=4)
    for other in (elsewhere, Part(narrow, (8, 0, 0), whole.whole)):
        assert list(missing(whole, [other])) == [whole]


def test_large_loads_leave_what_they_can_to_the_run_before() -> None:
    """Of two that do not fit together, the second overlaps the first as little as it can."""
    loads = [bytes([number]) * 60 for number in range(4)]
    buffer = DoubleBuffer(100, 1, loads, far=True)
    assert [buffer.place(data) for data in loads] == [0, 40, 0, 40]


MIDDLE = dataclasses.replace(SMALL, activation_bytes=1 << 14, weight_bytes=1 << 13)


def shrinking() -> NetworkBuilder:
    """Large maps first, then many weights."""
    builder = NetworkBuilder(7, 84, 64, 8)
    for _ in range(3):
        builder.same_conv2d(3, 16)
    for outputs in (32, 64):
        strided(builder, outputs)
        builder.same_conv2d(3, outputs)
    return builder


def test_short_runs_leave_time_for_later_weights() -> None:
    """No run leaves time for all that a later one needs, but each one for a piece of it."""
    builder = shrinking()
    program = compile_graph(
        builder.graph(builder.last), dataclasses.replace(MIDDLE, weight_bytes=1 << 15)
    )
    runs, loaded = 0, Counter[int]()
    for step in program.steps:
        runs += isinstance(step, RunStep)
        if isinstance(step, LoadStep) and program.loads[step.load].space == Space.WEIGHTS:
            loaded[runs] += len(program.loads[step.load].data)
    first = {run: size for run, size in loaded.items() if 1 < run <= 16}
    assert len(first) > 4
    assert sum(first.values()) > 8192
    check(program, builder, 1)


WIDE = dataclasses.replace(MIDDLE, rows=16, lanes=4, columns=4, activation_bytes=1 << 13)


@pytest.mark.parametrize("dram", ["MT48LC16M16", ""])
def test_maps_inside_a_run_leave_the_dma_a_slot(dram: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The post-processor writes a slice of all pixels: they lie in different slots."""
    pitches = list[tuple[bool, int]]()
    compiled = TileCompiler.compile

    def compile_and_look(self: TileCompiler, job: Job) -> Tile:
        tile = compiled(self, job)
        for operation in job.operations:
            place = tile.places[operation.result]
            if operation.output.pixels > 1 and place.channels == 32:
                pitches.append((operation.result in job.owned, place.pixel_pitch))
        return tile

    monkeypatch.setattr(TileCompiler, "compile", compile_and_look)
    builder = NetworkBuilder(7, 48, 48, 8)
    for _ in range(3):
        builder.same_conv2d(3, 32)
        builder.same_conv2d(1, 8)
    program = compile_graph(
        builder.graph(builder.last), dataclasses.replace(WIDE, dram=dram, weight_bytes=1 << 12)
    )
    inside = {pitch for owned, pitch in pitches if not owned}
    assert (32 + WIDE.lanes in inside) == bool(dram)
    # what the DMA moves has no gaps
    assert {pitch for owned, pitch in pitches if owned} <= {32}
    if dram:
        check(program, builder, 1)


def test_maps_share_the_dram() -> None:
    builder = shrinking()
    program = compile_graph(builder.graph(builder.last), MIDDLE)
    listed = make_dram_program(program)
    moved = (s.tensor for s in program.steps if isinstance(s, UploadStep | DownloadStep))
    words = sum(listed.tensors[name].words for name in dict.fromkeys(moved))
    assert listed.end < len(listed.image) // WORD_BYTES + words
    check(program, builder, 2)


def most_at_once(program: Program) -> int:
    """Images whose results come to DRAM in turns, at the beginning of the list."""
    stored = (step.image for step in program.steps if isinstance(step, DownloadStep))
    order = [image for image, _ in itertools.groupby(stored)]
    return len(set(order[: order.index(0, 1)]))


@pytest.mark.parametrize(("rows", "count"), [(1 << 13, 4), (1 << 7, 2)])
def test_the_first_layers_compute_as_many_images_as_have_room(monkeypatch, rows, count) -> None:
    chip = dataclasses.replace(chips.MT48LC16M16, rows=rows, columns=512)
    monkeypatch.setitem(chips.CHIPS, chip.name, chip)
    builder = shrinking()
    program = compile_graph(builder.graph(builder.last), MIDDLE, batch=4)
    listed = find_dram_program(program)
    assert listed is not None
    assert WORD_BYTES * listed.end <= chip.bytes
    assert most_at_once(program) == count
    check(program, builder, 4)
