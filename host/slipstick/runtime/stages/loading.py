"""Makes a divided program for the boards that are there, and the execution that runs it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from slipstick_rtl.config import Configuration

from ...compiler.stages.board_model import BoardModel
from ...compiler.stages.pipeline import plan_pipeline
from ...compiler.stages.split import plan_split
from ...compiler.stages.staged_program import (
    Division,
    StagedProgram,
    staged_program,
)
from ...devices import hardware_of, open_device
from ...devices.base import Device
from ...devices.group import DeviceGroup, GroupKind, group_of
from ...errors import DeviceError, ProgramError
from ...program import Program
from ...program.cache import cached_program
from .board_time import board_at
from .members import Make, Runner
from .pipeline_execution import PipelineExecution
from .split_execution import SplitExecution
from .stage_files import is_stages_file, read_stages

Model = str | os.PathLike[str] | Program


def is_divided(device: object) -> bool:
    """Tells whether a device, or its name, stands for boards that divide a network among them."""
    if isinstance(device, str):
        group = group_of(device)
        return group is not None and group[0] is not GroupKind.POOL
    return isinstance(device, DeviceGroup) and device.kind is not GroupKind.POOL


def open_divided(
    model: Model,
    device: str | DeviceGroup,
    wanted: Configuration | None = None,
    semantics: str | None = None,
) -> tuple[StagedProgram, DeviceGroup]:
    """Opens the boards of a divided network, and makes or reads the program for them.

    Parameters
    ----------
    model : path or StagedProgram
        A network, which is divided for the boards; or what ``slipstick compile --pipeline`` wrote.
    device : str or DeviceGroup
        ``pipeline:D1,D2,...`` or ``split:D1,D2,...``.
    wanted : Configuration, optional
        The hardware of devices whose names have none.
    semantics : str, optional
        Whose rounding the network must follow.

    Raises
    ------
    SlipstickError
        If a board cannot be opened, or the network not be divided; each by its own type.
    """
    ready = _ready_program(model, semantics)
    group = device if isinstance(device, DeviceGroup) else _opened(device, ready, wanted)
    try:
        boards = [
            board_at(name, member.configuration)
            for name, member in zip(group.names, group.members, strict=True)
        ]
        if ready is None:
            assert not isinstance(model, Program)
            ready = divided_program(model, Division(group.kind), boards, semantics)
        elif ready.division != group.kind:
            raise ProgramError(
                f"program {ready.name!r} is for device {ready.division}:..., not {group.kind}:..."
            )
        ready.check_boards([board.configuration for board in boards])
    except BaseException:
        if isinstance(device, str):
            group.close()
        raise
    return ready, group


def divided_execution(
    program: StagedProgram, group: DeviceGroup, make: Make[Runner]
) -> PipelineExecution | SplitExecution:
    """The execution of a divided program on its boards.

    Parameters
    ----------
    program : StagedProgram
    group : DeviceGroup
    make : callable
        Makes the execution of one stage on one device.

    Raises
    ------
    ProgramError, DeviceError
        As for ``PipelineExecution``.
    """
    if program.division is Division.SPLIT:
        return SplitExecution(program, group)
    return PipelineExecution(program, group, make)


def divided_program(
    path: str | os.PathLike[str],
    division: Division,
    boards: Sequence[BoardModel],
    semantics: str | None = None,
) -> StagedProgram:
    """Divides a network's file among boards; what is compiled is kept for the next time.

    Raises
    ------
    ModelError, UnsupportedError
        If the file is no network, or cannot be divided.
    """
    # programs need no front-end
    from ...frontends import load
    from ...frontends.semantics import with_semantics

    graph = with_semantics(load(os.fspath(path)), semantics)
    planned: list[StagedProgram] = []

    def plan() -> StagedProgram:
        if not planned:
            way = plan_pipeline if division is Division.PIPELINE else plan_split
            planned.append(way(graph, boards).program)
        return planned[0]

    about = [f"{board.configuration.fingerprint} {board!r}" for board in boards]
    stages = [
        cached_program(
            path,
            board.configuration,
            {"semantics": semantics, "division": division, "boards": about, "stage": number},
            lambda number=number: plan().stages[number],
        )
        for number, board in enumerate(boards)
    ]
    if planned:
        # those that were kept before are of the same plan, or of an older one
        return planned[0]
    return staged_program(graph, division, stages)


def _ready_program(model: Model, semantics: str | None) -> StagedProgram | None:
    """A program that is divided already; None for a network's file."""
    ready = model
    if is_stages_file(model):
        assert not isinstance(model, Program)
        ready = read_stages(model)
    if isinstance(ready, StagedProgram):
        if semantics not in (None, ready.semantics):
            raise ProgramError(
                f"program {ready.name!r} follows the semantics {ready.semantics}, not"
                f" {semantics}: compile its network anew"
            )
        return ready
    if isinstance(ready, Program) or Path(ready).suffix == ".slip":
        name = ready.name if isinstance(ready, Program) else ready
        raise ProgramError(
            f"{name} is a program for one board: several need the network itself, or the .stages"
            " file that slipstick compile --pipeline writes"
        )
    return None


def _opened(name: str, program: StagedProgram | None, wanted: Configuration | None) -> DeviceGroup:
    """Opens the boards; without hardware in a device's name that of its stage counts."""
    found = group_of(name)
    if found is None:
        raise DeviceError(f"device {name!r} must be {' or '.join(Division)}:D1,D2,...")
    kind, names = found
    stages: Sequence[Program | None] = [None] * len(names)
    if program is not None:
        if len(program.stages) != len(names):
            raise ProgramError(
                f"program {program.name!r} is divided among {len(program.stages)} boards, not"
                f" {len(names)}"
            )
        stages = program.stages

    def open_member(number: int) -> Device:
        stage = stages[number]
        hardware = wanted if stage is None else stage.hardware
        return open_device(names[number], hardware_of(names[number]) or hardware)

    opened: list[Device] = []
    try:
        for number in range(len(names)):
            opened.append(open_member(number))
    except BaseException:
        for device in opened:
            with suppress(DeviceError):
                device.close()
        raise
    return DeviceGroup(kind, names, opened, open_member)
