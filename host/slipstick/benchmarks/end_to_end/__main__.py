"""Measures end to end: ``python -m slipstick.benchmarks.end_to_end``; ``--help`` tells more.

Each case is a network, a board and a wire: a batch goes through the modelled wire to the simulated
RTL, as ``slipstick bench --wire`` does. Then the host's own cost, against devices that only answer.
"""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ... import console, reports
from ...failures import exit_status
from ...loading import load_program
from ...targets import find_target
from ..suite import shared_folder
from .host_cost import host_cost
from .measure import EndToEnd, measure_end_to_end
from .wires import find_wire_model

COMMAND = "python -m slipstick.benchmarks.end_to_end"
NETWORKS = {
    "ResNet-8": "ic01_resnet8_int8.tflite",
    "DS-CNN": "kws01_dscnn_int8.tflite",
    "VWW": "vww01_mobilenetv1_025_int8.tflite",
    "AD": "ad01_int8.tflite",
}
HOST = "host"


@dataclass(frozen=True)
class Case:
    """A network of ``NETWORKS`` on a target, over a wire, and the seconds that answers are late."""

    network: str
    target: str
    wire: str
    reply_seconds: float | None = None
    images: int = 32


CASES = (
    Case("ResNet-8", "ecpix5-85f", "rgmii"),
    Case("DS-CNN", "ecpix5-85f", "rgmii"),
    Case("VWW", "ecpix5-85f", "rgmii"),
    Case("ResNet-8", "ecpix5-85f", "usb-hs"),
    Case("DS-CNN", "ecpix5-85f", "usb-hs"),
    Case("VWW", "ecpix5-85f", "usb-hs"),
    Case("ResNet-8", "ulx3s-85f", "rmii"),
    Case("ResNet-8", "ulx3s-85f", "uart@3000000", 0.016),
    Case("DS-CNN", "ulx3s-85f", "uart@3000000", 0.016),
    Case("AD", "ulx3s-85f", "uart@3000000", 0.016),
    Case("VWW", "ulx3s-85f", "uart@3000000", 0.016, images=16),
    Case("ResNet-8", "icebreaker", "uart@3000000", 0.016, images=16),
)


def _measure(case: Case) -> EndToEnd:
    path = shared_folder() / "models" / NETWORKS[case.network]
    program = load_program(path, find_target(case.target).configuration)
    wire = find_wire_model(case.wire, case.reply_seconds)
    return measure_end_to_end(program, wire, case.images, case.target)


def _row(entry: dict[str, Any]) -> list[object]:
    return [
        entry["name"],
        entry["target"],
        entry["wire"],
        f"{entry['inferences_per_second']:,.1f}",
        f"{entry['core_inferences_per_second']:,.1f}",
        console.percent(entry["share_of_core"]),
        console.percent(entry["share_of_wire"]),
        entry["round_trips"],
    ]


def end_to_end_benchmark(
    only: Annotated[
        str | None, typer.Option(help=f"Cases whose network, target or wire has this; or {HOST}.")
    ] = None,
) -> int:
    """Measures all cases, prints the figures and writes the report; 1 if a result was wrong."""
    cases: list[dict[str, Any]] = []
    for case in CASES:
        text = f"{case.network} {case.target} {case.wire}"
        if only is not None and only not in text:
            continue
        with console.step(text):
            entry = _measure(case).entry()
        cases.append({"name": case.network, "target": case.target, **entry})
    columns = {
        "network": "left",
        "target": "left",
        "wire": "left",
        "images/s": "right",
        "core": "right",
        "of core": "right",
        "of wire": "right",
        "round trips": "right",
    }
    if cases:
        console.print_table("end to end", columns, [_row(entry) for entry in cases])
    host: list[dict[str, Any]] = []
    if only in (None, HOST):
        path = shared_folder() / "models" / NETWORKS["ResNet-8"]
        program = load_program(path, find_target("ulx3s-85f").configuration)
        for devices in (1, 4):
            with console.step(f"the host's own cost, {devices} devices"):
                host.append(host_cost(program, devices=devices))
        for entry in host:
            console.print_line(
                f"{entry['devices']} devices: {entry['images_per_core_second']:,.0f} images per"
                f" second and core, {entry['images_per_second']:,.0f} on this machine"
            )
    if only is None:
        path = reports.write("end_to_end", COMMAND, {"cases": cases, "host": host})
        console.print_line(f"written to {path}")
    return 0 if all(entry["equal_images"] == entry["images"] for entry in cases) else 1


def main() -> int:
    """The command line."""
    application = typer.Typer(add_completion=False)
    application.command()(end_to_end_benchmark)
    return exit_status(lambda: application(standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
