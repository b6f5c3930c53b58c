"""A tree of buffers for the clock, whose leaves the placement shares out by distance."""

import math

from ..asic.pdk import Pdk
from .netlist import CLOCK, Gate, GateNetlist
from .technology import Technology

MOST_LEAVES = 16
"""Pins that a clock buffer, or the port, may drive."""

SWAPPABLE = "_bF$buf"
"""Nets whose names differ in the number behind this are one to the placement: it moves a pin from
one to another where that makes wires shorter."""


def insert_clock_tree(netlist: GateNetlist, technology: Technology, pdk: Pdk) -> list[int]:
    """Puts levels of clock buffers before the flip-flops, until the port drives few pins.

    Parameters
    ----------
    netlist : GateNetlist
        Changed in place; its clock is the port ``CLOCK``.
    technology : Technology
    pdk : Pdk

    Returns
    -------
    list of int
        How many buffers each level has, the one of the flip-flops first.
    """
    levels = list[int]()
    while True:
        loads = [
            (place, pin)
            for place, gate in enumerate(netlist.gates)
            for pin, net in gate.pins.items()
            if net == CLOCK
        ]
        if len(loads) <= MOST_LEAVES:
            return levels
        levels.append(_add_level(netlist, loads, len(levels), technology, pdk))


def _add_level(
    netlist: GateNetlist,
    loads: list[tuple[int, str]],
    level: int,
    technology: Technology,
    pdk: Pdk,
) -> int:
    """Puts buffers between the port and its loads; returns how many."""
    count = math.ceil(len(loads) / MOST_LEAVES)
    prefix = f"{CLOCK}{level}{SWAPPABLE}"
    for number, (place, pin) in enumerate(loads):
        gate = netlist.gates[place]
        netlist.gates[place] = Gate(gate.cell, {**gate.pins, pin: f"{prefix}{number % count}"})
    buffer = pdk.cells[technology.clock_buffer]
    (entry,), (output,) = buffer.inputs, buffer.outputs
    for number in range(count):
        netlist.gates.append(Gate(buffer.name, {entry: CLOCK, output: f"{prefix}{number}"}))
    return count
