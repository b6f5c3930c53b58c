"""Runs programs on the golden core, host layers on the kernels: what a session does, for tests."""

import numpy as np
from slipstick.graph import Graph, Node
from slipstick.kernels import dispatch
from slipstick.program import (
    DownloadStep,
    HostStep,
    Placement,
    Program,
    RunStep,
    TensorDescription,
    UploadStep,
)
from slipstick_sim.golden.core import GoldenCore


def _offsets(place: Placement) -> np.ndarray:
    """Address of every element, in NHWC order."""
    y, x, c = np.ogrid[: place.height, : place.width, : place.channels]
    return (place.address + y * place.row_pitch + x * place.pixel_pitch + c).reshape(-1)


def _placed(program: Program, tensor: str) -> tuple[TensorDescription, np.ndarray]:
    described = program.tensors[tensor]
    assert described.placement is not None
    return described, _offsets(described.placement)


def run_program(
    program: Program, inputs: dict[str, np.ndarray], *, order: str | int = "matrix_first"
) -> dict[str, np.ndarray]:
    """Every tensor that the host sees, by name; garbage fills what the program did not write."""
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
    for step in program.steps:
        match step:
            case UploadStep(tensor):
                described, offsets = _placed(program, tensor)
                core.activations[0, offsets] = values[tensor].reshape(-1)
            case RunStep():
                core.run(step.matrix_pc, step.post_pc, step.clear_counters, order)
            case DownloadStep(tensor):
                described, offsets = _placed(program, tensor)
                values[tensor] = core.activations[0, offsets].reshape(described.shape).copy()
            case HostStep():
                node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
                operands = [values[name] for name in step.inputs if name in values]
                values.update(zip(step.outputs, dispatch.run(node, graph, operands), strict=True))
    return values
