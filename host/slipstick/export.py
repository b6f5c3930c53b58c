"""The core as Verilog for other people's designs, and what they need beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .asic.flow_files import Flow
from .asic.gate_count import count_gates
from .asic.macros import WRAPPERS, wrappers
from .asic.memories import SRAM, check_technology, with_macros
from .asic.processes import PROCESSES
from .errors import TargetError
from .targets import Target

if TYPE_CHECKING:
    from slipstick_rtl.soc.interfaces import InterfaceTop

MODULE = "slipstick"
INTERFACE_NAMES = ("axi", "wishbone", "stream")
VERILOG = "slipstick.v"
DESCRIPTION = "design.json"
HEADER = "slipstick.h"
INSTANCE = "instance.v"


@dataclass(frozen=True)
class Export:
    """Files of an export, and their description.

    Parameters
    ----------
    target : Target
    interface : str
    files : tuple of Path
    description : dict
        The content of design.json.
    sides : mapping of int
        Of an export for layout: micrometres of the square die, by process.
    """

    target: Target
    interface: str
    files: tuple[Path, ...]
    description: dict[str, Any]
    sides: Mapping[str, int] = field(default_factory=dict)


def default_output(target: Target, interface: str, memories: str | None = None) -> Path:
    """Returns the folder of an export unless the user names another one."""
    suffix = "" if memories is None else f"-{memories}"
    return Path("build") / "exports" / f"{target.name}-{interface}{suffix}"


def check_interface(interface: str) -> None:
    """TargetError unless there is such an interface."""
    if interface not in INTERFACE_NAMES:
        raise TargetError(
            f"interface must be one of {', '.join(INTERFACE_NAMES)}, not {interface!r}"
        )


def export(target: Target, interface: str, folder: Path, *, memories: str | None = None) -> Export:
    """Writes Verilog, description, C header and instantiation template of a target's core.

    For layout there are constraints and configurations of the open flows besides.

    Parameters
    ----------
    target : Target
    interface : str
        One of ``INTERFACE_NAMES``.
    folder : Path
        Made if it is missing; files of an earlier export are overwritten.
    memories : str
        For layout: what memories become, one of ``asic.memories.TECHNOLOGIES``.

    Raises
    ------
    TargetError
        If there is no such interface or technology, a package or a tool is missing, or the
        configuration cannot be exported.
    OSError
        If the folder cannot be written.
    """
    check_interface(interface)
    if memories is not None:
        check_technology(memories)
    # what cannot be written is found before the work of half a minute
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / DESCRIPTION, "a", encoding="utf-8"):
        pass
    top = _top(target, interface)
    from slipstick_rtl.soc import export_files
    from slipstick_rtl.soc.c_header import c_header

    description = export_files.description(top)
    registers = export_files.register_map_of(top)
    rtlil = _rtlil(target, top)
    files, sides = _for_layout(target, description, rtlil, memories) if memories else ({}, {})
    texts = {
        VERILOG: _comment(target, interface, description) + _verilog(target, rtlil, memories),
        DESCRIPTION: json.dumps(description, indent=2) + "\n",
        HEADER: c_header(registers, target.configuration),
        INSTANCE: export_files.instance(top),
        **files,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return Export(target, interface, tuple(folder / name for name in texts), description, sides)


def _top(target: Target, interface: str) -> "InterfaceTop":
    try:
        from slipstick_rtl.soc.interfaces import INTERFACES, InterfaceTop
    except ImportError as error:
        raise TargetError(
            f"exporting needs the Python package {error.name}: pip install 'slipstick[sim]'"
        ) from None
    try:
        return InterfaceTop(interface=INTERFACES[interface], configuration=target.configuration)
    except ValueError as error:
        raise TargetError(f"target {target.name} cannot be exported: {error}") from None


def _rtlil(target: Target, top: "InterfaceTop") -> str:
    try:
        from slipstick_sim.toolchain import convert_to_rtlil
    except ImportError as error:
        raise TargetError(
            f"exporting needs the Python package {error.name}: pip install 'slipstick[sim]'"
        ) from None
    return convert_to_rtlil(top, MODULE)


def _verilog(target: Target, rtlil: str, memories: str | None) -> str:
    from slipstick_sim.netlist.portable import NetlistError, portable_verilog
    from slipstick_sim.toolchain import ToolError

    try:
        if memories == SRAM:
            return portable_verilog(with_macros(rtlil), MODULE, black_boxes=wrappers())
        return portable_verilog(rtlil, MODULE)
    except (NetlistError, ToolError) as error:
        raise TargetError(f"target {target.name} cannot be exported: {error}") from None


def _for_layout(
    target: Target, description: Mapping[str, Any], rtlil: str, memories: str
) -> tuple[dict[str, str], dict[str, int]]:
    """Makes the files that layout tools need besides, by name; and the sides of dies."""
    gates = count_gates(rtlil, MODULE)
    used = {WRAPPERS[macro.ports] for macro in gates.macros} if memories == SRAM else set()
    models = {f"{name}.v": text for name, text in wrappers().items() if name in used}
    face = description["interface"]
    flow = Flow(
        top=MODULE,
        clock=face["clock"],
        reset=face["reset"],
        period=round(1e9 / target.configuration.clock_hz, 3),
        verilog=(VERILOG, *models),
        gates=gates,
        memories=memories,
    )
    sides = {process.name: flow.die_side(process) for process in PROCESSES}
    return {**models, **flow.files()}, sides


def _comment(target: Target, interface: str, description: dict[str, Any]) -> str:
    face = description["interface"]
    return (
        f"// Slipstick {target.configuration.shape}, interface {interface}"
        f" ({face['description']}).\n"
        f"// Hardware {description['fingerprint']}; design.json beside this file has the rest.\n"
        f"// {face['reset']} is synchronous to {face['clock']} and active"
        f" {face['reset_active']}; registers are undefined until it was given.\n"
        "// Written by `slipstick export`; change the gateware, not this file.\n"
    )
