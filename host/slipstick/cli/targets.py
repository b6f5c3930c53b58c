"""``slipstick targets``: what can be simulated and built, and what the last builds took."""

from typing import Any

from .. import console, reports
from ..targets import DEFAULT_TARGET, TARGETS, Target
from .options import Json

_RESOURCES = ("lut", "ff", "dsp", "bram")
_MEASURED = ("network", "wire", "inferences_per_second", "core_inferences_per_second")


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
        "": "text",
    }
    rows = [
        [
            entry["target"],
            entry["shape"],
            entry["activation_bytes"],
            entry["weight_bytes"],
            entry["fingerprint"],
            entry["description"],
        ]
        for entry in entries
    ]
    footer = "Any shape PxRxC is a target for simulation as well, such as 1x32x32."
    console.print_table("Targets (memories in bytes)", columns, rows, footer)
    _show_builds([entry for entry in entries if entry["part"] is not None])
    _show_wires(entries)


def _show_builds(entries: list[dict[str, Any]]) -> None:
    columns = {"target": "left", "part": "left", "needed": "right", "MHz": "right"}
    columns |= dict.fromkeys(_RESOURCES, "right")
    rows = [
        [
            entry["target"],
            entry["part"],
            f"{entry['clock_hz'] / 1e6:g}",
            _clock(entry["last_build"]),
            *(_share(entry["last_build"], entry["chip"], name) for name in _RESOURCES),
        ]
        for entry in entries
    ]
    footer = "A dash: not built yet, or built as other hardware; slipstick build --target TARGET"
    console.print_table("Last builds (used of what the chip has)", columns, rows, footer)


def _show_wires(entries: list[dict[str, Any]]) -> None:
    rows = [
        [
            entry["target"],
            case["network"],
            case["wire"],
            f"{case['inferences_per_second']:,.1f}",
            f"{case['core_inferences_per_second']:,.1f}",
        ]
        for entry in entries
        for case in entry["end_to_end"]
    ]
    if rows:
        columns = {"target": "left", "network": "left", "wire": "left"}
        columns |= {"images/s": "right", "core alone": "right"}
        console.print_table(
            "End to end over wires, measured on the simulated RTL at the bitstream's clock",
            columns,
            rows,
            "slipstick compile predicts other networks; slipstick bench --wire WIRE measures them.",
        )


def _clock(build: dict[str, Any] | None) -> str | None:
    if build is None:
        return None
    missed = "" if build.get("meets_clock", True) else " MISSED"
    return f"{build['fmax_mhz']:.1f}{missed}"


def _share(build: dict[str, Any] | None, chip: dict[str, int], name: str) -> str | None:
    used = None if build is None else build.get(name)
    if build is None or used is None:
        return None
    available = chip.get(name) or build.get("available", {}).get(name)
    return f"{used:,} of {available:,}" if available else f"{used:,}"


def _entry(target: Target) -> dict[str, Any]:
    configuration = target.configuration
    part = target.part
    return {
        "target": target.name,
        "description": target.description,
        "default": target.name == DEFAULT_TARGET,
        "end_to_end": [
            {name: case.get(name) for name in _MEASURED}
            for case in reports.end_to_end(configuration.fingerprint, target.name)
        ],
        "board": target.board,
        "part": None if part is None else part.device,
        "chip": {}
        if part is None
        else {"lut": part.luts, "dsp": part.multipliers, "bram": part.block_rams},
        "shape": configuration.shape,
        "macs_per_cycle": configuration.macs_per_cycle,
        "activation_bytes": configuration.activation_bytes,
        "weight_bytes": configuration.weight_bytes,
        "clock_hz": configuration.clock_hz,
        "fingerprint": configuration.fingerprint,
        "last_build": reports.last_build(configuration.fingerprint, target.name),
    }
