"""Steps of the host that the caller of an execution runs himself."""

from collections.abc import Sequence

import numpy as np
import pytest
from slipstick.devices.model import ModelDevice
from slipstick.examples.digits import MODEL
from slipstick.loading import compile_file
from slipstick.program import Program
from slipstick.program.steps import HostStep
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target


@pytest.fixture(scope="module")
def program() -> Program:
    made = compile_file(MODEL, find_target("sim-small").configuration)
    assert [step.operator for step in made.steps if isinstance(step, HostStep)] == ["softmax"]
    return made


def images(program: Program, count: int) -> dict[str, np.ndarray]:
    (name,) = program.inputs
    shape = program.tensors[name].shape[1:]
    drawn = np.random.default_rng(3).integers(-128, 128, (count, *shape))
    return {name: drawn.astype(np.int8)}


@pytest.mark.parametrize("count", [1, 5])
def test_it_runs_in_place_of_the_kernel(program: Program, count: int) -> None:
    asked: list[HostStep] = []

    def reverse(step: HostStep, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        asked.append(step)
        (logits,) = operands
        return [logits[..., ::-1]]

    device, (output,) = ModelDevice(program.hardware), program.outputs
    plain = Execution(program, device).infer_batch(images(program, count))
    changed = Execution(program, device, operators={"softmax": reverse})
    found = changed.infer_batch(images(program, count))
    (step,) = {each.name: each for each in asked}.values()
    assert step.outputs == (output,)
    logits = plain[step.inputs[0]]
    np.testing.assert_array_equal(found[output], logits[..., ::-1])
    assert not np.array_equal(found[output], plain[output])


def test_its_errors_are_the_inferences_own(program: Program) -> None:
    class Stopped(Exception):
        pass

    def stop(step: HostStep, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        raise Stopped

    execution = Execution(program, ModelDevice(program.hardware), operators={"softmax": stop})
    with pytest.raises(Stopped):
        execution.infer(images(program, 1))


def test_other_operators_are_the_kernels(program: Program) -> None:
    def none(step: HostStep, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        raise AssertionError(step)

    device = ModelDevice(program.hardware)
    plain = Execution(program, device).infer(images(program, 1))
    found = Execution(program, device, operators={"conv2d": none}).infer(images(program, 1))
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], plain[name])
