"""A whole core of a kind in standard cells: area by part, clock, and energy of an inference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...asic.areas import BlockArea
from ...asic.energy import Energy, inference_energy, rounded
from ...asic.implementation import core_rtlil, implement
from ...asic.pdk import find_pdk
from ...data.inputs import Samples
from ...loading import load_program
from ...targets import Target
from .measures import PDK

_ELEMENT, _ARRAY = "matrix.array.element_*_*", "matrix.array"
_NETWORK = "network.onnx"


def core(target: Target, network: bytes, samples: Samples, folder: Path) -> dict[str, Any]:
    """A core's figures.

    Parameters
    ----------
    target : Target
    network : bytes
        Quantised in the core's format, ONNX.
    samples : Samples
        Of which the first is run.
    folder : Path

    Returns
    -------
    dict
        Areas in square micrometres; ``dynamic_uj`` and ``leakage_mw`` of cells, ``memories_uj`` of
        the memories' accesses; ``element_pj``, ``array_pj`` and ``cells_pj`` for each
        multiply-accumulate of the network, without leakage.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _NETWORK).write_bytes(network)
    program = load_program(folder / _NETWORK, target.configuration)
    done = implement(core_rtlil(target), find_pdk(PDK), folder)
    energy = inference_energy(done, program, samples)
    elements = {block.name: block for block in done.blocks}[_ELEMENT]
    return {
        "target": target.name,
        "fingerprint": target.configuration.fingerprint,
        "shape": target.configuration.shape,
        "pdk": PDK,
        "element_um2": round(elements.cell_area / elements.count, 1),
        "array_um2": round(_area_of(done.blocks, _ARRAY), 1),
        "cells_um2": round(done.cell_area, 1),
        "memories_um2": round(done.memory_area, 1),
        "period_ns": round(done.timing.period_ns, 4),
        **_energies(energy),
    }


def _area_of(blocks: tuple[BlockArea, ...], part: str) -> float:
    return sum(block.cell_area for block in blocks if block.name.startswith(part))


def _energies(energy: Energy) -> dict[str, Any]:
    picojoules = energy.seconds * 1e9 / energy.program.macs

    def of(part: str) -> float:
        powers = (block for block in energy.cells.blocks if block.name.startswith(part))
        return rounded(sum(block.dynamic_mw for block in powers) * picojoules)

    return {
        "macs": energy.program.macs,
        "cycles": energy.cycles,
        "element_pj": of(_ELEMENT),
        "array_pj": of(_ARRAY),
        "cells_pj": of(""),
        "dynamic_uj": rounded(energy.cells.dynamic_mw * energy.seconds * 1e3),
        "leakage_mw": rounded(energy.cells.leakage_mw),
        "memories_uj": rounded(energy.memories_uj),
        "activity_matched": energy.cells.matched,
        "activity_sources": energy.cells.sources,
        "first_output": [rounded(value) for value in energy.outputs],
    }


def slowest_seconds(cores: Sequence[Mapping[str, Any]]) -> float:
    """Returns an inference's seconds on the slowest of some cores: all of them reach that rate."""
    return max((each["cycles"] * each["period_ns"] * 1e-9 for each in cores), default=0.0)


def inference_uj(figures: Mapping[str, Any], seconds: float) -> float:
    """Microjoules of an inference if there is one in so many seconds, cells and memories."""
    leakage = figures["leakage_mw"] * seconds * 1e3
    return figures["dynamic_uj"] + figures["memories_uj"] + leakage
