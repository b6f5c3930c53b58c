"""``slipstick targets``: what can be simulated and built."""

from typing import Any

from .. import console, reports
from ..targets import DEFAULT_TARGET, TARGETS, Target
from .options import Json


def targets_command(json: Json = False) -> None:
    """List the targets, their hardware, and what their last build reached."""
    entries = [_entry(target) for target in TARGETS.values()]
    if json:
        console.print_json({"targets": entries})
        return
    columns = {
        "target": "left",
        "array": "left",
        "activations": "right",
        "weights": "right",
        "fingerprint": "left",
        "board": "left",
        "last build": "left",
        "": "text",
    }
    rows = [
        [
            entry["target"],
            entry["shape"],
            entry["activation_bytes"],
            entry["weight_bytes"],
            entry["fingerprint"],
            entry["board"],
            _last_build(entry),
            entry["description"],
        ]
        for entry in entries
    ]
    footer = "Any shape PxRxC is a target for simulation as well, such as 1x32x32."
    console.print_table("Targets (memories in bytes)", columns, rows, footer)


def _entry(target: Target) -> dict[str, Any]:
    configuration = target.configuration
    return {
        "target": target.name,
        "description": target.description,
        "default": target.name == DEFAULT_TARGET,
        "board": target.board,
        "part": None if target.part is None else target.part.device,
        "shape": configuration.shape,
        "macs_per_cycle": configuration.macs_per_cycle,
        "activation_bytes": configuration.activation_bytes,
        "weight_bytes": configuration.weight_bytes,
        "clock_hz": configuration.clock_hz,
        "fingerprint": configuration.fingerprint,
        "last_report": reports.last_build(configuration.fingerprint),
    }


def _last_build(entry: dict[str, Any]) -> str | None:
    report = entry["last_report"]
    return None if report is None else f"{report['fmax_mhz']:.1f} MHz"
