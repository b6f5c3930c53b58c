"""Layer lists through SCALE-Sim and through the compiler's cycle model, side by side.

``python -m slipstick.benchmarks.scalesim``, from the project's folder. SCALE-Sim: a
weight-stationary array of the same rows and columns that no memory ever stalls. Ours: each layer a
network of its own, all of it on the chip; every cycle counts from the run's start until the last
result is in memory, requantised.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from slipstick_rtl.config import Configuration

from .. import console, reports
from ..compiler import compile_graph
from ..errors import InputError
from ..failures import command_status
from ..profile.measure import measure
from ..program import Program
from ..program.steps import RunStep
from ..targets import find_target
from .scalesim_model import scalesim_cycles
from .suite import shared_folder
from .topologies import TopologyLayer, layer_graph, read_topology

COMMAND = "python -m slipstick.benchmarks.scalesim"
TARGET = "ulx3s-85f"
TOPOLOGIES = Path("data", "topologies")
LISTS = (
    "Resnet18.csv",
    "Resnet50.csv",
    "mobilnet_paper.csv",
    "yolo_tiny.csv",
    "gemm_vit_s.csv",
    "alexnet.csv",
    "lenet_conv.csv",
)
SIMULATED_CYCLES = 60_000
"""Layers of at most so many are simulated, of each list the smallest and the largest."""
_MEMORIES = ("activation_bytes", "weight_bytes", "instruction_words", "parameter_words")
"""Memories that keep their usual size in simulated hardware: the largest take minutes to build."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A layer's cycles.

    Parameters
    ----------
    layer : str
    macs : int
    scalesim : int
        SCALE-Sim's, see ``scalesim_cycles``.
    alone : int
        Predicted for a program of nothing else: from its start, fetching its first instruction,
        until its last result is in memory.
    added : int
        Predicted of what it adds to a program that has just computed a layer like it: two copies'
        cycles less one's. Between the layers of a network, too, one's end hides the next's start.
    runs : int
        1: all of it was on the chip at once.
    """

    layer: str
    macs: int
    scalesim: int
    alone: int
    added: int
    runs: int


def enlarged(configuration: Configuration) -> Configuration:
    """The same array, pixel by pixel, with the largest memories: whatever a layer needs fits."""
    return replace(
        configuration,
        pixels=1,
        activation_bytes=1 << 23,
        weight_bytes=1 << 24,
        instruction_words=1 << 16,
        parameter_words=1 << 16 if configuration.parameter_words else 0,
    )


def _runs(program: Program) -> int:
    return sum(isinstance(step, RunStep) for step in program.steps)


def compare(layers: Sequence[TopologyLayer], configuration: Configuration) -> Iterator[Comparison]:
    """Each layer through both; those of one shape are worked out once."""
    known: dict[TopologyLayer, Comparison] = {}
    for layer in layers:
        shape = replace(layer, name="")
        if shape not in known:
            alone = compile_graph(layer_graph(layer), configuration)
            twice = compile_graph(layer_graph(layer, copies=2), configuration)
            known[shape] = Comparison(
                layer="",
                macs=layer.macs,
                scalesim=scalesim_cycles(layer, configuration.rows, configuration.columns),
                alone=alone.predicted_cycles,
                added=twice.predicted_cycles - alone.predicted_cycles,
                runs=_runs(alone),
            )
        yield replace(known[shape], layer=layer.name)


def simulate(
    layers: Sequence[TopologyLayer], found: Sequence[Comparison], configuration: Configuration
) -> Iterator[dict[str, Any]]:
    """The smallest and the largest of the layers that are small enough, on the compiled RTL."""
    memories = {name: getattr(Configuration, name) for name in _MEMORIES}
    hardware = replace(configuration, **memories)
    programs = {}
    for layer, comparison in zip(layers, found, strict=True):
        if comparison.alone <= SIMULATED_CYCLES and layer.weight_bytes <= hardware.weight_bytes:
            program = compile_graph(layer_graph(layer), hardware)
            if _runs(program) == 1:
                programs[layer.name] = program
    order = sorted(programs, key=lambda name: programs[name].predicted_cycles)
    for name in dict.fromkeys((*order[:1], *order[-1:])):
        cycles, predicted = measure(programs[name]).cycles, programs[name].predicted_cycles
        yield {
            "layer": name,
            "predicted_cycles": predicted,
            "rtl_cycles": cycles,
            "prediction_error": predicted / cycles - 1,
        }


def _network(name: str, configuration: Configuration, *, rtl: bool) -> dict[str, Any]:
    layers = read_topology(shared_folder() / TOPOLOGIES / name)
    found = list(compare(layers, configuration))
    totals = {
        key: sum(getattr(comparison, key) for comparison in found)
        for key in ("macs", "scalesim", "alone", "added")
    }
    slots = configuration.macs_per_cycle
    return {
        "network": Path(name).stem,
        **totals,
        "alone_to_scalesim": totals["alone"] / totals["scalesim"],
        "added_to_scalesim": totals["added"] / totals["scalesim"],
        "share_of_peak": totals["macs"] / (totals["alone"] * slots),
        "scalesim_share_of_peak": totals["macs"] / (totals["scalesim"] * slots),
        "slower_alone": [c.layer for c in found if c.alone > c.scalesim],
        "slower_added": [c.layer for c in found if c.added > c.scalesim],
        "layers": [asdict(comparison) for comparison in found],
        "simulated": list(simulate(layers, found, configuration)) if rtl else [],
    }


def scalesim_benchmark(
    target: Annotated[
        str, typer.Option("--target", "-t", help="Whose array: a target's name or 1x16x16.")
    ] = TARGET,
    rtl: Annotated[
        bool, typer.Option(help="Simulate the smallest layers of each list as well.")
    ] = True,
) -> int:
    """Compares all lists that are there, prints the tables and writes the report."""
    configuration = find_target(target).configuration
    if not configuration.traits.overlaps_streams:
        raise InputError(f"target {target} must have a pipelined engine: SCALE-Sim's is one")
    configuration = enlarged(configuration)
    networks = []
    for name in LISTS:
        path = shared_folder() / TOPOLOGIES / name
        if not path.is_file():
            console.print_line(f"skipped: {path} is not there; set SLIPSTICK_DATA")
            continue
        with console.step(f"{path.stem} through SCALE-Sim and the compiler"):
            networks.append(_network(name, configuration, rtl=rtl))
        _show_layers(networks[-1], configuration)
    if not networks:
        return 0
    _show(networks, configuration)
    figures = {
        "target": target,
        "array": configuration.shape,
        "fingerprint": configuration.fingerprint,
        "networks": networks,
    }
    console.print_line(f"written to {reports.write('bench_scalesim', COMMAND, figures)}")
    return 0


def _show_layers(network: dict[str, Any], configuration: Configuration) -> None:
    columns = dict.fromkeys(
        ("MACs", "SCALE-Sim", "alone", "to SCALE-Sim", "added", "to SCALE-Sim's"), "right"
    )
    rows = [
        [
            entry["layer"],
            entry["macs"],
            entry["scalesim"],
            entry["alone"],
            f"{entry['alone'] / entry['scalesim']:.3f}",
            entry["added"],
            f"{entry['added'] / entry['scalesim']:.3f}",
        ]
        for entry in network["layers"]
    ]
    simulated = "; ".join(
        f"{entry['layer']} {entry['rtl_cycles']:,} ({entry['prediction_error']:+.2%} predicted)"
        for entry in network["simulated"]
    )
    console.print_table(
        f"{network['network']}, cycles on {configuration.rows} x {configuration.columns}",
        {"layer": "left", **columns},
        rows,
        f"RTL simulated, alone: {simulated}" if simulated else "",
    )


def _show(networks: Sequence[dict[str, Any]], configuration: Configuration) -> None:
    columns = (
        "layers",
        "SCALE-Sim",
        "of peak",
        "alone",
        "of peak, ours",
        "to SCALE-Sim",
        "slower",
        "added",
        "to SCALE-Sim's",
        "slower when added",
    )
    rows = [
        [
            entry["network"],
            len(entry["layers"]),
            entry["scalesim"],
            console.percent(entry["scalesim_share_of_peak"]),
            entry["alone"],
            console.percent(entry["share_of_peak"]),
            f"{entry['alone_to_scalesim']:.3f}",
            len(entry["slower_alone"]),
            entry["added"],
            f"{entry['added_to_scalesim']:.3f}",
            len(entry["slower_added"]),
        ]
        for entry in networks
    ]
    console.print_table(
        f"cycles of whole lists on {configuration.rows} x {configuration.columns}, SCALE-Sim's"
        " weight-stationary ideal and ours",
        {"network": "left", **dict.fromkeys(columns, "right")},
        rows,
        "alone: each layer a program; added: what it adds behind another",
    )
    for kind, what in (("slower_alone", "alone"), ("slower_added", "added to a program")):
        for entry in networks:
            if entry[kind]:
                console.print_line(
                    f"slower than SCALE-Sim, {what}, {entry['network']}: {', '.join(entry[kind])}"
                )


def main() -> int:
    """The command line."""
    return command_status(scalesim_benchmark)


if __name__ == "__main__":
    sys.exit(main())
