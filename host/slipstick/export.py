"""The core as Verilog for other people's designs, and what they need beside it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import TargetError
from .targets import Target

if TYPE_CHECKING:
    from slipstick_rtl.soc.interfaces import InterfaceTop

INTERFACE_NAMES = ("axi", "wishbone", "stream")
VERILOG = "slipstick.v"
DESCRIPTION = "design.json"
HEADER = "slipstick.h"
INSTANCE = "instance.v"


@dataclass(frozen=True)
class Export:
    """What was written.

    Parameters
    ----------
    target : Target
    interface : str
    files : tuple of Path
    description : dict
        The content of design.json.
    """

    target: Target
    interface: str
    files: tuple[Path, ...]
    description: dict[str, Any]


def default_output(target: Target, interface: str) -> Path:
    """Where an export goes unless the user says otherwise."""
    return Path("build") / "exports" / f"{target.name}-{interface}"


def check_interface(interface: str) -> None:
    """TargetError unless there is such an interface."""
    if interface not in INTERFACE_NAMES:
        raise TargetError(
            f"interface must be one of {', '.join(INTERFACE_NAMES)}, not {interface!r}"
        )


def export(target: Target, interface: str, folder: Path) -> Export:
    """Writes Verilog, description, C header and instantiation template of a target's core.

    Parameters
    ----------
    target : Target
    interface : str
        One of ``INTERFACE_NAMES``.
    folder : Path
        Made if it is missing; files of an earlier export are overwritten.

    Raises
    ------
    TargetError
        If there is no such interface, a package or a tool is missing, or the configuration
        cannot be exported.
    OSError
        If the folder cannot be written.
    """
    check_interface(interface)
    # what cannot be written is found before the work of half a minute
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / DESCRIPTION, "a", encoding="utf-8"):
        pass
    top = _top(target, interface)
    from slipstick_rtl.soc import export_files
    from slipstick_rtl.soc.c_header import c_header

    description = export_files.description(top)
    registers = export_files.register_map_of(top)
    texts = {
        VERILOG: _comment(target, interface, description) + _verilog(target, top),
        DESCRIPTION: json.dumps(description, indent=2) + "\n",
        HEADER: c_header(registers, target.configuration),
        INSTANCE: export_files.instance(top),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return Export(target, interface, tuple(folder / name for name in texts), description)


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


def _verilog(target: Target, top: "InterfaceTop") -> str:
    try:
        from slipstick_sim.portable import NetlistError, portable_verilog
        from slipstick_sim.toolchain import ToolError, convert_to_rtlil
    except ImportError as error:
        raise TargetError(
            f"exporting needs the Python package {error.name}: pip install 'slipstick[sim]'"
        ) from None
    try:
        return portable_verilog(convert_to_rtlil(top, "slipstick"), "slipstick")
    except (NetlistError, ToolError) as error:
        raise TargetError(f"target {target.name} cannot be exported: {error}") from None


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
