"""Models a memory macro's area, energy, time and leakage, and names the model's sources.

Nobody can measure macros without a generator of the process. So published figures of 45 nm scale
to other processes by the rules of constant fields: area with the square of the feature size, time
and capacitance in proportion to it.

Area, time and leakage come from the memories that OpenROAD-flow-scripts gives with its 45 nm
platform (``flow/platforms/nangate45/lib/fakeram45_*.lib``; 1.1 V, one port, estimates of CACTI):

=========== ======= ========== ======= ===========
words, bits  area    per bit    access  leakage
=========== ======= ========== ======= ===========
64 x 32      1,241   0.606 um2  0.207   39.9 nW/bit
512 x 64    17,301   0.528 um2  0.305   25.1 nW/bit
1,024 x 32  16,406   0.501 um2  0.309   24.3 nW/bit
2,048 x 39  45,479   0.569 um2  0.435   23.5 nW/bit
=========== ======= ========== ======= ===========

Published cells of six transistors at 45 nm measure 0.346 to 0.374 um2: 0.57 um2 a bit is such a
cell in an array that fills two thirds of its macro. A second port takes 1.80 times the area: the
ratio of OpenRAM's macros for sky130 of 512 x 32 bits, 683.1 x 416.54 um with two ports (1rw1r)
and 483.86 x 326.1 um with one. (OpenRAM's are twice as large as this model says for 130 nm.)

Energy is that of M. Horowitz, "Computing's energy problem", ISSCC 2014: at 45 nm and 0.9 V reading
64 bits takes 10 pJ from 8 KB, 20 pJ from 32 KB and 100 pJ from 1 MB. It scales with the width of
the word and with the square of the voltage; a write is taken to cost what a read does.
"""

import math
from dataclasses import dataclass

from ..errors import TargetError
from .macros import Macro
from .pdk import Pdk

REFERENCE_NM = 45.0

BIT_AREA = 0.57
"""Square micrometres at 45 nm, decoders and amplifiers included; one port."""

SECOND_PORT_AREA = 1.80
"""Times the area."""

ACCESS_BASE_NS, ACCESS_SLOPE_NS = 0.155, 0.00096
"""Access time at 45 nm: the base and, for each square root of a bit, the slope; within 0.025 ns of
the four memories above."""

SETUP_NS = 0.05
"""Setup time of every input, at 45 nm."""

BIT_LEAKAGE_NW = 24.0
"""At 45 nm and 1.1 V, in a process of fast transistors."""

ENERGY_POINTS = ((8192.0, 10.0), (32768.0, 20.0), (1048576.0, 100.0))
"""Bytes, and picojoules of reading ``ENERGY_BITS``."""

ENERGY_BITS = 64
ENERGY_VOLTS = 0.9
LEAKAGE_VOLTS = 1.1


@dataclass(frozen=True)
class MemoryCost:
    """Area, times, energy and leakage of one macro.

    Parameters
    ----------
    area : float
        Square micrometres.
    access_ns, setup_ns : float
        From the clock's edge to the word, and of inputs before it.
    access_pj : float
        Energy of a read or a write of a word.
    leakage_mw : float
    """

    area: float
    access_ns: float
    setup_ns: float
    access_pj: float
    leakage_mw: float


def memory_cost(macro: Macro, pdk: Pdk) -> MemoryCost:
    """The model's figures for a macro.

    Raises
    ------
    TargetError
        If the PDK's feature size or voltage is not known.
    """
    feature_nm, voltage = check_modelled(pdk)
    scale, bits = feature_nm / REFERENCE_NM, macro.size
    ports = SECOND_PORT_AREA if macro.ports == 2 else 1.0
    word = access_energy(bits / 8) * macro.bits / ENERGY_BITS
    return MemoryCost(
        area=bits * BIT_AREA * ports * scale**2,
        access_ns=(ACCESS_BASE_NS + ACCESS_SLOPE_NS * math.sqrt(bits)) * scale,
        setup_ns=SETUP_NS * scale,
        access_pj=word * scale * (voltage / ENERGY_VOLTS) ** 2,
        leakage_mw=bits * BIT_LEAKAGE_NW * 1e-6 * scale * voltage / LEAKAGE_VOLTS,
    )


def check_modelled(pdk: Pdk) -> tuple[float, float]:
    """Feature size and voltage of a PDK, if it has both; else TargetError."""
    if pdk.feature_nm is None:
        raise TargetError(
            f"PDK {pdk.name} must have a feature size in nanometres, which the model of memories"
            " scales with, and it is not known: give it by --feature-nm"
        )
    if pdk.voltage is None:
        raise TargetError(
            f"the library of PDK {pdk.name} must give nom_voltage, which the energy of memories"
            " scales with"
        )
    return pdk.feature_nm, pdk.voltage


def access_energy(size: float) -> float:
    """Picojoules of reading ``ENERGY_BITS`` of a memory of so many bytes, at 45 nm and 0.9 V.

    Between the points, and beyond them as between the two nearest, the energy's logarithm is linear
    in that of the size.
    """
    pairs = list(zip(ENERGY_POINTS, ENERGY_POINTS[1:], strict=False))
    (low, first), (high, last) = next((pair for pair in pairs if size <= pair[1][0]), pairs[-1])
    slope = math.log(last / first) / math.log(high / low)
    return first * (size / low) ** slope
