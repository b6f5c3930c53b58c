"""What silicon does not forgive: latches, loops of logic, registers that begin with anything."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import TargetError

_SCRIPT = """
read_rtlil design.il
hierarchy -top {top}
proc
flatten
opt_clean
select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr
check -assert
select -assert-none t:$adff t:$adffe t:$aldff t:$aldffe t:$dffsr t:$dffsre
memory_collect
opt_dff -simple-dffe
opt_clean
write_json design.json
"""

_RESET = ("$sdff", "$sdffe", "$sdffce")
_NO_RESET = ("$dff", "$dffe")


@dataclass(frozen=True)
class Structure:
    """The registers of a design that has neither latch nor loop nor asynchronous reset.

    Parameters
    ----------
    with_reset, without_reset : tuple of (name, bits)
        Registers by their names in the gateware. Those without are marked so there
        (``reset_less``): operands on their way, which something with a reset says to be valid.
    memory_bits : int
        Of memories, which nothing resets.
    """

    with_reset: tuple[tuple[str, int], ...]
    without_reset: tuple[tuple[str, int], ...]
    memory_bits: int

    @property
    def bits(self) -> tuple[int, int]:
        """Flip-flops with a reset, and without."""
        with_reset = sum(bits for _, bits in self.with_reset)
        return with_reset, sum(bits for _, bits in self.without_reset)


def check_structure(rtlil: str, top: str) -> Structure:
    """Looks for what must not be, and lists the registers.

    Raises
    ------
    TargetError
        If there is a latch, a loop of logic, a net with two drivers or none, or an asynchronous
        reset; or Yosys is missing or fails.
    """
    from slipstick_sim.toolchain import ToolError, run_full_yosys, without_zeros

    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "design.il").write_text(without_zeros(rtlil), "utf-8")
        try:
            run_full_yosys(_SCRIPT.format(top=top), cwd=folder)
        except ToolError as error:
            raise TargetError(f"{top} is not sound for silicon: {error}") from None
        module = json.loads((folder / "design.json").read_text("utf-8"))["modules"][top]
    return Structure(
        tuple(_registers(module, _RESET)), tuple(_registers(module, _NO_RESET)), _stored(module)
    )


def _registers(module: dict[str, Any], kinds: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Name and width of each register, by name; a part of one counts for itself."""
    names = dict[object, str]()
    for name, net in module["netnames"].items():
        if not net["hide_name"]:
            for bit in net["bits"]:
                names.setdefault(bit, name)
    cells = module["cells"].items()
    found = [
        (names.get(cell["connections"]["Q"][0]) or instance, len(cell["connections"]["Q"]))
        for instance, cell in cells
        if cell["type"] in kinds
    ]
    return iter(sorted(found))


def _stored(module: dict[str, Any]) -> int:
    memories = [
        cell["parameters"] for cell in module["cells"].values() if cell["type"] == "$mem_v2"
    ]
    return sum(int(memory["SIZE"], 2) * int(memory["WIDTH"], 2) for memory in memories)
