"""Chooses how a program runs on a device: alone, or on the members of a group."""

from collections.abc import Callable, Sequence

from slipstick_rtl.config import Configuration

from ..compiler.stages.staged_program import StagedProgram
from ..devices.base import Device
from ..devices.emulated import EmulatedDevice
from ..devices.group import DeviceGroup, GroupKind
from ..errors import ProgramError
from ..program import Program
from .emulation import Emulation
from .executor import Execution
from .pool.execution import PoolExecution
from .stages.divided_execution import DividedExecution
from .stages.loading import divided_execution

ProgramFor = Callable[[Configuration], Program]
"""Makes the program of a network for some hardware."""


def single_execution(program: Program, device: Device) -> Execution | Emulation:
    """An execution on one device.

    Raises
    ------
    ProgramError, DeviceError
        As ``Execution``.
    """
    if isinstance(device, EmulatedDevice):
        return Emulation(program, device)
    return Execution(program, device)


def staged_execution(program: StagedProgram, group: DeviceGroup) -> DividedExecution:
    """An execution of a divided program on the members of a group, a board each.

    Raises
    ------
    ProgramError, DeviceError
        As ``PipelineExecution``.
    """
    return divided_execution(program, group, single_execution)


def group_execution(program: Program, group: DeviceGroup, program_for: ProgramFor) -> PoolExecution:
    """An execution on all members of a group; members of other hardware get programs of their own.

    Raises
    ------
    ProgramError, DeviceError
        As ``Execution``; ProgramError for boards that divide a network among them.
    """
    if group.kind is not GroupKind.POOL:
        raise ProgramError(
            f"program {program.name!r} is for one board, but device"
            f" {group.kind}:{','.join(group.names)} divides a network among its boards: give the"
            f" network itself, the .stages file that slipstick compile --{group.kind} writes, or"
            " the device pool:..."
        )
    programs = {program.hardware.fingerprint: program}

    def make(number: int, device: Device) -> Execution | Emulation:
        hardware = device.configuration
        if hardware.fingerprint not in programs:
            programs[hardware.fingerprint] = program_for(hardware)
        return single_execution(programs[hardware.fingerprint], device)

    return PoolExecution(program, group.names, group.members, make, group.reopen)


def pool_of_one(
    program: Program,
    device: Device,
    name: str,
    execution: Execution | Emulation | DividedExecution,
) -> PoolExecution:
    """A pool around the execution on a device that is open already, or on a divided group."""
    group = DeviceGroup(GroupKind.POOL, [name], [device])

    def reopen(number: int, broken: Device) -> Device:
        if isinstance(execution, DividedExecution):
            execution.repair()
            return broken
        return group.reopen(number, broken)

    def make(number: int, opened: Device) -> Execution | Emulation | DividedExecution:
        if isinstance(execution, DividedExecution):
            return execution
        return single_execution(program, opened)

    runners: Sequence[Execution | Emulation | DividedExecution] = [execution]
    return PoolExecution(program, [name], [device], make, reopen, runners)
