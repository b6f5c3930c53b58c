"""Double-buffered programs: both copies compute what the program with one place computes."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from slipstick.compiler import compile_graph
from slipstick.devices.model import BatchCore
from slipstick.errors import ProgramError, SlipstickError
from slipstick.examples.digits import MODEL
from slipstick.frontends import load
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.program.alternate import Alternate, at_second_place
from slipstick.program.slip_file import decode, encode
from slipstick.program.steps import DownloadStep, HostStep, RunStep, UploadStep
from slipstick.runtime.device_memory import BatchMemory
from slipstick.targets import find_target
from slipstick.verify.fuzz.onnx import onnx_seeds
from slipstick.verify.fuzz.tflite import tflite_seeds
from slipstick.verify.random_networks.formats import FORMATS
from slipstick_rtl.isa import INSTRUCTION_BITS, MATRIX_FIELDS, pack, unpack
from slipstick_rtl.link.protocol import Space
from slipstick_sim.golden.core import GoldenCore
from stepwise_inference import Inference

TARGETS = ("sim-small", "ulx3s-85f", "icebreaker")


def programs(target: str) -> list[tuple[Program, Program]]:
    """Small networks that have a second place; each also compiled with one place."""
    configuration, found = find_target(target).configuration, []
    files = [(load_tflite_bytes, data) for data in tflite_seeds()]
    files += [(load_onnx_bytes, data) for data in onnx_seeds()]
    for read, data in files:
        try:
            graph = read(data, "seed")
            double = compile_graph(graph, configuration, effort=1000)
            single = compile_graph(graph, configuration, effort=1000, double_buffer=False)
        except SlipstickError:
            continue
        assert single.alternate is None
        assert double.predicted_cycles == single.predicted_cycles
        if double.alternate is not None:
            found.append((double, single))
    return found


def loaded(program: Program) -> BatchMemory:
    """The golden model with the program's memories loaded; it refuses hazards."""
    core = GoldenCore(program.hardware, check_hazards=True)
    memory = BatchMemory(BatchCore(core))
    for image in program.images:
        memory.load(image)
    return memory


@pytest.mark.parametrize("target", TARGETS)
def test_interleaved_places_compute_what_one_place_computes(target: str) -> None:
    found = programs(target)
    assert found
    for double, single in found:
        memory, plain = loaded(double), loaded(single)
        sides = (dataclasses.replace(double, alternate=None), at_second_place(double))
        images = [Inference(sides[seed % 2], memory, seed) for seed in range(4)]
        images[0].do(HostStep, UploadStep)
        for number, image in enumerate(images):
            # the next inputs arrive, and the last outputs leave, before the run and behind it
            for following in images[number + 1 : number + 2]:
                following.do(HostStep, UploadStep)
            image.do(RunStep)
            for before in images[max(number - 1, 0) : number]:
                before.do(DownloadStep)
        images[-1].do(DownloadStep)
        made = [image.outputs() for image in images]
        for seed, outputs in enumerate(made):
            alone = Inference(single, plain, seed)
            for kind in (HostStep, UploadStep, RunStep, DownloadStep):
                alone.do(kind)
            for one, wanted in zip(outputs, alone.outputs(), strict=True):
                np.testing.assert_array_equal(one, wanted)


def _damaged(program: Program, **changes: Any) -> Program:
    alternate = program.alternate
    assert alternate is not None
    return dataclasses.replace(program, alternate=dataclasses.replace(alternate, **changes))


def test_damaged_alternates_are_refused() -> None:
    double, _ = programs("sim-small")[0]
    alternate = double.alternate
    assert isinstance(alternate, Alternate)
    assert decode(encode(double)).alternate == alternate
    name = next(iter(alternate.placements))
    places = dict(alternate.placements)
    first = double.tensors[name].placement
    assert first is not None
    with pytest.raises(ProgramError, match="an alternate's pcs must be 2, not 1"):
        _damaged(double, pcs=(0,))
    with pytest.raises(ProgramError, match=r"its second place starts at word \d+ of"):
        _damaged(double, pcs=(1 << 20, 0))
    with pytest.raises(ProgramError, match="must be one of the tensors that are moved"):
        _damaged(double, placements={})
    with pytest.raises(ProgramError, match="must not overlap"):
        _damaged(double, placements={**places, name: first})
    with pytest.raises(ProgramError, match="ends at .*, its memory at"):
        far = dataclasses.replace(first, address=1 << 30)
        _damaged(double, placements={**places, name: far})
    with pytest.raises(ProgramError, match="must be laid out as"):
        other = dataclasses.replace(first, row_pitch=first.row_pitch + 64)
        _damaged(double, placements={**places, name: other})
    with pytest.raises(ProgramError, match="the second copy of the matrix stream"):
        decode(encode(_damaged(double, pcs=(alternate.pcs[0] + 1, alternate.pcs[1]))))
    start = 4 * alternate.pcs[0]
    (code,) = (image for image in double.images if image.space == Space.INSTRUCTIONS)
    data = bytearray(code.data)
    fields = unpack(MATRIX_FIELDS, bytes(data[start : start + INSTRUCTION_BITS // 8]))
    origin = fields["origin"] + 1
    changed = pack(MATRIX_FIELDS, {**fields, "origin": origin})
    data[start : start + len(changed)] = changed
    images = tuple(
        dataclasses.replace(image, data=bytes(data)) if image is code else image
        for image in double.images
    )
    wrong = f"instruction 0 has origin {origin}, not .*, nor that in the second place"
    with pytest.raises(ProgramError, match=wrong):
        decode(encode(dataclasses.replace(double, images=images)))


def test_only_programs_of_one_run_have_a_second_place() -> None:
    double, _ = programs("sim-small")[0]
    (run,) = (step for step in double.steps if isinstance(step, RunStep))
    with pytest.raises(ProgramError, match="needs a program of one run, not 2"):
        dataclasses.replace(double, steps=(*double.steps, run))
    late = [step for step in double.steps if isinstance(step, UploadStep)]
    with pytest.raises(ProgramError, match="in that order; step 3 is UploadStep"):
        dataclasses.replace(double, steps=(*double.steps, *late))


def test_a_memory_that_is_too_small_leaves_one_place() -> None:
    graph, configuration = load(MODEL), find_target("icebreaker").configuration
    double = compile_graph(graph, configuration, effort=1000)
    assert double.alternate is not None
    single = compile_graph(graph, configuration, effort=1000, double_buffer=False)
    (code,) = (image for image in single.images if image.space == Space.INSTRUCTIONS)
    words = len(code.data) // 4 * 3 // 2 // 64 * 64
    small = dataclasses.replace(configuration, instruction_words=words)
    program = compile_graph(graph, small, effort=1000)
    assert program.alternate is None
    assert program.predicted_cycles == double.predicted_cycles
    assert (program.steps, program.tensors) == (single.steps, single.tensors)


def test_an_alias_that_is_downloaded_after_a_host_operation_leaves_one_place() -> None:
    configuration, form = find_target("sim-small").configuration, FORMATS["onnx"]
    recipe = form.draw(45, configuration.weight_bytes)
    program = compile_graph(form.load(form.write(recipe)), configuration, effort=500)
    kinds = [type(step) for step in program.steps]
    assert kinds.count(RunStep) == 1 and HostStep in kinds[: kinds.index(DownloadStep)]
    assert program.alternate is None
