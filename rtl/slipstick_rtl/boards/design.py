"""A design as files: the gateware as RTLIL, and what a host must know about it as JSON."""

import importlib
import json
from pathlib import Path
from typing import Any, Protocol

from amaranth.hdl import Module

from ..accelerator import Accelerator
from ..array.accumulators import accumulators_latency
from ..array.systolic_array import array_latency
from ..config import PROTOCOL_VERSION
from ..isa import ISA_VERSION
from ..memory import latencies
from ..postprocess.control import PostControl

TOP = "slipstick"
RTLIL = "design.il"
VERILOG = "design.v"
DESCRIPTION = "design.json"


class Top(Protocol):
    """A component around the core."""

    accelerator: Accelerator

    def elaborate(self, platform: object) -> Module:
        """Core and surroundings."""
        ...


def describe(accelerator: Accelerator) -> dict[str, Any]:
    """Configuration, versions, fingerprint, and latencies in cycles, ready for JSON."""
    configuration = accelerator.configuration
    return {
        "top": TOP,
        "configuration": configuration.to_dict(),
        "isa_version": ISA_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "fingerprint": configuration.fingerprint,
        "latencies": {
            "array": array_latency(configuration),
            "accumulators": accumulators_latency(configuration),
            "matrix_engine": accelerator.matrix.latency,
            "post_engine": PostControl.latency,
            "activation_read": latencies.ACTIVATION_READ_LATENCY,
            "accumulator_read": latencies.ACCUMULATOR_READ_LATENCY,
            "weight_read": latencies.WEIGHT_READ_LATENCY,
        },
    }


def write_design(top: Top, folder: Path) -> None:
    """Writes the component's RTLIL and its description; synthesis adds the Verilog of the same.

    Parameters
    ----------
    top : Top
        A component that holds an accelerator.
    folder : Path
        Exists.
    """
    rtlil = importlib.import_module("amaranth.back.rtlil")  # which the type stubs lack
    text = rtlil.convert(top, name=TOP, emit_src=False)
    (folder / RTLIL).write_text(text, "utf-8")
    description = json.dumps(describe(top.accelerator), indent=2) + "\n"
    (folder / DESCRIPTION).write_text(description, "utf-8")
