"""The register map and the link's constants as a C header. Needs no Amaranth."""

from collections.abc import Iterator

from ..config import Configuration
from ..link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    RESPONSE_START,
    RUN_CLEARS_COUNTERS,
    Command,
    Status,
)
from ..link.spaces import spaces_of, unit_bytes, unit_count
from .registers import Access, Register, RegisterMap

_GUARD = "SLIPSTICK_H"


def c_header(registers: RegisterMap | None, configuration: Configuration) -> str:
    """Offsets, masks and positions of all fields; frames, commands, statuses, memories.

    Parameters
    ----------
    registers : RegisterMap or None
        None where the interface has no registers.
    configuration : Configuration
        The hardware, whose fingerprint and sizes the header holds.
    """
    lines = [
        f"/* Slipstick {configuration.shape}, hardware {configuration.fingerprint}: written by",
        " * `slipstick export` together with the Verilog. */",
        f"#ifndef {_GUARD}",
        f"#define {_GUARD}",
        "",
        *_hardware(configuration),
    ]
    if registers is not None:
        lines += ["", "/* Registers: byte offsets; of each field mask and position. */"]
        lines += [_define("SIZE", f"0x{registers.size:x}u")]
        for register in registers:
            lines += ["", *_register(register)]
    lines += ["", *_frames(configuration), "", f"#endif /* {_GUARD} */", ""]
    return "\n".join(lines)


def _define(name: str, value: str, comment: str = "") -> str:
    line = f"#define SLIPSTICK_{name} {value}"
    return f"{line} /* {comment} */" if comment else line


def _hardware(configuration: Configuration) -> Iterator[str]:
    yield _define("FINGERPRINT", f'"{configuration.fingerprint}"')
    for name in ("pixels", "rows", "columns", "lanes", "payload_bytes"):
        yield _define(name.upper(), f"{getattr(configuration, name)}u")


def _register(register: Register) -> Iterator[str]:
    name = register.name.upper()
    yield f"/* {register.doc} */"
    yield _define(name, f"0x{register.offset:02x}u")
    for field in register.fields:
        full = name if field.name == "value" else f"{name}_{field.name.upper()}"
        yield _define(f"{full}_MASK", f"0x{field.mask:08x}u", f"{field.access.text}: {field.doc}")
        yield _define(f"{full}_SHIFT", str(field.low))
        if field.access is Access.CONSTANT:
            yield _define(f"{full}_EXPECTED", f"0x{field.reset:x}u")


def _frames(configuration: Configuration) -> Iterator[str]:
    yield "/* Frames: start, command or status, sequence, length u16, payload, CRC-32. */"
    yield _define("REQUEST_START", f"0x{REQUEST_START:02x}u")
    yield _define("RESPONSE_START", f"0x{RESPONSE_START:02x}u")
    yield _define("HEADER_BYTES", f"{HEADER_BYTES}u")
    yield _define("CRC_BYTES", f"{CRC_BYTES}u")
    yield _define("RUN_CLEARS_COUNTERS", f"{RUN_CLEARS_COUNTERS}u")
    for command in Command:
        yield _define(f"COMMAND_{command.name}", f"{command.value}u")
    for status in Status:
        yield _define(f"STATUS_{status.name}", f"{status.value}u")
    yield ""
    yield "/* Memories: number, bytes of a unit, units. */"
    for space in spaces_of(configuration):
        yield _define(f"SPACE_{space.name}", f"{space.value}u")
        yield _define(f"{space.name}_UNIT", f"{unit_bytes(configuration, space)}u")
        yield _define(f"{space.name}_UNITS", f"{unit_count(configuration, space)}u")
