"""Training in integers whose products run on a device; the rest is the golden functions'."""

from collections.abc import Callable

import numpy as np

from ..arithmetic import Gradient
from ..golden import window_of
from ..int8 import Codes, Int8Arithmetic, IntegerParameters, Range
from ..network import Kind, Layer
from .products import DeviceProducts

_ANY_SHIFT = 0


class DeviceArithmetic(Int8Arithmetic):
    """An :class:`Int8Arithmetic` with the same bits: forward products, input gradients and weight
    gradients run on a device.

    With the range "previous" a product runs once, as its shift is known; in the first step, and
    with the range "present", it runs twice: the first run finds the largest magnitude.

    Parameters
    ----------
    products : DeviceProducts
    master_bits, momentum, source
        As :class:`Int8Arithmetic` has them.
    """

    def __init__(
        self,
        products: DeviceProducts,
        master_bits: int = 16,
        momentum: int = 0,
        source: Range = Range.PREVIOUS,
    ) -> None:
        super().__init__(master_bits, momentum, source)
        self._products = products

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """``finish_forward`` of sums with bias, on the device."""
        g = self._golden
        exponent = x.exponent + parameters.exponent
        bias = g.bias_of(parameters.bias, exponent - parameters.exponent + g.BIAS_PLACES)

        def run(shift: int) -> np.ndarray:
            return self._products.forward(
                x.codes,
                self._weights(parameters),
                bias,
                window_of(layer),
                depthwise=layer.kind is Kind.DEPTHWISE,
                shift=shift,
                relu=layer.relu,
            )

        return self._ranged(layer.name, exponent, run)

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """The transposed convolution behind the mask, on the device."""
        height, width = x.codes.shape[1:3]

        def run(shift: int) -> np.ndarray:
            return self._products.input_gradient(
                error.codes,
                self._weights(parameters),
                window_of(layer),
                depthwise=layer.kind is Kind.DEPTHWISE,
                size=(height, width),
                shift=shift,
                mask=x.codes if masked else None,
            )

        key = f"error of {layer.inputs[0]} by {layer.name}"
        return self._ranged(key, error.exponent + parameters.exponent, run)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """Sums of 32 bits, on the device; those of the bias on the host."""
        depthwise = layer.kind is Kind.DEPTHWISE
        sums = self._products.weight_gradient(
            x.codes, error.codes, window_of(layer), depthwise=depthwise
        )
        bias = self._golden.bias_gradient(error.codes)
        return Gradient(sums, bias, x.exponent + error.exponent, error.exponent)

    def _ranged(self, key: str, exponent: int, run: Callable[[int], np.ndarray]) -> Codes:
        """Runs a product with the shift that its range asks for, and reports its largest."""
        if self._source is Range.PREVIOUS and key in self.ranges:
            shift = self._golden.shift_between(exponent, self.ranges[key])
            codes = run(shift)
            self._shift(key, exponent, self._products.largest())
            return Codes(codes, exponent + shift)
        run(_ANY_SHIFT)
        shift = self._shift(key, exponent, self._products.largest())
        codes = run(shift)
        self._products.largest()
        return Codes(codes, exponent + shift)
