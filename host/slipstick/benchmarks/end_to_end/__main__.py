"""Measures end to end: ``python -m slipstick.benchmarks.end_to_end``; ``--help`` tells more.

Each case is a network, a board and a wire: a batch goes through the modelled wire to the simulated
RTL, as ``slipstick bench --wire`` does. Then the host's own cost, against devices that only answer.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import console, reports
from ...devices.wire_models import find_wire_model
from ...failures import command_status
from ...loading import load_program
from ...targets import find_target
from ..suite import shared_folder
from .host_cost import TCP, UDP, host_cost
from .measure import EndToEnd, measure_end_to_end

COMMAND = "python -m slipstick.benchmarks.end_to_end"
REPORT = "end_to_end"
NETWORKS = {
    "ResNet-8": "ic01_resnet8_int8.tflite",
    "DS-CNN": "kws01_dscnn_int8.tflite",
    "VWW": "vww01_mobilenetv1_025_int8.tflite",
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
    Case("ResNet-8", "ecpix5-85f-ethernet", "rgmii"),
    Case("DS-CNN", "ecpix5-85f-ethernet", "rgmii"),
    Case("VWW", "ecpix5-85f-ethernet", "rgmii"),
    Case("ResNet-8", "ecpix5-85f-ethernet", "usb-hs"),
    Case("DS-CNN", "ecpix5-85f-ethernet", "usb-hs"),
    Case("VWW", "ecpix5-85f-ethernet", "usb-hs"),
    Case("ResNet-8", "ulx3s-85f-ethernet", "rmii"),
    # a batch whose last answer is late costs more of a short one; each image is a million cycles
    Case("ResNet-8", "ulx3s-85f", "uart@3000000", 0.016),
    Case("DS-CNN", "ulx3s-85f", "uart@3000000", 0.016),
    Case("VWW", "ulx3s-85f", "uart@3000000", 0.016, images=2),
    Case("ResNet-8", "icebreaker", "uart@3000000", 0.016, images=16),
)


def _measure(case: Case) -> EndToEnd:
    path = shared_folder() / "models" / NETWORKS[case.network]
    program = load_program(path, find_target(case.target).configuration)
    wire = find_wire_model(case.wire, case.reply_seconds)
    return measure_end_to_end(program, wire, case.images, case.target)


def end_to_end_benchmark(
    only: Annotated[
        str | None, typer.Option(help=f"Cases whose network, target or wire has this; or {HOST}.")
    ] = None,
) -> int:
    """Measures cases, prints the figures and puts them into the report; 1 if a result was wrong.

    The report is written after every case. With ``only``, the other cases stay in it as they were
    measured, if their target is still the same hardware.
    """
    figures = _kept()
    chosen = [case for case in CASES if only is None or only in _text(case)]
    for case in chosen:
        with console.step(_text(case)):
            entry = {"name": case.network, "target": case.target, **_measure(case).entry()}
        figures["cases"][_text(case)] = entry
        _write(figures)
        _show(entry)
    if only in (None, HOST):
        path = shared_folder() / "models" / NETWORKS["ResNet-8"]
        program = load_program(path, find_target("ulx3s-85f").configuration)
        for devices, over in ((1, TCP), (4, TCP), (1, UDP)):
            with console.step(f"the host's own cost, {devices} devices over {over}"):
                cost = host_cost(program, devices=devices, over=over)
            figures["host"][str(devices) if over == TCP else f"{devices} {over}"] = cost
            _write(figures)
            console.print_line(
                f"{devices} devices over {over}: {cost['images_per_core_second']:,.0f} images per"
                f" second and core, {cost['images_per_core_second_best']:,.0f} in the fastest round"
            )
    measured = [figures["cases"][_text(case)] for case in chosen]
    return 0 if all(entry["equal_images"] == entry["images"] for entry in measured) else 1


def _text(case: Case) -> str:
    return f"{case.network} {case.target} {case.wire}"


def _kept() -> dict[str, dict[str, Any]]:
    """Returns the cases of the last report whose hardware has not changed."""
    try:
        report = json.loads((Path(reports.FOLDER) / f"{REPORT}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {"cases": {}, "host": {}}
    today = {_text(case): find_target(case.target).configuration.fingerprint for case in CASES}
    cases = {
        text: entry
        for text, entry in report["cases"].items()
        if entry["fingerprint"] == today.get(text)
    }
    return {"cases": cases, "host": report["host"]}


def _write(figures: dict[str, dict[str, Any]]) -> None:
    order = [_text(case) for case in CASES if _text(case) in figures["cases"]]
    cases = {text: figures["cases"][text] for text in order}
    reports.write(REPORT, COMMAND, {**figures, "cases": cases})


def _show(entry: dict[str, Any]) -> None:
    console.print_line(
        f"{entry['name']}, {entry['target']}, {entry['wire']}:"
        f" {entry['inferences_per_second']:,.1f} images per second,"
        f" {console.percent(entry['share_of_core'])} of the core's"
        f" {entry['core_inferences_per_second']:,.1f},"
        f" {console.percent(entry['share_of_wire'])} of the wire's;"
        f" {entry['round_trips']} round trips"
    )


def main() -> int:
    """The command line."""
    return command_status(end_to_end_benchmark)


if __name__ == "__main__":
    sys.exit(main())
