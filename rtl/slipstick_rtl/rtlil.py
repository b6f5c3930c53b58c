"""Writes gateware as RTLIL, the language of Yosys, as Amaranth does, but faster."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any


def convert(gateware: Any, *, name: str = "top", platform: object = None, ports: Any = None) -> str:
    """Returns RTLIL as ``amaranth.back.rtlil.convert`` writes it, without the places of sources.

    Parameters
    ----------
    gateware : Elaboratable
    name : str
        Of the top module.
    platform : object
        What the parts that use a device's own blocks ask for its ``device``.
    ports : sequence or mapping, optional
        As Amaranth takes them; a component has its own.
    """
    rtlil = importlib.import_module("amaranth.back.rtlil")  # which the type stubs lack
    with _whole_memories(rtlil.ModuleEmitter):
        return rtlil.convert(gateware, name=name, platform=platform, ports=ports, emit_src=False)


@contextlib.contextmanager
def _whole_memories(emitter: Any) -> Iterator[None]:
    """Lets the emitter write the contents of a memory in one piece.

    Amaranth 0.5 makes an object of each of their bits, which takes two thirds of the time of a
    core with 700 KiB of memories.
    """
    original = emitter.emit_memory

    def emit_memory(self: Any, index: int, cell: Any) -> None:
        bits = cell.width * cell.depth
        if not bits:
            original(self, index, cell)
            return
        mask = (1 << cell.width) - 1
        words = (f"{row & mask:0{cell.width}b}" for row in reversed(cell.init))
        self.builder.cell(
            "$meminit_v2",
            ports={
                "ADDR": self.sigspec(),
                "DATA": f"{bits}'{''.join(words)}",
                "EN": f"{cell.width}'{'1' * cell.width}",
            },
            parameters={
                "MEMID": self.memories[index].memid,
                "ABITS": 0,
                "WIDTH": cell.width,
                "WORDS": cell.depth,
                "PRIORITY": 0,
            },
            src_loc=cell.src_loc,
        )

    emitter.emit_memory = emit_memory
    try:
        yield
    finally:
        emitter.emit_memory = original
