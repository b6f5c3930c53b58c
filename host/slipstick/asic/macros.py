"""Macros of memories: their shapes, the wrappers they stand behind, and those of a netlist."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRAPPERS = {1: "slipstick_sram_1rw", 2: "slipstick_sram_1rw1r"}
"""By the number of ports: the first reads or writes, the second reads."""

SMALLEST_SRAM_BITS = 2048
"""Less is smaller in flip-flops. OpenRAM's macros for sky130 with 8,192 and 16,384 bits measure
479.78 x 397.5 and 683.1 x 416.54 um (their LEF files): 11.5 um2 for each bit and 97,000 um2
besides. A bit of flip-flops takes 60 um2 there, filled to 65 %: flip-flop 20, two choices 11, 8."""

_PORTS = {name: ports for ports, name in WRAPPERS.items()}


@dataclass(frozen=True, order=True)
class MemoryShape:
    """Words and bits of a memory."""

    words: int
    bits: int

    @property
    def address_bits(self) -> int:
        """Counts the bits of its addresses."""
        return max(1, (self.words - 1).bit_length())

    @property
    def is_large(self) -> bool:
        """Worth a macro."""
        return self.words * self.bits >= SMALLEST_SRAM_BITS


@dataclass(frozen=True)
class Macro:
    """A memory macro of a netlist.

    Parameters
    ----------
    path : str
        The instance, with the names of the blocks above it between points.
    words, bits : int
    ports : int
        1 or 2: a key of ``WRAPPERS``.
    write_bits : int
        Bits of a word that share a write enable.
    """

    path: str
    words: int
    bits: int
    ports: int
    write_bits: int

    @property
    def shape(self) -> MemoryShape:
        """Its words and bits."""
        return MemoryShape(self.words, self.bits)

    @property
    def size(self) -> int:
        """Bits in all."""
        return self.words * self.bits


def wrappers() -> dict[str, str]:
    """The behavioural models of the wrappers, Verilog by the module's name."""
    folder = Path(__file__).parent / "verilog"
    return {name: (folder / f"{name}.v").read_text("utf-8") for name in WRAPPERS.values()}


def memory_macros(netlist: Mapping[str, Any], top: str) -> tuple[Macro, ...]:
    """The macros of a mapped design, ordered by their paths.

    Parameters
    ----------
    netlist : mapping
        What Yosys' ``write_json`` wrote, parsed; flat or not.
    top : str
    """
    return tuple(sorted(_macros(netlist["modules"], top, ""), key=lambda macro: macro.path))


def _macros(modules: Mapping[str, Any], module: str, above: str) -> Iterator[Macro]:
    for name, cell in modules[module]["cells"].items():
        kind = cell["type"]
        if (macro := cell_macro(cell, above + name)) is not None:
            yield macro
        elif kind in modules:
            yield from _macros(modules, kind, f"{above}{name}.")


def cell_macro(cell: Mapping[str, Any], path: str) -> Macro | None:
    """The macro that a cell of a netlist is; None if it is another cell.

    Parameters
    ----------
    cell : mapping
        As Yosys' ``write_json`` wrote it, parsed.
    path : str
        The macro's.
    """
    if cell["type"] not in _PORTS:
        return None
    words, bits, write_bits = (
        int(cell["parameters"][name], 2) for name in ("WORDS", "BITS", "WRITE_BITS")
    )
    return Macro(path, words, bits, _PORTS[cell["type"]], write_bits)
