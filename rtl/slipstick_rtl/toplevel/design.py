"""A design as files: the gateware as RTLIL, and what a host must know about it as JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from amaranth.hdl import Module

from .. import latencies, rtlil
from ..accelerator import Accelerator
from ..array.accumulators import accumulators_latency
from ..array.segments import array_latency
from ..config import PROTOCOL_VERSION, Configuration
from ..isa import ISA_VERSION
from ..postprocess.distances import write_distance
from .board_top import board_top, make_platform
from .registry import find_board

TOP = "slipstick"
RTLIL = "design.il"
VERILOG = "design.v"
DESCRIPTION = "design.json"
SOURCES = "sources"
"""Folder of Verilog that is not from here, beside the RTLIL that has instances of it."""
CONSTRAINTS = (".lpf", ".pcf", ".cst")
"""Suffixes of the files of pins and clocks that place and route reads: ECP5, iCE40, Gowin."""


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
        "latencies": _latencies(accelerator),
    }


def _latencies(accelerator: Accelerator) -> dict[str, int]:
    """Lists the pipelines' latencies; the compact engine has none that work while others do."""
    configuration = accelerator.configuration
    if not configuration.traits.overlaps_streams:
        return {}
    return {
        "array": array_latency(configuration),
        "accumulators": accumulators_latency(configuration),
        "matrix_engine": accelerator.matrix.latency,
        "post_engine": write_distance(configuration),
        "activation_read": latencies.ACTIVATION_READ_LATENCY,
        "accumulator_read": latencies.ACCUMULATOR_READ_LATENCY,
        "weight_read": latencies.WEIGHT_READ_LATENCY,
    }


def write_design(top: Top, folder: Path, platform: object = None) -> None:
    """Writes the component's RTLIL and its description; synthesis adds the Verilog of the same.

    Parameters
    ----------
    top : Top
        A component that holds an accelerator.
    folder : Path
        Exists.
    platform : object
        What the parts of the core that use a device's own blocks ask for its ``device``.
    """
    text = rtlil.convert(top, name=TOP, platform=platform)
    _write(text, describe(top.accelerator), folder)


def write_board_design(
    name: str,
    configuration: Configuration,
    link: str,
    asked_mhz: float,
    folder: Path,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Writes a board's RTLIL and its description; returns the constraints for place and route.

    Verilog of other people's cores goes to the folder ``SOURCES`` in it.

    Parameters
    ----------
    name : str
        Of the board.
    configuration : Configuration
    link : str
        The wire, one of the board's.
    asked_mhz : float
        The clock that place and route is asked for.
    folder : Path
        Exists.
    options : mapping, optional
        For the wire's PHY, in place of the board's own.

    Raises
    ------
    ValueError
        If there is no such board or wire, or the PLL or the wire cannot do with the clock.
    ImportError
        If a package is missing.
    """
    board = find_board(name)
    platform = make_platform(board)
    top = board_top(
        board=board,
        platform=platform,
        configuration=configuration,
        link=link,
        asked_mhz=asked_mhz,
        options=options,
    )
    description = {**describe(top.accelerator), "board": name, "link": link, **(options or {})}
    plan = platform.prepare(top, TOP, emit_src=False)
    _write(plan.files[f"{TOP}.il"], description, folder)
    for file, text in platform.extra_files.items():
        (folder / SOURCES).mkdir(exist_ok=True)
        (folder / SOURCES / file).write_text(text, "utf-8")
    found = [text for file, text in plan.files.items() if file.endswith(CONSTRAINTS)]
    if len(found) != 1:
        raise ValueError(f"board {name} must have one file of constraints, not {len(found)}")
    return found[0]


def _write(rtlil: str, description: dict[str, Any], folder: Path) -> None:
    (folder / RTLIL).write_text(rtlil, "utf-8")
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", "utf-8")
