"""Measures an element's energy per multiply-accumulate in standard cells, operands simulated."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...asic.energy import rounded
from ...asic.power import cell_power
from ...asic.saif import Recording
from ...asic.vcd import read_vcd
from .kinds import Kind
from .measures import PDK, ROWS, gates_of
from .operands import operands

if TYPE_CHECKING:
    from slipstick_rtl.experiments.pieces import Piece

CYCLES = 500
"""In which an activation enters each row."""

_VCD = "activity.vcd"
_SCOPE = "bench.top"
"""Scope of the design in Amaranth's waveforms."""


def power(kind: Kind, folder: Path) -> dict[str, Any]:
    """A column of elements at work: energy of a multiply-accumulate, leakage of an element.

    Weights are loaded once; activations are those of :mod:`.operands`. Registers and ports
    change as often as they did in the simulation, OpenSTA makes of that the activity of the logic
    between; there are neither wires nor a tree of clocks.

    Returns
    -------
    dict
        ``mac_pj`` without leakage, ``leakage_uw``.
    """
    piece = kind.column(ROWS)
    done = gates_of(piece, folder)
    activity = record(kind.column(ROWS), *operands(kind, CYCLES, ROWS), folder / _VCD)
    period = done.timing.period_ns
    cells = cell_power(done.mapping, activity, period)
    return {
        "rows": ROWS,
        "pdk": PDK,
        "cycles": activity.cycles,
        "period_ns": round(period, 3),
        # milliwatts times nanoseconds
        "mac_pj": rounded(cells.dynamic_mw * period / piece.elements),
        "leakage_uw": rounded(1000 * cells.leakage_mw / piece.elements),
        "activity_matched": cells.matched,
        "activity_sources": cells.sources,
    }


def record(piece: "Piece", activations: np.ndarray, weights: np.ndarray, path: Path) -> Recording:
    """Simulates a column: a weight for each row, then activations in every cycle.

    Parameters
    ----------
    piece : Piece
    activations, weights : arrays (cycles, rows) and (rows,)
    path : Path
        Of the waveform; its folder must be there.
    """
    from amaranth.hdl import Signal
    from amaranth.sim import Simulator

    ports = {port.name: port for port in piece.inputs if isinstance(port, Signal)}

    async def drive(context: Any) -> None:
        def set_rows(name: str, values: Any) -> None:
            for row, value in enumerate(values):
                context.set(ports[f"{name}_{row}"], int(value))

        every, none = np.ones(len(weights), int), np.zeros(len(weights), int)
        set_rows("weight", weights)
        set_rows("capture", every)
        await context.tick()
        set_rows("capture", none)
        set_rows("swap", every)
        await context.tick()
        set_rows("swap", none)
        for vector in activations:
            set_rows("activations", vector)
            await context.tick()

    simulator = Simulator(piece.gateware)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    with simulator.write_vcd(str(path)):
        simulator.run()
    return read_vcd(path, _SCOPE)
