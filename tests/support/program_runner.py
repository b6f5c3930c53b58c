"""Runs programs on the golden core, host layers on the kernels: what a session does, for tests."""

from collections.abc import Sequence

import numpy as np
from slipstick.graph import Graph, Node
from slipstick.kernels import dispatch
from slipstick.program import Program
from slipstick.program.steps import (
    DownloadStep,
    HostStep,
    LoadStep,
    Placement,
    RunStep,
    Step,
    UploadStep,
)
from slipstick_sim.golden.core import GoldenCore


def _offsets(place: Placement) -> np.ndarray:
    """Address of every element, in NHWC order."""
    y, x, c = np.ogrid[: place.height, : place.width, : place.channels]
    return place.address + y * place.row_pitch + x * place.pixel_pitch + c


def _elements(
    program: Program, step: UploadStep | DownloadStep, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A view of what a transfer moves of a tensor, and where that lies on the device."""
    if step.part is not None:
        box = value.reshape(1, *step.part.whole)[step.part.box]
        return box[0], _offsets(step.part.placement)
    place = program.tensors[step.tensor].placement
    assert place is not None
    return value.reshape(place.height, place.width, place.channels), _offsets(place)


def _transfer(
    program: Program, core: GoldenCore, values: dict[str, np.ndarray], step: Step
) -> None:
    match step:
        case LoadStep(load):
            image = program.loads[load]
            core.write(image.space, image.address, image.data)
        case UploadStep(tensor):
            box, offsets = _elements(program, step, values[tensor])
            core.activations[0, offsets] = box
        case DownloadStep(tensor):
            shape = program.tensors[tensor].shape
            if step.part is None or tensor not in values:
                values[tensor] = np.full(shape, 77, np.int8)
            box, offsets = _elements(program, step, values[tensor])
            box[...] = core.activations[0, offsets]


def run_program(
    program: Program,
    inputs: dict[str, np.ndarray],
    *,
    order: str | int = "matrix_first",
    early: bool = False,
) -> dict[str, np.ndarray]:
    """Every tensor that the host sees, by name; garbage fills what the program did not write.

    Parameters
    ----------
    program : Program
    inputs : mapping of array by name
    order : str or int
        Of the core's two streams.
    early : bool
        Whether what overlaps with a run is done before it, else behind it.
    """
    core = GoldenCore(program.hardware)
    core.activations[...] = np.random.default_rng(7).integers(-128, 128, core.activations.shape)
    core.accumulators[...] = 12345
    for image in program.images:
        core.write(image.space, image.address, image.data)
    tensors = {name: d.as_tensor(name) for name, d in program.tensors.items()}
    graph = Graph(
        program.name,
        program.inputs,
        program.outputs,
        {**tensors, **program.constants},
        (),
        program.semantics,
    )
    values = dict(inputs)
    steps: Sequence[Step] = program.steps
    number = 0
    while number < len(steps):
        step = steps[number]
        number += 1
        match step:
            case RunStep():
                overlapped = steps[number : number + step.overlapped]
                number += step.overlapped
                if not early:
                    core.run(step.pcs, step.clear_counters, order)
                for other in overlapped:
                    _transfer(program, core, values, other)
                if early:
                    core.run(step.pcs, step.clear_counters, order)
            case HostStep():
                node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
                operands = [values[name] for name in step.inputs if name in values]
                values.update(zip(step.outputs, dispatch.run(node, graph, operands), strict=True))
            case _:
                _transfer(program, core, values, step)
    return values
