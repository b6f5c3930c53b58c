"""Compares a device with the golden functions in every product of a training."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..arithmetic import Gradient
from ..int8 import Codes, Int8Arithmetic, IntegerParameters, Range
from ..network import Layer
from .arithmetic import DeviceArithmetic
from .products import DeviceProducts


@dataclass
class Comparison:
    """Counts compared numbers and mismatches.

    Parameters
    ----------
    elements, mismatches : int
        Codes, sums and exponents.
    first : str
        The first product that differed; empty: none.
    by_layer : dict of int
        Mismatches, by layer and product.
    """

    elements: int = 0
    mismatches: int = 0
    first: str = ""
    by_layer: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, found: np.ndarray, wanted: np.ndarray) -> None:
        """Compares two arrays; of other shapes, all of it differs."""
        same = found.shape == wanted.shape
        wrong = int(np.count_nonzero(found != wanted)) if same else int(wanted.size)
        self.elements += int(wanted.size)
        self.mismatches += wrong
        self.by_layer[name] = self.by_layer.get(name, 0) + wrong
        if wrong and not self.first:
            self.first = name


class ComparedArithmetic(DeviceArithmetic):
    """A :class:`DeviceArithmetic` that computes every product by the golden functions as well.

    Members
    -------
    comparison : Comparison
    """

    def __init__(
        self,
        products: DeviceProducts,
        master_bits: int = 16,
        momentum: int = 0,
        source: Range = Range.PREVIOUS,
    ) -> None:
        super().__init__(products, master_bits, momentum, source)
        self.comparison = Comparison()

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """As the device has it."""
        found, ranges = super().product(layer, x, parameters), dict(self.reports)
        wanted = Int8Arithmetic.product(self, layer, x, parameters)
        return self._compared(f"{layer.name} forward", found, wanted, ranges)

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """As the device has it."""
        found = super().product_back(layer, error, parameters, x, masked)
        ranges = dict(self.reports)
        wanted = Int8Arithmetic.product_back(self, layer, error, parameters, x, masked)
        return self._compared(f"{layer.name} input gradient", found, wanted, ranges)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """As the device has it."""
        found = super().gradient(layer, x, error)
        wanted = Int8Arithmetic.gradient(self, layer, x, error)
        self.comparison.add(f"{layer.name} weight gradient", found.weights, wanted.weights)
        return found

    def _compared(self, name: str, found: Codes, wanted: Codes, ranges: Mapping[str, int]) -> Codes:
        """Codes, their exponent, and what was reported for the next step."""
        self.comparison.add(name, found.codes, wanted.codes)
        mine, golden = [found.exponent, *ranges.values()], [wanted.exponent, *self.reports.values()]
        self.comparison.add(f"{name}, range", np.array(mine), np.array(golden))
        return found
