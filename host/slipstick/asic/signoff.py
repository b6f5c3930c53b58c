"""All checks of gates at once: ``python -m slipstick.asic.signoff PDK`` writes a report.

A small array in int8 and in logarithms and the LNS unit are simulated as gates beside the gateware;
the parts of which they are made are proved; a small core is searched for latches, loops, registers
without a reset, and unknown values.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from .. import console, reports
from ..errors import SlipstickError
from ..examples.digits import MODEL
from ..targets import Target, find_target
from .checks import check_structure
from .gate_check import compare, prove
from .implementation import TOP, core_rtlil
from .pdk import Pdk, find_pdk
from .unknowns import RESET_CYCLES, check_unknowns, inference

CYCLES = 2000
CORE = "asic-4x4"
ROOMY = {
    "activation_bytes": 1 << 12,
    "weight_bytes": 1 << 14,
    "instruction_words": 1 << 10,
    "payload_bytes": 256,
}


def structure(target: Target) -> dict[str, Any]:
    """Registers of a core that has neither latch nor loop."""
    found = check_structure(core_rtlil(target), TOP)
    with_reset, without = found.bits
    return {
        "target": target.name,
        "flip_flops_with_reset": with_reset,
        "flip_flops_without_reset": without,
        "memory_bits": found.memory_bits,
    }


def unknown_values(target: Target) -> dict[str, Any]:
    """An inference of the digits network, all registers and memories undefined before.

    The memories are larger than the target's, so that the network is loaded once: a simulation with
    four values takes minutes as it is.
    """
    target = replace(target, configuration=replace(target.configuration, **ROOMY))
    image = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)
    found = check_unknowns(target, inference(target, MODEL, image))
    return {"target": target.name, "reset_cycles": RESET_CYCLES, **ROOMY, **asdict(found)}


def signoff(pdk: Pdk, show: Callable[[str], None]) -> dict[str, Any]:
    """Runs all checks; what is not equal or not sound raises, or is counted as a mismatch.

    Raises
    ------
    TargetError
        If a proof fails, a core has a latch or a loop, or a tool is missing.
    """
    from slipstick_sim.netlist.gate_parts import proved_parts, simulated_parts

    comparisons = []
    for name, part in simulated_parts().items():
        show(f"simulating {name}")
        comparisons.append(asdict(compare(part(), name, pdk, cycles=CYCLES)))
    for name, part in proved_parts().items():
        show(f"proving {name}")
        prove(part(), name, pdk)
    target = find_target(CORE)
    show(f"structure of {CORE}")
    sound = structure(target)
    show(f"an inference on {CORE} with unknown values")
    return {
        "pdk": pdk.name,
        "simulated": comparisons,
        "proved": list(proved_parts()),
        "structure": sound,
        "unknown_values": unknown_values(target),
    }


def main(arguments: list[str]) -> int:
    """The exit status: 0 if all is equal and known, 1 if not, 2 if it cannot be told."""
    if len(arguments) != 1:
        print("usage: python -m slipstick.asic.signoff PDK", file=sys.stderr)
        return 2
    try:
        pdk = find_pdk(arguments[0])
        figures = signoff(pdk, lambda what: print(what, "...", file=sys.stderr, flush=True))
    except SlipstickError as error:
        print(f"slipstick: {error}", file=sys.stderr)
        return 2
    command = f"python -m slipstick.asic.signoff {arguments[0]}"
    path = reports.write(f"asic_gates-{pdk.name}", command, figures)
    rows = [
        [it["name"], it["cells"], it["cycles"], it["mismatches"]] for it in figures["simulated"]
    ]
    columns = {"gates": "left", "cells": "right", "cycles": "right", "mismatches": "right"}
    unknown = figures["unknown_values"]
    footer = (
        f"proved equal: {', '.join(figures['proved'])}\n{CORE}: no latch, no loop; unknown values:"
        f" {len(unknown['unknown'])} of {unknown['watched']} bits in {unknown['cycles']} cycles,"
        f" {unknown['wrong']} of {unknown['frames']} answers wrong\nreport: {path}"
    )
    console.print_table(f"Gates of {pdk.name} beside the gateware", columns, rows, footer)
    wrong = sum(it["mismatches"] for it in figures["simulated"])
    return int(bool(wrong or unknown["unknown"] or unknown["wrong"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
