"""``slipstick bench``: cycles of the compiled RTL, layer by layer, beside the prediction."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..benchmarks.dram import measure_from_dram
from ..benchmarks.end_to_end.measure import IMAGES, EndToEnd, measure_end_to_end
from ..compiler.codegen.dram_list import find_dram_program
from ..devices.wire_models import WIRES, find_wire_model
from ..errors import InputError
from ..loading import configuration_of, is_program, load_program
from ..profile.chrome_trace import write_trace
from ..profile.measure import Benchmark, benchmark_entry, measure
from ..profile.roofline import draw_roofline
from ..program import Program
from ..targets import DEFAULT_TARGET
from .options import Batch, Json, Model, SemanticsName, TargetName

TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", help="Write what each unit did when as a trace for Perfetto (JSON)."),
]
RooflineFile = Annotated[
    Path | None, typer.Option("--roofline", help="Draw each layer under its roofs (PNG).")
]

WireName = Annotated[
    str | None,
    typer.Option(
        "--wire",
        help=f"Measure a batch end to end over a wire: {', '.join(WIRES)}.".replace("[", "\\["),
    ),
]
ReplyLatency = Annotated[
    float | None,
    typer.Option(
        "--reply-latency",
        help="With --wire: seconds from the end of an answer on the wire to the program that waits"
        " for it, such as 0.016 of a serial adapter's timer.",
    ),
]
Images = Annotated[
    int | None, typer.Option("--images", help=f"With --wire: images of the batch ({IMAGES}).")
]


def bench_command(
    model: Model,
    target: TargetName = None,
    semantics: SemanticsName = None,
    trace: TraceFile = None,
    roofline: RooflineFile = None,
    wire: WireName = None,
    reply_latency: ReplyLatency = None,
    images: Images = None,
    batch: Batch = 1,
    json: Json = False,
) -> None:
    """Simulate one inference of the RTL; show cycles and share of peak per layer.

    With --wire: a batch of images through a wire, and what reaches the user. A network that runs
    from DRAM: the whole list, with the DRAM's timing.
    """
    if wire is None and (reply_latency is not None or images is not None):
        raise InputError("--reply-latency and --images need a --wire")
    if wire is not None and (trace is not None or roofline is not None):
        raise InputError("--trace and --roofline are of one inference: leave out --wire")
    wanted = configuration_of(target) if target else None
    program = load_program(model, wanted, semantics, batch)
    name = target or ("its own" if is_program(model) else DEFAULT_TARGET)
    if wire is not None:
        count = IMAGES if images is None else images
        if not 1 <= count <= _MOST_IMAGES:
            raise InputError(f"--images must be within 1..{_MOST_IMAGES}, not {count}")
        found = find_wire_model(wire, reply_latency)
        with console.waiting(f"simulating {count} images of {program.name} over {found.name}"):
            end_to_end = measure_end_to_end(program, found, count, target)
        _show_end_to_end(end_to_end, {"model": str(model), "target": name}, json)
        return
    if find_dram_program(program) is not None and trace is None and roofline is None:
        _bench_from_dram(program, {"model": str(model), "target": name}, json)
        return
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


_MOST_IMAGES = 10_000


def _bench_from_dram(program: Program, names: dict[str, Any], json: bool) -> None:
    """Prints it; exit status 1 if a result was wrong."""
    with console.waiting(f"simulating {program.name} from DRAM on {names['target']}"):
        entry = {**names, **measure_from_dram(program)}
    if json:
        console.print_json(entry)
    else:
        rows = [
            ["cycles per image", f"{entry['cycles']:,.0f}"],
            ["predicted", f"{entry['cycles_predicted']:,.0f}"],
            ["inferences per second", f"{entry['inferences_per_second']:,.1f}"],
            ["bytes of DRAM per image", f"{entry['dram_bytes']:,.0f}"],
            ["share of the DRAM's peak rate", console.percent(entry["dram_share_of_peak"])],
            ["right results", "yes" if entry["equal"] else "no"],
        ]
        console.print_table(
            f"{program.name} on {names['target']} from {entry['dram']}, RTL simulated",
            {"figure": "left", "value": "right"},
            rows,
            f"{entry['batch']} in a list at {entry['clock_mhz']:g} MHz",
        )
    if not entry["equal"]:
        raise typer.Exit(1)


def _show_end_to_end(measured: EndToEnd, names: dict[str, Any], json: bool) -> None:
    """Prints it; exit status 1 if a result was wrong."""
    entry = {**names, **measured.entry()}
    if json:
        console.print_json(entry)
    else:
        rows = [
            ["images per second, end to end", f"{measured.per_second:,.1f}"],
            ["the core alone", f"{measured.core_per_second:,.1f}"],
            ["the wire alone, inputs and outputs", f"{measured.wire_per_second:,.1f}"],
            ["share of the core's rate", console.percent(entry["share_of_core"])],
            ["share of the wire's rate", console.percent(entry["share_of_wire"])],
            ["bytes up per image", f"{entry['bytes_up_per_image']:,.1f}"],
            ["bytes down per image", f"{entry['bytes_down_per_image']:,.1f}"],
            ["round trips", measured.round_trips],
            ["right results", f"{measured.equal_images} of {measured.images}"],
        ]
        title = f"{measured.program.name} on {names['target']} over {measured.wire.name}"
        console.print_table(
            f"{title}, RTL simulated, wire modelled",
            {"figure": "left", "value": "right"},
            rows,
            f"{measured.images} images at {measured.clock_mhz:g} MHz; the program's own time on"
            " the computer is left out",
        )
    if measured.equal_images < measured.images:
        raise typer.Exit(1)


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
            f"; {rate:,.0f} inferences per second at {benchmark.clock_mhz:g} MHz"
            f" ({result['clock_is']})"
            if rate is not None
            else ""
        ),
    )
