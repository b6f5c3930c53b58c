"""``slipstick compile``: the mapping table, and the program's file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..compiler.codegen.dram_list import find_dram_program, why_not_from_dram
from ..errors import InputError
from ..loading import compile_file
from ..profile.dram import DramCost, dram_cost, draw_dram_timeline
from ..profile.dram_roofline import draw_dram_roofline
from ..program import Program
from ..program.slip_file import encode, write_file
from ..program.steps import LayerRecord, RunStep
from ..runtime.end_to_end import wires_of
from ..runtime.stages.board_time import BoardTime
from ..targets import DEFAULT_TARGET, find_target
from .compile_stages import Asked, compile_for_boards
from .options import Batch, Json, Network, SemanticsName, TargetName


def compile_command(
    model: Network,
    target: TargetName = None,
    semantics: SemanticsName = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the .slip program.")
    ] = None,
    double_buffer: Annotated[
        bool, typer.Option(help="Give inputs and outputs two places each if memory allows it.")
    ] = True,
    batch: Batch = 1,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", help="Draw what core and DRAM do over time (PNG)."),
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option("--roofline", help="Draw layers under the roofs of core and DRAM (PNG)."),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option("--pipeline", help="Cut it into stages, one per target: T1,T2,..."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", help="Divide its layers' output channels over targets: T1,T2,..."),
    ] = None,
    boards: Annotated[
        str | None,
        typer.Option(
            "--boards", help="Take the fastest of one board, pipeline and split: T1,T2,..."
        ),
    ] = None,
    wire: Annotated[
        str | None,
        typer.Option(
            "--wire", help="Of several boards: the wire to each; by default its fastest one."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile a network; show where each layer runs and what it costs."""
    if pipeline is not None or split is not None or boards is not None:
        for option, value in (
            ("--target", target),
            ("--timeline", timeline),
            ("--roofline", roofline),
        ):
            if value is not None:
                raise InputError(f"{option} is for one board: leave it out")
        asked = Asked(
            model=model,
            pipeline=pipeline,
            split=split,
            boards=boards,
            wire=wire,
            semantics=semantics,
            output=output,
            options={"double_buffer": double_buffer, "batch": batch},
        )
        compile_for_boards(asked, json=json)
        return
    if wire is not None:
        raise InputError("--wire is for several boards: --pipeline, --split or --boards")
    name = target or DEFAULT_TARGET
    program = compile_file(
        model, name, semantics=semantics, double_buffer=double_buffer, batch=batch
    )
    cost = dram_cost(program)
    _draw(program, cost, name, timeline, roofline)
    data = encode(program)
    if output is not None:
        write_file(output, data)
    result = {
        "model": str(model),
        "target": name,
        **_entry(program, cost),
        "program_bytes": len(data),
        "end_to_end": end_to_end(program, name),
        "output": None if output is None else str(output),
    }
    if json:
        console.print_json(result)
    else:
        _show(program, result)


def _draw(
    program: Program,
    cost: DramCost | None,
    target: str,
    timeline: Path | None,
    roofline: Path | None,
) -> None:
    """Draws what was asked for; InputError if the program does not run from DRAM."""
    for option, path, draw in (
        ("--timeline", timeline, draw_dram_timeline),
        ("--roofline", roofline, draw_dram_roofline),
    ):
        if path is None:
            continue
        if cost is None:
            raise InputError(
                f"{option} is for networks that run from DRAM, not {program.name} on {target}"
            )
        draw(path, cost, target)


def _entry(program: Program, cost: DramCost | None) -> dict[str, Any]:
    """Returns a program's figures, ready for JSON."""
    traffic = program.transferred()
    return {
        "fingerprint": program.fingerprint,
        "semantics": program.semantics,
        "layers": [layer_entry(program, layer) for layer in program.layers],
        "predicted_cycles": program.predicted_cycles,
        "macs": program.macs,
        "host_macs": program.host_macs,
        "utilisation": utilisation(program, program.macs, program.predicted_cycles),
        "streamed": program.is_streamed,
        "double_buffered": program.alternate is not None,
        "input_released_after": released_after(program),
        "runs": sum(isinstance(step, RunStep) for step in program.steps),
        "loaded_bytes": traffic.loaded,
        "uploaded_bytes": traffic.uploaded,
        "downloaded_bytes": traffic.downloaded,
        "dram": None if cost is None else cost.entry(),
        "not_from_dram": why_not_from_dram(program) if cost is None else "",
        "state_bytes": program.state_bytes,
        "resident_bytes": program.resident_bytes,
    }


def end_to_end(program: Program, target: str) -> list[dict[str, Any]]:
    """Images per second that a batch is predicted to get over each wire of a target's board."""
    board = find_target(target).board
    if board is None or not program.predicted_cycles:
        return []
    hardware = program.hardware
    core = hardware.clock_hz / program.predicted_cycles
    if find_dram_program(program) is not None:
        # a wire of a byte per cycle is no limit: what is left is the core with its DRAM
        core = 1 / BoardTime(target, hardware).seconds(program)
    return [
        {
            "wire": wire.name,
            "inferences_per_second": 1 / BoardTime(target, hardware, wire).seconds(program),
            "core_inferences_per_second": core,
        }
        for wire in wires_of(board)
    ]


def utilisation(program: Program, macs: int, cycles: int) -> float | None:
    """Share of the array's peak multiply-accumulates; None where there are none."""
    if not macs or not cycles:
        return None
    return macs / (cycles * program.hardware.macs_per_cycle)


def layer_entry(program: Program, layer: LayerRecord) -> dict[str, Any]:
    """A layer of the mapping table as ``--json`` has it."""
    return {
        "layer": layer.name,
        "operator": layer.operator,
        "where": layer.where,
        "why": layer.why,
        "macs": layer.macs,
        "predicted_cycles": layer.predicted_cycles,
        "utilisation": utilisation(program, layer.macs, layer.predicted_cycles),
    }


def _show(program: Program, result: dict[str, Any]) -> None:
    columns = {
        "layer": "left",
        "operator": "left",
        "where": "left",
        "why": "text",
        "MACs": "right",
        "cycles": "right",
        "of peak": "right",
    }
    rows = [
        [
            entry["layer"],
            entry["operator"],
            entry["where"],
            entry["why"],
            # what the host multiplies is no work of the device's
            entry["macs"] if entry["where"] == "device" else None,
            entry["predicted_cycles"],
            console.percent(entry["utilisation"]),
        ]
        for entry in result["layers"]
    ]
    hardware = program.hardware
    on_host = f" and {program.host_macs:,} on the host" if program.host_macs else ""
    seconds = program.predicted_cycles / hardware.clock_hz
    console.print_table(
        f"{program.name} on {result['target']} ({hardware.shape}), cycles predicted",
        columns,
        rows,
        f"{program.macs:,} MACs in {program.predicted_cycles:,} cycles on the device"
        f" ({console.percent(result['utilisation']) or 'none'} of peak){on_host};"
        f" {seconds * 1e3:.3g} ms at {hardware.clock_hz / 1e6:g} MHz;"
        f" program of {result['program_bytes']:,} bytes"
        + (_UNQUANTISED if _is_unquantised(program) else "")
        + _places(result)
        + (_streaming(result) if result["streamed"] else "")
        + (_from_dram(result["dram"]) if result["dram"] else "")
        + (_NOT_FROM_DRAM.format(result["not_from_dram"]) if result["not_from_dram"] else "")
        + (_state(result) if result["state_bytes"] else "")
        + (f", written to {result['output']}" if result["output"] else ""),
    )
    if result["end_to_end"]:
        rows = [
            [
                entry["wire"],
                f"{entry['inferences_per_second']:,.1f}",
                f"{entry['core_inferences_per_second']:,.1f}",
            ]
            for entry in result["end_to_end"]
        ]
        console.print_table(
            "End to end over the board's wires, images per second of a batch, predicted",
            {"wire": "left", "images/s": "right", "core alone": "right"},
            rows,
            "slipstick bench --wire WIRE measures it, on the simulated RTL.",
        )


_NOT_FROM_DRAM = "; the host sends it in parts and the DRAM is not used: {}"
_DOUBLED = "; inputs and outputs have two places each, so transfers overlap the computation"
_SINGLE = "; inputs and outputs have one place each"
_RELEASED = ", and the next input arrives from cycle {:,} of a run on"
_UNQUANTISED = "; nothing runs on the device, as the network has no codes: quantise it to int8"


def _places(result: dict[str, Any]) -> str:
    if result["double_buffered"]:
        return _DOUBLED
    after = result["input_released_after"]
    return (_SINGLE if result["runs"] else "") + ("" if after is None else _RELEASED.format(after))


def released_after(program: Program) -> int | None:
    """The predicted cycle of a run from which on the next input may arrive; None if at its end."""
    return program.releases[0].cycle if program.releases else None


def _is_unquantised(program: Program) -> bool:
    """Tells whether the network computes with float32 numbers alone."""
    return all(tensor.dtype == "float32" for tensor in program.tensors.values())


def _streaming(result: dict[str, Any]) -> str:
    """Says how many runs and bytes a network takes that does not fit."""
    return (
        f"; more than the chip holds: {result['runs']:,} runs, {result['loaded_bytes']:,} bytes of"
        f" weights and instructions in, and of activations {result['uploaded_bytes']:,} in,"
        f" {result['downloaded_bytes']:,} out"
    )


def _from_dram(entry: dict[str, Any]) -> str:
    """Says how many bytes a network moves that runs from DRAM, and how fast it is."""
    bound = entry["bound_by_memory"]
    return (
        f"; from DRAM: {entry['dram_bytes']:,.0f} bytes per inference,"
        f" {entry['inferences_per_second']:,.1f} inferences per second"
        + (f" in batches of {entry['batch']}" if entry["batch"] > 1 else "")
        + f", {entry['dram_share_of_peak']:.0%} of the chip's peak rate"
        + (f"; bound by the DRAM: {', '.join(bound)}" if bound else "")
    )


def _state(result: dict[str, Any]) -> str:
    """Says how many bytes are kept from run to run, and how many travel."""
    return (
        f"; {result['state_bytes']:,} bytes are kept from run to run,"
        f" {result['resident_bytes']:,} of them on the device; of activations"
        f" {result['uploaded_bytes']:,} bytes go in and {result['downloaded_bytes']:,} come out"
    )
