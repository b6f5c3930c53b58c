"""The netlist after layout with its delays: SDF in Icarus, under the block's own bench."""

import contextlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .. import toolchain
from ..asic.cell_models import cell_models
from ..asic.pdk import GATE, Pdk
from ..errors import TargetError
from .blocks import Block
from .netlist import CLOCK, Port
from .simulation import UNDEFINED, Simulation, find_bench, wrapper
from .timing import WireTiming

MARGIN = 1.05
"""The clock's period over the one that static timing asks for."""

_AFTER_CLOCK_NS = 0.05
"""Inputs change by so much later than the clock has come through its tree."""

_TRIPLE = re.compile(r"\((-?[\d.]*):[-\d.]*:(-?[\d.]*)\)")
_CELL = re.compile(r'(\(CELLTYPE "\w+"\))\s*(\(INSTANCE \w+\))')
_PATH = re.compile(r"\(IOPATH .*\)$", re.M)
_SDF_BEGIN = """(DELAYFILE
 (SDFVERSION "3.0")
 (DIVIDER /)
 (TIMESCALE 1ns)"""
_STATE = re.compile(r"^    reg (\w+(?:, \w+)*);$", re.M)
_NO_VALUE = re.compile(r"it contains non-0/1 values|Cannot convert Logic\('.'\) to ")
"""cocotb's words for a signal, or one bit, that is X or Z."""
_LATE_INPUT = """  bit {size}known_{name};
  always_comb known_{name} = {name};
  wire {size}late_{name};
  assign #{delay:.3f} late_{name} = known_{name};"""
_LATE_CLOCK = """  reg settled = 0;
  initial @(negedge {name}) settled = 1;
  wire late_{name} = {name} & settled;"""


def scaled_sdf(text: str, factor: float) -> str:
    """Multiplies an SDF file's delays, so that a bench's fixed clock is as fast as wanted.

    Only delays through cells are kept, the largest value of each triple: they have the load of the
    wires in them. Icarus 11 knows neither delays between pins nor checks of setup and hold.

    Raises
    ------
    TargetError
        If the text is no SDF file, or has no delay through a cell.
    """

    def scale(match: re.Match[str]) -> str:
        try:
            value = f"{float(match[2]) * factor:.4f}"
        except ValueError:
            raise TargetError(f"an SDF file must have numbers as delays, not {match[0]}") from None
        return f"({value}:{value}:{value})"

    lines = [_SDF_BEGIN]
    for cell in text.split("(CELL\n")[1:]:
        header, paths = _CELL.match(cell.strip()), _PATH.findall(cell)
        if header is not None and paths:
            lines += [f" (CELL\n  {header[1]}\n  {header[2]}\n  (DELAY\n   (ABSOLUTE"]
            lines += [f"    {_TRIPLE.sub(scale, path)}" for path in paths]
            lines += ["   )\n  )\n )"]
    if len(lines) == 1:
        raise TargetError("an SDF file must have delays through cells")
    return "\n".join([*lines, ")", ""])


def delayed_models(pdk: Pdk, names: Iterable[str]) -> str:
    """Returns Verilog of cells whose paths can be given delays; registers begin with 0.

    Raises
    ------
    LibertyError
        If a cell is unknown, or does what a model cannot.
    """
    texts = list[str]()
    for name in sorted(set(names)):
        cell, model = pdk.cells[name], cell_models(pdk, [name])
        inputs = cell.inputs
        if cell.kind != GATE:
            clock = cell.state.get("clocked_on")
            inputs = tuple(clock.variables) if clock is not None else cell.inputs
        paths = [f"    ({pin} => {output}) = (0, 0);" for output in cell.outputs for pin in inputs]
        block = "\n".join(["  specify", *paths, "  endspecify", "endmodule"])
        model = _STATE.sub(lambda found: found[0] + _initial(found[1]), model)
        texts.append(model.replace("endmodule", block))
    return "\n".join(texts)


def _initial(names: str) -> str:
    return "\n    initial begin " + " ".join(f"{name} = 0;" for name in names.split(", ")) + " end"


def input_delay(timing: WireTiming) -> float:
    """Returns the nanoseconds from the clock's edge at its port until inputs change."""
    return timing.clock_latency_ns + timing.skew_ns + _AFTER_CLOCK_NS


def needed_period(timing: WireTiming) -> float:
    """The clock's period in nanoseconds that a bench needs, which changes inputs at its edge.

    Its inputs come after the clock has reached the registers, and their paths begin then.
    """
    ports = timing.port_period_ns
    late = 0.0 if ports is None else ports + timing.clock_latency_ns + _AFTER_CLOCK_NS
    return MARGIN * max(timing.period_ns, late)


def delayed_sources(
    block: Block,
    ports: Mapping[str, Port],
    netlist: str,
    cells: Iterable[str],
    pdk: Pdk,
    *,
    top: str,
    input_delay_ns: float,
) -> str:
    """Returns Verilog of the layout with an SDF file, within a top whose inputs are late.

    An input that the bench does not drive is 0, as in the simulation without delays. The clock
    waits for its first falling edge: a rising edge at time 0 comes before gates have settled, and
    registers would take undefined values.
    """
    annotated = wrapper("annotated", block.top, ports)
    declared, wires, pins = list[str](), list[str](), list[str]()
    for name, port in ports.items():
        size = f"[{len(port.nets) - 1}:0] " if len(port.nets) > 1 else ""
        declared.append(f"  {port.direction} {size}{name}")
        late = name
        if port.direction == "input":
            late = f"late_{name}"
            form = _LATE_CLOCK if name == CLOCK else _LATE_INPUT
            wires.append(form.format(name=name, size=size, delay=input_delay_ns))
        pins.append(f"    .{name}({late})")
    lines = [
        "`timescale 1ns/1ps",
        f"module {top} (",
        ",\n".join(declared),
        ");",
        *wires,
        "  annotated delayed (",
        ",\n".join(pins),
        "  );",
        '  initial $sdf_annotate("delays.sdf", delayed.layout);',
        "endmodule",
        "",
    ]
    return "\n".join(lines) + annotated + netlist + delayed_models(pdk, cells)


def simulate_delays(
    block: Block,
    ports: Mapping[str, Port],
    netlist: str,
    sdf: str,
    cells: Iterable[str],
    pdk: Pdk,
    timing: WireTiming,
    folder: Path,
) -> Simulation:
    """Runs the block's bench on the netlist after layout with its delays, near its fastest clock.

    Parameters
    ----------
    block : Block
    ports : mapping of Port by name
        The gateware's.
    netlist : str
        Verilog of the layout.
    sdf : str
        Its delays.
    cells : iterable of str
        In it.
    pdk : Pdk
    timing : WireTiming
        Tells the clock's period.
    folder : Path
        For all files; made if it is missing.

    Raises
    ------
    TargetError
        If Icarus is missing, or the simulation cannot be built.
    """
    toolchain.ICARUS.find()
    from slipstick_sim.benches.drivers.streams import CLOCK_PERIOD_NS

    bench, parameters = find_bench(block)
    factor = CLOCK_PERIOD_NS / needed_period(timing)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "delays.sdf").write_text(scaled_sdf(sdf, factor), "utf-8")
    late = factor * input_delay(timing)
    text = delayed_sources(block, ports, netlist, cells, pdk, top=bench.name, input_delay_ns=late)
    (folder / "delayed.v").write_text(text, "utf-8")
    begin = time.monotonic()
    results = _run(bench, parameters, folder)
    return _read(results, bench.name, CLOCK_PERIOD_NS, time.monotonic() - begin)


def _run(bench: Any, parameters: Mapping[str, Any], folder: Path) -> Path:
    """Builds and runs the simulation; returns the file of its results."""
    from cocotb_tools.runner import get_runner
    from slipstick_sim.benches.registry import PARAMETERS_VARIABLE

    runner, results = get_runner("icarus"), folder / "results.xml"
    program = folder / "build" / "sim.vvp"
    # those of an earlier run would pass for this one's if the build fails
    for file in (results, program):
        file.unlink(missing_ok=True)
    with contextlib.suppress(SystemExit, RuntimeError):
        runner.build(
            sources=[folder / "delayed.v"],
            hdl_toplevel=bench.name,
            build_args=["-gspecify", "-g2012", "-Tmax"],
            build_dir=folder / "build",
            timescale=("1ns", "1ps"),
            always=True,
            log_file=folder / "build.log",
        )
    if not program.is_file():
        said = (folder / "build.log").read_text("utf-8", errors="replace")
        raise TargetError(f"Icarus cannot build it: {toolchain.last_error(said, 1)}")
    (folder / "build" / "delays.sdf").write_bytes((folder / "delays.sdf").read_bytes())
    with contextlib.suppress(SystemExit, RuntimeError):
        runner.test(
            test_module=bench.test_module,
            hdl_toplevel=bench.name,
            hdl_toplevel_lang="verilog",
            build_dir=folder / "build",
            test_dir=folder / "build",
            results_xml=str(results),
            log_file=folder / "test.log",
            seed=1,
            extra_env={PARAMETERS_VARIABLE: json.dumps(dict(parameters))},
        )
    return results


def _read(results: Path, bench: str, period_ns: float, seconds: float) -> Simulation:
    if not results.is_file():
        return Simulation(bench, 0, ("the simulation ended without results",), 0, seconds)
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    failures, nanoseconds = list[str](), 0.0
    for case in cases:
        for found in case.findall("properties/property[@name='sim_time_duration']"):
            nanoseconds += float(found.get("value", 0))
        for kind in ("failure", "error"):
            if (found := case.find(kind)) is not None:
                message = (found.get("message") or found.text or kind).strip()
                message = UNDEFINED if _NO_VALUE.search(message) else message
                failures.append(f"{case.get('name')}: {message}")
    if not cases:
        failures.append("no test was run")
    return Simulation(bench, len(cases), tuple(failures), round(nanoseconds / period_ns), seconds)
