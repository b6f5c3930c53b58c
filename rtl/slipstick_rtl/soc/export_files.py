"""Writes what accompanies the exported Verilog: its description, and an instance to copy."""

from typing import Any

from amaranth.lib.wiring import In

from ..config import Configuration
from ..isa import MATRIX_FIELDS, POST_FIELDS, WORDS_PER_INSTRUCTION, Field, Opcode
from ..link.protocol import (
    DEFAULT_TIMEOUT_CYCLES,
    REQUEST_START,
    RESPONSE_START,
    Command,
    Status,
)
from ..link.spaces import spaces_of, unit_bytes, unit_count
from ..toplevel.design import TOP, describe
from .interfaces import InterfaceTop
from .registers import RegisterMap


def ports(top: InterfaceTop) -> list[dict[str, Any]]:
    """Name, direction and width of every port, clock and reset first."""
    found = []
    for path, member, value in top.signature.flatten(top):
        found.append(
            {
                "name": str(path[0]),
                "direction": "input" if member.flow is In else "output",
                "width": len(value),
            }
        )
    return found


def register_map_of(top: InterfaceTop) -> RegisterMap | None:
    """The registers of the interface, if it has any."""
    return getattr(top.face, "registers", None)


def description(top: InterfaceTop) -> dict[str, Any]:
    """All that a driver must know, ready for JSON: design.json."""
    configuration = top.accelerator.configuration
    registers = register_map_of(top)
    interface = top.interface
    return {
        **describe(top.accelerator),
        "interface": {
            "name": interface.name,
            "description": interface.description,
            "clock": interface.clock,
            "reset": interface.reset,
            "reset_active": "low" if interface.reset_active_low else "high",
            "reset_kind": "synchronous",
            "ports": ports(top),
        },
        "registers": None if registers is None else registers.to_dict(),
        "isa": _isa(),
        "protocol": _protocol(configuration),
    }


def _isa() -> dict[str, Any]:
    return {
        "words_per_instruction": WORDS_PER_INSTRUCTION,
        "opcodes": {opcode.name: opcode.value for opcode in Opcode},
        "matrix_fields": [_field(name, field) for name, field in MATRIX_FIELDS.items()],
        "post_fields": [_field(name, field) for name, field in POST_FIELDS.items()],
    }


def _field(name: str, field: Field) -> dict[str, Any]:
    return {"name": name, "width": field.width, "signed": field.signed, "doc": field.doc}


def _protocol(configuration: Configuration) -> dict[str, Any]:
    return {
        "request_start": REQUEST_START,
        "response_start": RESPONSE_START,
        "timeout_cycles": DEFAULT_TIMEOUT_CYCLES,
        "commands": {command.name: command.value for command in Command},
        "statuses": {status.name: status.value for status in Status},
        "spaces": {
            space.name: {
                "number": space.value,
                "unit_bytes": unit_bytes(configuration, space),
                "units": unit_count(configuration, space),
            }
            for space in spaces_of(configuration)
        },
    }


def instance(top: InterfaceTop) -> str:
    """Wires for all ports, and the instance that they go to: a template in Verilog."""
    interface, found = top.interface, ports(top)
    active = "low" if interface.reset_active_low else "high"
    lines = [
        f"// {interface.description}; {top.accelerator.configuration.shape},"
        f" hardware {top.accelerator.configuration.fingerprint}.",
        f"// {interface.reset} is active {active}, and counts at rising edges of"
        f" {interface.clock}: give one before use.",
    ]
    for port in found:
        span = f"[{port['width'] - 1}:0] " if port["width"] > 1 else ""
        lines.append(f"wire {span}{port['name']};")
    lines += ["", f"{TOP} {TOP}_0 ("]
    lines.append(",\n".join(f"    .{port['name']}({port['name']})" for port in found))
    return "\n".join([*lines, ");", ""])
