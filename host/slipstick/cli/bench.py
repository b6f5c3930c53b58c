"""``slipstick bench``: cycles of the compiled RTL, layer by layer, beside the prediction."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..loading import configuration_of, is_program, load_program
from ..profile.chrome_trace import write_trace
from ..profile.measure import Benchmark, benchmark_entry, measure
from ..profile.roofline import draw_roofline
from ..targets import DEFAULT_TARGET
from .options import Json, Model, SemanticsName, TargetName

TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", help="Write what each unit did when as a trace for Perfetto (JSON)."),
]
RooflineFile = Annotated[
    Path | None, typer.Option("--roofline", help="Draw each layer under its roofs (PNG).")
]


def bench_command(
    model: Model,
    target: TargetName = None,
    semantics: SemanticsName = None,
    trace: TraceFile = None,
    roofline: RooflineFile = None,
    json: Json = False,
) -> None:
    """Simulate one inference of the RTL; show cycles and share of peak per layer."""
    program = load_program(model, configuration_of(target) if target else None, semantics)
    name = target or ("its own" if is_program(model) else DEFAULT_TARGET)
    with console.waiting(f"simulating {program.name} on {name}"):
        benchmark = measure(program, target=target)
    result = {"model": str(model), "target": name, **benchmark_entry(benchmark)}
    if trace is not None:
        write_trace(trace, benchmark)
        result["trace"] = str(trace)
    if roofline is not None:
        draw_roofline(roofline, benchmark, name)
        result["roofline"] = str(roofline)
    if json:
        console.print_json(result)
        return
    _show(result, benchmark)
    for what in ("trace", "roofline"):
        if what in result:
            console.print_line(f"{what} written to {result[what]}")


def _show(result: dict[str, Any], benchmark: Benchmark) -> None:
    columns = {
        "layer": "left",
        "operator": "left",
        "where": "left",
        "MACs": "right",
        "cycles": "right",
        "predicted": "right",
        "of peak": "right",
    }
    rows = [
        [
            entry["layer"],
            entry["operator"],
            entry["where"],
            # what the host multiplies is no work of the device's
            entry["macs"] if entry["where"] == "device" else None,
            entry["cycles"],
            entry["predicted_cycles"],
            console.percent(entry["utilisation"]),
        ]
        for entry in result["layers"]
    ]
    program = benchmark.program
    rate = benchmark.inferences_per_second
    console.print_table(
        f"{program.name} on {result['target']} ({result['shape']}), RTL simulated",
        columns,
        rows,
        f"{program.macs:,} MACs in {benchmark.cycles:,} cycles"
        f" ({program.predicted_cycles:,} predicted, {benchmark.prediction_error:+.2%}),"
        f" {benchmark.utilisation:.1%} of peak"
        + (
            f"; {rate:,.0f} inferences a second at {benchmark.clock_mhz:g} MHz"
            f" ({result['clock_is']})"
            if rate is not None
            else ""
        ),
    )
