"""The program of a network that several boards run together: one program per board."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from slipstick_rtl.config import Configuration

from ...errors import ProgramError
from ...graph import Graph, Tensor
from ...program import Program
from ...program.steps import TensorDescription, require


class Division(StrEnum):
    """Names how a network is divided among boards; the words are those of device names."""

    PIPELINE = "pipeline"
    """By layers: images pass from board to board."""
    SPLIT = "split"
    """By output channels: all boards work on the same image."""


@dataclass(frozen=True)
class StagedProgram(Program):
    """Describes what the whole network takes and gives, and holds the program of each board.

    As a ``Program`` it describes inputs, outputs and layers of the whole network. It has no steps:
    ``PipelineExecution`` or ``SplitExecution`` runs it.

    Parameters
    ----------
    division : Division
    stages : tuple of Program
        One per board, in order.
    """

    division: Division = Division.PIPELINE
    stages: tuple[Program, ...] = ()

    def check(self, configuration: Configuration) -> NoReturn:
        """ProgramError: it is for several boards, not for one."""
        boards = ",".join("DEVICE" for _ in self.stages)
        raise ProgramError(
            f"program {self.name!r} is divided among {len(self.stages)} boards: run it on device"
            f" {self.division}:{boards}"
        )

    def check_boards(self, boards: Sequence[Configuration]) -> None:
        """ProgramError unless it was compiled for these boards, in this order."""
        if len(boards) != len(self.stages):
            raise ProgramError(
                f"program {self.name!r} is divided among {len(self.stages)} boards, not"
                f" {len(boards)}"
            )
        for number, (stage, board) in enumerate(zip(self.stages, boards, strict=True), 1):
            try:
                stage.check(board)
            except ProgramError as error:
                raise ProgramError(f"stage {number} of {len(boards)}: {error}") from None


def staged_program(graph: Graph, division: Division, stages: Sequence[Program]) -> StagedProgram:
    """The program of a whole network, of those of several boards."""
    described = {name: describe(graph.tensors[name]) for name in (*graph.inputs, *graph.outputs)}
    return join_programs(graph.name, graph.inputs, graph.outputs, described, division, stages)


def join_programs(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    described: Mapping[str, TensorDescription],
    division: Division,
    stages: Sequence[Program],
) -> StagedProgram:
    """Joins programs of several boards to one.

    Parameters
    ----------
    name : str
    inputs, outputs : tuple of str
        The whole network's.
    described : mapping of TensorDescription by name
        Those of inputs and outputs.
    division : Division
    stages : sequence of Program
        At least one.

    Raises
    ------
    ProgramError
        If a stage needs what no stage before it makes, or the programs do not belong together.
    """
    require(bool(stages), f"program {name!r}: it must have at least one stage")
    first = stages[0]
    for stage in stages:
        good = stage.semantics == first.semantics and not stage.variables
        require(good, f"program {name!r}: {stage.name!r} is no stage of it")
    _check_order(name, inputs, outputs, described, division, stages)
    tensors: dict[str, TensorDescription] = {}
    for stage in reversed(stages):
        tensors |= {
            own: dataclasses.replace(tensor, placement=None)
            for own, tensor in stage.tensors.items()
        }
    return StagedProgram(
        name=name,
        semantics=first.semantics,
        configuration=first.configuration,
        fingerprint=first.fingerprint,
        tensors={**tensors, **described},
        inputs=inputs,
        outputs=outputs,
        images=(),
        loads=(),
        steps=(),
        units=(),
        constants={},
        layers=tuple(layer for stage in stages for layer in stage.layers),
        division=division,
        stages=tuple(stages),
    )


def _check_order(
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    described: Mapping[str, TensorDescription],
    division: Division,
    stages: Sequence[Program],
) -> None:
    """Each stage finds what it needs, in the form that it needs."""
    known = {own: described[own] for own in inputs}
    for number, stage in enumerate(stages, 1):
        for own in stage.inputs:
            form = _form(stage.tensors[own])
            good = own in known and _form(known[own]) == form
            require(good, f"program {name!r}: nothing makes {own!r} for stage {number}")
        if division is Division.PIPELINE or number == 1:
            known |= {own: stage.tensors[own] for own in stage.outputs}
    for own in outputs:
        good = own in known and _form(known[own]) == _form(described[own])
        require(good, f"program {name!r}: no stage makes the output {own!r}")


def _form(tensor: TensorDescription) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.scale, tensor.zero_point


def describe(tensor: Tensor) -> TensorDescription:
    """Returns the description of a tensor that the host keeps."""
    scale = zero_point = None
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scale) == 1:
        scale, zero_point = float(quantization.scale[0]), int(quantization.zero_point[0])
    shape = tuple(int(size) for size in tensor.shape)
    return TensorDescription(shape, tensor.dtype, scale, zero_point)
