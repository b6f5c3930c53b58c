"""Mapped netlists against the gateware: random operands cycle by cycle, and proofs of small blocks.

``python -m slipstick.asic.signoff PDK`` does both.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TargetError
from .cell_models import cell_models
from .mapping import NETLIST, Mapping, map_design
from .memories import FLIP_FLOPS
from .pdk import Pdk

if TYPE_CHECKING:
    from amaranth.lib import wiring

RESET_CYCLES = 64
"""Before outputs are compared: in them registers without a reset take values that follow from
operands; what they begin with differs, as a netlist may store the inverse."""

_EFFORT = {"OPT_FAST": "-O1", "OPT_SLOW": "-O0", "OPT_GLOBAL": "-O0"}
"""Compiling takes longer than some thousand cycles."""

GOLD, GATES = "gold", "gates"

_GOLD = f"""
read_rtlil gold.il
hierarchy -auto-top
proc
flatten
opt_clean
memory_collect
rename -top {GOLD}
"""

_PROOF = f"""
{_GOLD}
attrmap -remove init
memory_map
opt_clean
design -stash gold
read_verilog cells.v {NETLIST}
hierarchy -top {GATES}
proc
flatten
opt_clean
design -stash gates
design -copy-from gold {GOLD}
design -copy-from gates {GATES}
equiv_make {GOLD} {GATES} equal
hierarchy -top equal
opt_clean
equiv_simple -short
equiv_induct -seq {{depth}}
equiv_status -assert
"""

_PROOF_DEPTH = 4
"""Cycles of the induction, more than any register is behind another that the proof cannot see."""

_MAIN = """
#include "Vbench.h"
#include <cstdio>
#include <cstdlib>

int main(int count, char **arguments) {
    VerilatedContext context;
    context.commandArgs(count, arguments);
    Vbench bench{&context};
    const long cycles = std::atol(arguments[1]);
    for (long half = 0; half < 2 * cycles; half++) {
        bench.rst = half < 2 * RESET_CYCLES;
        bench.clk = half & 1;
        bench.eval();
    }
    std::printf("%u %u\\n", bench.mismatches, bench.changes);
    bench.final();
}
"""


@dataclass(frozen=True)
class Comparison:
    """A simulation of gates beside the gateware.

    Parameters
    ----------
    name : str
    cells : int
        Of the library.
    cycles : int
        In which outputs were compared.
    changes : int
        Cycles in which they were others than in the cycle before.
    mismatches : int
        Cycles in which they differed.
    """

    name: str
    cells: int
    cycles: int
    changes: int
    mismatches: int


@dataclass(frozen=True)
class _Port:
    name: str
    width: int
    is_input: bool


def compare(
    component: "wiring.Component",
    name: str,
    pdk: Pdk,
    *,
    cycles: int,
    seed: int = 1,
    gated: bool = False,
) -> Comparison:
    """Simulates a component's gates and the gateware with the same random operands.

    Every input bit is random in every cycle, in those of the reset too. A stream's payload counts
    while it is valid.

    Parameters
    ----------
    component : wiring.Component
    name : str
        For the result.
    pdk : Pdk
    cycles : int
        To compare.
    seed : int
    gated : bool
        The netlist has clock gates; the gateware has none.

    Raises
    ------
    TargetError
        If a tool is missing or fails, or the library has cells that cannot be modelled.
    """
    from slipstick_sim.toolchain import ToolError, run_full_yosys, run_tool, tool_environment

    with tempfile.TemporaryDirectory(prefix="slipstick.") as temporary:
        folder = Path(temporary)
        mapping = _prepare(component, pdk, folder, booth=True, gated=gated)
        ports = list(_ports(mapping))
        (folder / "bench.v").write_text(_bench(ports), "utf-8")
        main = _MAIN.replace("RESET_CYCLES", str(RESET_CYCLES))
        (folder / "main.cpp").write_text(main, "utf-8")
        sources = ["bench.v", "gold.v", "cells.v", NETLIST, "main.cpp"]
        options = ["--x-assign", "0", "--x-initial", "0", "--no-timing", "-Wno-fatal", "-Wno-lint"]
        command = ["verilator", "--cc", "--exe", "--build", "--top-module", "bench", "-Mdir", "obj"]
        try:
            run_full_yosys(f"{_GOLD}write_verilog gold.v\n", cwd=folder)
            with tool_environment(_EFFORT):
                run_tool([*command, *options, *sources], cwd=folder)
            run = ["obj/Vbench", str(cycles + RESET_CYCLES), f"+verilator+seed+{seed}"]
            said = run_tool([folder / run[0], *run[1:]], cwd=folder)
        except ToolError as error:
            raise TargetError(f"gates of {name} cannot be simulated: {error}") from None
        mismatches, changes = map(int, said.split())
        return Comparison(name, mapping.cells.total(), cycles, changes, mismatches)


def prove(component: "wiring.Component", name: str, pdk: Pdk) -> None:
    """Proves that a component's gates do the same as the gateware, for all operands and states.

    Registers are paired by their names, and what lies between is compared by SAT.

    Raises
    ------
    TargetError
        If they do not, or nothing can be proved, or a tool is missing or fails.
    """
    from slipstick_sim.toolchain import ToolError, run_full_yosys

    with tempfile.TemporaryDirectory(prefix="slipstick.") as temporary:
        folder = Path(temporary)
        _prepare(component, pdk, folder, booth=False)
        try:
            run_full_yosys(_PROOF.format(depth=_PROOF_DEPTH), cwd=folder)
        except ToolError as error:
            raise TargetError(f"gates of {name} are not proved equal: {error}") from None


def _prepare(
    component: "wiring.Component", pdk: Pdk, folder: Path, *, booth: bool, gated: bool = False
) -> Mapping:
    """Files of the gateware (``gold.il``), the netlist and its cells."""
    from slipstick_sim.toolchain import convert_to_rtlil, without_zeros

    rtlil = convert_to_rtlil(component, GATES)
    (folder / "gold.il").write_text(without_zeros(rtlil), "utf-8")
    mapping = map_design(
        rtlil,
        GATES,
        pdk,
        folder,
        block_depth=0,
        memories=FLIP_FLOPS,
        booth=booth,
        gated=gated,
    )
    (folder / "cells.v").write_text(cell_models(pdk, mapping.cells), "utf-8")
    return mapping


def _ports(mapping: Mapping) -> Iterator[_Port]:
    """All but clock and reset."""
    ports: dict[str, Any] = mapping.design["modules"][mapping.top]["ports"]
    for name, port in ports.items():
        if name not in ("clk", "rst"):
            yield _Port(name, len(port["bits"]), port["direction"] == "input")


def _bench(ports: list[_Port]) -> str:
    """Both designs with random inputs, and counters of what their outputs do."""
    inputs = [port for port in ports if port.is_input]
    outputs = [port for port in ports if not port.is_input]
    width = sum(port.width for port in inputs)
    seen = sum(port.width for port in outputs)

    def connections(net: str) -> str:
        wires = ["    .clk(clk), .rst(rst)"]
        for vector, group in (("stimulus", inputs), (net, outputs)):
            low = 0
            for port in group:
                wires.append(f"    .{_escaped(port.name)}({vector}[{low}+:{port.width}])")
                low += port.width
        return ",\n".join(wires)

    random = ", ".join(["$urandom"] * (width // 32 + 1))
    mask = ", ".join(reversed(list(_masks(outputs))))
    return f"""module bench (
    input clk, input rst, output reg [31:0] mismatches, output reg [31:0] changes
);
  localparam WORDS = {width // 32 + 1};
  reg [32*WORDS-1:0] stimulus;
  wire [{seen - 1}:0] expected, found;
  reg [{seen - 1}:0] last;
  wire [{seen - 1}:0] mask = {{{mask}}};
  {GOLD} first (
{connections("expected")}
  );
  {GATES} second (
{connections("found")}
  );
  always @(posedge clk) begin
    stimulus <= {{{random}}};
    last <= expected;
    if (rst) begin mismatches <= 0; changes <= 0; end
    else begin
      mismatches <= mismatches + {{31'b0, |(mask & (expected ^ found))}};
      changes <= changes + {{31'b0, |(expected ^ last)}};
    end
  end
endmodule
"""


def _masks(outputs: list[_Port]) -> Iterator[str]:
    """Yields for each output a mask, as Verilog, of the bits that count."""
    places, low = dict[str, int](), 0
    for port in outputs:
        places[port.name] = low
        low += port.width
    for port in outputs:
        valid = places.get(port.name.removesuffix("payload") + "valid")
        count = "1'b1" if valid is None or port.name.endswith("valid") else f"expected[{valid}]"
        yield f"{{{port.width}{{{count}}}}}"


def _escaped(name: str) -> str:
    """An identifier of Verilog."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "
