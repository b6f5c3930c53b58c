"""Parts of the gateware whose gates are held against it: arrays, elements, the LNS unit."""

from collections.abc import Callable

from amaranth.lib import wiring
from slipstick_rtl.array.processing_element import ProcessingElement
from slipstick_rtl.array.systolic_array import SystolicArray
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit
from slipstick_rtl.numbers.number_format import number_format
from slipstick_rtl.postprocess.normalizer import Normalizer

ARRAY_FORMATS = ("int8", "lns1+3+4")
ELEMENT_FORMATS = ("int8", "lns1+3+4", "lns1+2+2")
UNIT_FORMAT = "lns1+3+3"

Parts = dict[str, Callable[[], wiring.Component]]
"""Functions that make the parts, by the part's name."""


def simulated_parts() -> Parts:
    """Lists the simulated parts: 4 x 4 elements, and the LNS unit."""
    unit = Lns.parse(UNIT_FORMAT)
    arrays: Parts = {f"array 4x4 {name}": lambda name=name: array(name) for name in ARRAY_FORMATS}
    return arrays | {f"LNS unit {UNIT_FORMAT}": lambda: LnsUnit(lns=unit, compensated=False)}


def proved_parts() -> Parts:
    """Lists the proved parts: elements with their multipliers, and a piece of a requantiser."""
    elements: Parts = {
        f"element {name}": lambda name=name: element(name) for name in ELEMENT_FORMATS
    }
    return elements | {
        "normaliser of a logarithmic requantiser": lambda: Normalizer(mantissa_bits=8)
    }


def array(name: str) -> SystolicArray:
    """4 x 4 elements of a number format."""
    return SystolicArray(configuration=_small(name))


def element(name: str) -> ProcessingElement:
    """One element, the second of its column."""
    return ProcessingElement(number_format=number_format(_small(name)), pixels=1, rows_above=1)


def _small(name: str) -> Configuration:
    return Configuration(rows=4, columns=4, lanes=4, number_format=name)
