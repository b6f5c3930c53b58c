"""Counts how often a design's memories are read and written, by their ports' recorded enables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .hierarchy import Hierarchy
from .macros import Macro
from .memory_model import memory_cost
from .pdk import Pdk
from .saif import Recording

_PORT_CELL = re.compile(r"^  cell \$mem(rd|wr)(?:_v2)? .*?\n((?:    [^\n]*\n)*)  end\n", re.M)
_MEMORY = re.compile(r'^    parameter \\MEMID "\\\\(\S+)"$', re.M)
_ENABLE = re.compile(r"^    connect \\EN (.*)$", re.M)
_SIGNAL = re.compile(r"\\(\S+)(?: \[(\d+)(?::\d+)?\])?")
_CONSTANT = re.compile(r"^\d+'([01]+)$")

READ = "rd"


@dataclass(frozen=True)
class MemoryPort:
    """A port of a memory of the gateware.

    Parameters
    ----------
    memory : str
        Path of the memory below the top.
    reads : bool
    enables : tuple of (path, bit)
        The signals that enable it, a word's parts each; empty for a port that always works.
    """

    memory: str
    reads: bool
    enables: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class MemoryUse:
    """Accesses of a macro, and the energy of one.

    Parameters
    ----------
    macro : Macro
    reads, writes : float
        In a clock cycle, on the average.
    access_pj : float
        Energy of one.
    """

    macro: Macro
    reads: float
    writes: float
    access_pj: float

    @property
    def cycle_pj(self) -> float:
        """Energy of a clock cycle."""
        return (self.reads + self.writes) * self.access_pj


def memory_ports(hierarchy: Hierarchy) -> list[MemoryPort]:
    """The ports of all memories of a design."""
    return list(_ports(hierarchy, hierarchy.top, ""))


def _ports(hierarchy: Hierarchy, name: str, path: str) -> Iterator[MemoryPort]:
    module = hierarchy.modules[name]
    for kind, text in _PORT_CELL.findall(module.body):
        memory, enable = _MEMORY.search(text), _ENABLE.search(text)
        if memory is not None and enable is not None:
            signals = dict.fromkeys(_SIGNAL.findall(enable[1]))
            enables = tuple((path + signal, int(bit or 0)) for signal, bit in signals)
            constant = _CONSTANT.match(enable[1])
            if constant is None or "1" in constant[1]:
                yield MemoryPort(path + memory[1], kind == READ, enables)
    for instance, child in module.cells:
        yield from _ports(hierarchy, child, f"{path}{instance}.")


def memory_uses(
    hierarchy: Hierarchy, macros: tuple[Macro, ...], recording: Recording, pdk: Pdk
) -> list[MemoryUse]:
    """Counts the reads and writes of each macro in the recorded cycles.

    A port counts in every cycle in which it is enabled, whether what it reads is used or not; one
    whose enable is not in the recording counts in all. If a memory takes several macros, they share
    its accesses.

    Parameters
    ----------
    hierarchy : Hierarchy
        The gateware.
    macros : tuple of Macro
    recording : Recording
    pdk : Pdk
    """
    ports = memory_ports(hierarchy)
    uses = list[MemoryUse]()
    for macro in macros:
        own = [port for port in ports if macro.path.startswith(f"{port.memory}.")]
        memory = own[0].memory if own else macro.path
        sharing = sum(other.path.startswith(f"{memory}.") for other in macros) or 1
        reads, writes = (
            sum(_share(port, recording) for port in own if port.reads == wanted) / sharing
            for wanted in (True, False)
        )
        uses.append(MemoryUse(macro, reads, writes, memory_cost(macro, pdk).access_pj))
    return uses


def _share(port: MemoryPort, recording: Recording) -> float:
    """Share of the cycles in which a port works."""
    found = [recording.of(*enable) for enable in port.enables]
    known = [activity.high for activity in found if activity is not None]
    return max(known) if len(known) == len(found) and known else 1.0
