"""Double-buffered programs: both copies compute what the program with one place computes."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from slipstick.compiler import compile_graph
from slipstick.devices.model import ModelDevice
from slipstick.errors import ProgramError, SlipstickError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.program.alternate import Alternate
from slipstick.program.slip_file import decode, encode
from slipstick.program.steps import RunStep
from slipstick.runtime.executor import Execution
from slipstick.runtime.feeds import random_feeds
from slipstick.targets import find_target
from slipstick.verify.fuzz.onnx import onnx_seeds
from slipstick.verify.fuzz.tflite import tflite_seeds

TARGETS = ("sim-small", "ulx3s-85f", "icebreaker")


def programs(target: str) -> list[tuple[Program, Program]]:
    """Small networks that have a second place; each also compiled with one place."""
    configuration, found = find_target(target).configuration, []
    files = [(load_tflite_bytes, data) for data in tflite_seeds()]
    files += [(load_onnx_bytes, data) for data in onnx_seeds()]
    for load, data in files:
        try:
            graph = load(data, "seed")
            double = compile_graph(graph, configuration, effort=1000)
            single = compile_graph(graph, configuration, effort=1000, double_buffer=False)
        except SlipstickError:
            continue
        assert single.alternate is None
        assert double.predicted_cycles == single.predicted_cycles
        if double.alternate is not None:
            found.append((double, single))
    return found


def second(program: Program) -> Program:
    """The program that uses the second place only."""
    alternate = program.alternate
    assert alternate is not None
    tensors = dict(program.tensors)
    for name, place in alternate.placements.items():
        tensors[name] = dataclasses.replace(tensors[name], placement=place)
    steps = tuple(
        dataclasses.replace(step, pcs=alternate.pcs) if isinstance(step, RunStep) else step
        for step in program.steps
    )
    return dataclasses.replace(program, tensors=tensors, steps=steps, alternate=None)


@pytest.mark.parametrize("target", TARGETS)
def test_both_copies_compute_what_one_place_computes(target: str) -> None:
    found = programs(target)
    assert found
    for double, single in found:
        first, other = dataclasses.replace(double, alternate=None), second(double)
        outputs = {}
        for kind, program in (("single", single), ("first", first), ("second", other)):
            device = ModelDevice(program.hardware, check_hazards=True)
            values = Execution(program, device).infer(random_feeds(program, 5))
            outputs[kind] = [values[name] for name in program.outputs]
        for kind in ("first", "second"):
            for made, wanted in zip(outputs[kind], outputs["single"], strict=True):
                np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_leaves_the_other_place_alone(target: str) -> None:
    rng = np.random.default_rng(3)
    for double, _ in programs(target):
        pairs = (dataclasses.replace(double, alternate=None), second(double))
        for program, other in (pairs, pairs[::-1]):
            device = ModelDevice(program.hardware)
            run = Execution(program, device)
            feeds = random_feeds(program, 7)
            wanted = run.infer(feeds)
            kept = {}
            for name in double.alternate.placements if double.alternate else ():
                place = other.tensors[name].placement
                assert place is not None
                data = rng.integers(-128, 128, place.bytes).astype(np.int8).tobytes()
                run._memory.load(_image(place.address, data))
                kept[name] = (place.address, data)
            made = run.infer(feeds)
            for name in program.outputs:
                np.testing.assert_array_equal(made[name], wanted[name])
            for address, data in kept.values():
                assert device.read(address, len(data)) == data


def _image(address: int, data: bytes) -> Any:
    from slipstick.program.steps import Image
    from slipstick_rtl.link.protocol import Space

    return Image(int(Space.ACTIVATIONS), address, data)


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
