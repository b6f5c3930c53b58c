"""The netlist after layout under the block's own bench, which holds it to the golden model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..asic.cell_models import cell_models
from ..asic.pdk import Pdk
from ..errors import TargetError
from .blocks import Block
from .netlist import CONSTANTS, Port, has_pin
from .spice import Extracted, layout_verilog

UNDEFINED = "an output is neither 0 nor 1"
"""Message of a failure, in place of cocotb's own."""


@dataclass(frozen=True)
class Simulation:
    """Result of a bench.

    Parameters
    ----------
    bench : str
    tests : int
        Of the bench; each compares with the golden model.
    failures : tuple of str
        A sentence for each that failed.
    cycles : int
        Of the clock.
    seconds : float
    """

    bench: str
    tests: int
    failures: tuple[str, ...]
    cycles: int
    seconds: float

    @property
    def undefined(self) -> str | None:
        """Returns the first failure of a test that read an output without a value, or None."""
        return next((it for it in self.failures if it.endswith(UNDEFINED)), None)

    def figures(self) -> dict[str, Any]:
        """Returns the figures as reports have them."""
        return {
            "bench": self.bench,
            "tests": self.tests,
            "failures": list(self.failures),
            "cycles": self.cycles,
            "seconds": round(self.seconds, 1),
        }


def wrapper(top: str, block: str, ports: Mapping[str, Port]) -> str:
    """Returns Verilog with the gateware's ports around a layout, whose ports are single bits.

    Parameters
    ----------
    top : str
        The wrapper's name.
    block : str
        The layout's.
    ports : mapping of Port by name
    """
    declared, pins, constants = list[str](), list[str](), list[str]()
    for name, port in ports.items():
        wide = len(port.nets) > 1
        size = f"[{len(port.nets) - 1}:0] " if wide else ""
        declared.append(f"  {port.direction} {size}{_escaped(name)}")
        for k, net in enumerate(port.nets):
            bit = f"{_escaped(name)}[{k}]" if wide else _escaped(name)
            if net in CONSTANTS.values():
                constants.append(f"  assign {bit} = {net};")
            elif has_pin(net):
                pins.append(f"    .{net}({bit})")
    lines = [
        f"module {top} (",
        ",\n".join(declared),
        ");",
        *constants,
        f"  {block} layout (",
        ",\n".join(pins),
        "  );",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def _escaped(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def layout_sources(
    found: Extracted, ports: Mapping[str, Port], supplies: tuple[str, str], pdk: Pdk
) -> str:
    """Returns Verilog of the extracted layout and of the cells in it."""
    inputs = [net for port in ports.values() if port.direction == "input" for net in port.nets]
    cells = {instance.cell for instance in found.instances.values()} & set(pdk.cells)
    return layout_verilog(found, inputs, supplies) + cell_models(pdk, cells)


def simulate(block: Block, ports: Mapping[str, Port], sources: str, folder: Path) -> Simulation:
    """Runs the block's bench on the netlist after layout, without delays.

    Parameters
    ----------
    block : Block
    ports : mapping of Port by name
        The gateware's.
    sources : str
        Verilog of the layout and its cells.
    folder : Path
        For the Verilog that is simulated.

    Raises
    ------
    TargetError
        If the simulation cannot be built.
    """
    try:
        from slipstick_sim.benches.runner import run_bench
        from slipstick_sim.cache import ToolError
    except ImportError as error:
        raise TargetError(f"simulations need the Python package {error.name}") from None
    bench, parameters = find_bench(block)
    text = wrapper(bench.name, block.top, ports) + sources
    (folder / "simulated.v").write_text(text, "utf-8")
    ready = replace(
        bench, parameters=(parameters,), verilog=lambda rtlil, top: text, optimisation="-O1"
    )
    try:
        result = run_bench(ready, parameters)
    except ToolError as error:
        raise TargetError(f"the layout of {block.name} cannot be simulated: {error}") from None
    failures = result.failures
    if not result.tests and not failures:
        failures = ("no test was run",)
    return Simulation(bench.name, result.tests, failures, result.cycles, result.seconds)


def find_bench(block: Block) -> tuple[Any, dict[str, Any]]:
    """The bench of a block, and its parameters."""
    if block.kind == "unit":
        from slipstick_sim.benches.bench_lns_unit import BENCH as bench

        return bench, {"format": block.number_format, "compensated": False}
    if block.kind == "array":
        from slipstick_sim.benches.bench_array import BENCH as bench

        return bench, {**block.shape, "number_format": block.number_format}
    if block.kind == "lane" and block.number_format == "int8":
        from slipstick_sim.benches.bench_requantizer import BENCH as bench

        return bench, {}
    if block.kind == "lane":
        from slipstick_sim.benches.bench_log_requantizer import BENCH as bench

        return bench, {"number_format": block.number_format}
    from slipstick_sim.benches.registry import Bench
    from slipstick_sim.netlist.gate_parts import element

    # the component is not looked at: the layout's Verilog takes its place
    bench = Bench(
        name=f"layout_{block.kind}",
        component=lambda number_format, **shape: element(number_format),
        test_module=f"slipstick.layout.{block.kind}_bench",
    )
    return bench, {"number_format": block.number_format, **block.shape}
