"""Training on a logarithmic array: codes of 8 bits, linear sums, two kinds of update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns

from .arithmetic import Arithmetic, Gradient, Rate
from .golden import golden, window_of
from .int8 import IMAGE_EXPONENT, Codes, Range
from .network import Initial, Kind, Layer, TrainingNetwork

FORMAT = Lns(3, 4)
WIDE_FORMAT = Lns(6, 8)
"""Format of the masters of additive updates."""

DECAY = 4
"""Decay of a multiplicative update's norms per step, in 1/128 octaves: an octave in 32 steps."""

MULTIPLIED_SHIFT = -1
"""A multiplicative step is at most 2^-(shift of the learning rate + this) octaves."""


class Update(StrEnum):
    """Ways in which weights learn."""

    MULTIPLIED = "multiplied"
    """Their logarithms change: LNS-Madam."""

    COMPENSATED = "compensated"
    """Steps are added in ``WIDE_FORMAT``, and what rounding loses is kept."""


@dataclass
class LnsParameters:
    """A layer's parameters.

    Parameters
    ----------
    masters : array of int32
        Ordered codes with 8 more places, or of ``WIDE_FORMAT``.
    others : array of int32
        Norms, or what compensated additions owe.
    bias : array of int32
        Linear, in units of 2^(exponent - 16).
    exponent : int
        Of the weights' codes; it never changes.
    """

    masters: np.ndarray
    others: np.ndarray
    bias: np.ndarray
    exponent: int


class Lns8Arithmetic(Arithmetic):
    """Activations, weights and errors as ordered codes, sums in linear integers.

    Parameters
    ----------
    how : Update
    source : Range
        Whose largest magnitude chooses exponents.
    lns : Lns
        The array's.
    momentum : int
        There are no velocities: instead steps are 2^momentum times as large.
    """

    def __init__(
        self,
        how: Update = Update.MULTIPLIED,
        source: Range = Range.PREVIOUS,
        lns: Lns = FORMAT,
        momentum: int = 0,
    ) -> None:
        self._momentum = momentum
        self._golden, self._how, self._source, self._lns = golden(), how, source, lns
        self._do = self._golden.LogarithmicProducts(lns)
        self._places = self._do.array.antilog_places
        self.ranges: dict[str, int] = {}
        self.reports: dict[str, int] = {}
        values = np.arange(-127, 128) * 2.0**IMAGE_EXPONENT
        self._images = self._encoded(values, 1 - self._do.octaves)

    def _encoded(self, values: np.ndarray, exponent: int) -> np.ndarray:
        """Codes of real numbers, to nearest."""
        magnitude = np.abs(values.astype(np.float64))
        logarithm = np.log2(np.where(magnitude == 0, 1, magnitude)) - exponent
        code = np.rint(logarithm * (1 << self._lns.fraction_bits))
        code = np.where(magnitude == 0, 0, np.clip(code, 0, self._lns.largest_code))
        return (code * np.sign(values)).astype(np.int8)

    @property
    def takes_parts(self) -> bool:
        """Not where the whole batch's largest magnitude chooses the shifts."""
        return self._source is Range.PREVIOUS

    def start(self, network: TrainingNetwork, initial: Initial) -> dict[str, LnsParameters]:
        """Rounded to nearest, with an octave of room for weights to grow."""
        return {
            layer.name: self._rounded(initial[layer.name].weights, initial[layer.name].bias)
            for layer in network.learning
        }

    def _rounded(self, weights: np.ndarray, bias: np.ndarray) -> LnsParameters:
        g = self._golden
        usual = 2 * np.sqrt(2 / weights[0].size) if len(weights) > 1 else 0
        largest = max(float(np.abs(weights).max(initial=0)), float(usual)) or 1.0
        exponent = int(np.ceil(np.log2(2 * largest))) - self._do.octaves
        units = np.rint(np.ldexp(bias.astype(np.float64), g.BIAS_PLACES - exponent))
        whole_bias = np.clip(units, -g.LARGEST_SUM, g.LARGEST_SUM).astype(np.int32)
        if self._how is Update.COMPENSATED:
            from slipstick_sim.golden.lns_compiled import encode

            masters = encode(WIDE_FORMAT, weights.astype(np.float32))
            return LnsParameters(masters, np.zeros_like(masters), whole_bias, exponent)
        magnitude = np.abs(weights.astype(np.float64))
        places = self._lns.fraction_bits + g.MASTER_PLACES
        logarithm = np.log2(np.where(magnitude == 0, 1, magnitude)) - exponent
        least = 1 << g.MASTER_PLACES
        units = np.maximum(np.rint(logarithm * (1 << places)), least)
        masters = (np.where(magnitude == 0, 0, units) * np.sign(weights)).astype(np.int32)
        norms = np.full(masters.shape, self._do.lowest_norm, np.int32)
        return LnsParameters(masters, norms, whole_bias, exponent)

    def _weights(self, parameters: LnsParameters) -> np.ndarray:
        g = self._golden
        if self._how is Update.COMPENSATED:
            return g.codes_of_wide(parameters.masters, WIDE_FORMAT, self._lns, parameters.exponent)
        return g.weights_of_masters(parameters.masters)

    def _target(self, key: str, following: int) -> int:
        self.reports[key] = following
        previous = self._source is Range.PREVIOUS and key in self.ranges
        return self.ranges[key] if previous else following

    def _forward(self, key: str, sums: np.ndarray, exponent: int, relu: bool) -> Codes:
        largest = self._golden.largest_forward(sums, relu)
        target = self._target(key, self._do.next_exponent(exponent, largest))
        return Codes(self._do.round(sums, exponent, target, relu), target)

    def _error(self, key: str, sums: np.ndarray, exponent: int) -> Codes:
        following = self._do.next_exponent(exponent, self._golden.largest_error(sums))
        target = self._target(f"error of {key}", following)
        return Codes(self._do.round(sums, exponent, target), target)

    def encode(self, images: np.ndarray) -> Codes:
        """Images by a table of 255 codes."""
        return Codes(self._images[images.astype(np.int16) + 127], 1 - self._do.octaves)

    def product(self, layer: Layer, x: Codes, parameters: LnsParameters) -> Codes:
        """Sums of products with bias, rounded to the nearest logarithms."""
        g, exponent = self._golden, x.exponent + parameters.exponent + self._do.unit_exponent
        weights, window = self._weights(parameters), window_of(layer)
        if layer.kind is Kind.DEPTHWISE:
            sums = g.logarithmic_depthwise_forward(self._do, x.codes, weights, window)
        else:
            sums = self._do.forward(x.codes, weights, window)
        bias = g.bias_of(parameters.bias, exponent - parameters.exponent + g.BIAS_PLACES)
        return self._forward(layer.name, g.add_bias(sums, bias), exponent, layer.relu)

    def add(self, layer: Layer, a: Codes, b: Codes) -> Codes:
        """Linear numbers are added."""
        sums, exponent = self._do.aligned_sum([(x.codes, x.exponent) for x in (a, b)])
        return self._forward(layer.name, sums, exponent, layer.relu)

    def average(self, layer: Layer, x: Codes) -> Codes:
        """Linear numbers are added."""
        g, window = self._golden, window_of(layer)
        sums = g.sum_pool(self._do.linear(x.codes), window)
        exponent = x.exponent - self._places - g.average_shift(window)
        return self._forward(layer.name, sums, exponent, False)

    def maximum(self, layer: Layer, x: Codes) -> Codes:
        """Codes have the order of their values."""
        return Codes(self._golden.max_pool(x.codes, window_of(layer)), x.exponent)

    def reshape(self, x: Codes, shape: tuple[int, ...]) -> Codes:
        """The same codes."""
        return Codes(x.codes.reshape(shape), x.exponent)

    def numbers(self, x: Codes) -> np.ndarray:
        """As real numbers."""
        return np.ldexp(self._do.linear(x.codes).astype(np.float32), x.exponent - self._places)

    def loss_errors(self, logits: Codes, labels: np.ndarray) -> Codes:
        """Probabilities in integers, as with int8; errors as codes."""
        known = self._source is Range.PREVIOUS and "loss" in self.ranges
        target = self.ranges["loss"] if known else None
        flat = logits.codes.reshape(len(labels), -1)
        errors, exponent, following = self._do.loss_errors(flat, logits.exponent, labels, target)
        self.reports["loss"] = following
        return Codes(errors.reshape(logits.codes.shape), exponent)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """Sums of 32 bits."""
        window = window_of(layer)
        if layer.kind is Kind.DEPTHWISE:
            g = self._golden
            sums = g.logarithmic_depthwise_weight_gradient(self._do, x.codes, error.codes, window)
        else:
            sums = self._do.weight_gradient(x.codes, error.codes, window)
        bias = self._do.bias_gradient(error.codes)
        exponent = x.exponent + error.exponent + self._do.unit_exponent
        return Gradient(sums, bias, exponent, error.exponent - self._places)

    def product_back(
        self, layer: Layer, error: Codes, parameters: LnsParameters, x: Codes, masked: bool
    ) -> Codes:
        """The transposed convolution, rounded behind the mask."""
        rest = self._weights(parameters), window_of(layer), *x.codes.shape[1:3]
        if layer.kind is Kind.DEPTHWISE:
            g = self._golden
            sums = g.logarithmic_depthwise_input_gradient(self._do, error.codes, *rest)
        else:
            sums = self._do.input_gradient(error.codes, *rest)
        if masked:
            sums = self._golden.relu_gradient(sums, x.codes)
        exponent = error.exponent + parameters.exponent + self._do.unit_exponent
        return self._error(f"{layer.inputs[0]} by {layer.name}", sums, exponent)

    def average_back(self, layer: Layer, error: Codes, x: Codes, masked: bool) -> Codes:
        """Linear errors at all pixels of their windows."""
        g, window = self._golden, window_of(layer)
        linear = self._do.linear(error.codes)
        sums = g.sum_pool_gradient(linear, window, *x.codes.shape[1:3])
        exponent = error.exponent - self._places - g.average_shift(window)
        return self._pool_back(layer, sums, exponent, x, masked)

    def maximum_back(self, layer: Layer, error: Codes, x: Codes, y: Codes, masked: bool) -> Codes:
        """Linear errors at the first maximum."""
        linear = self._do.linear(error.codes)
        sums = self._golden.max_pool_gradient(linear, x.codes, y.codes, window_of(layer))
        return self._pool_back(layer, sums, error.exponent - self._places, x, masked)

    def _pool_back(
        self, layer: Layer, sums: np.ndarray, exponent: int, x: Codes, masked: bool
    ) -> Codes:
        if masked:
            sums = self._golden.relu_gradient(sums, x.codes)
        return self._error(f"{layer.inputs[0]} by {layer.name}", sums, exponent)

    def mask(self, error: Codes, x: Codes) -> Codes:
        """Codes where x is above 0."""
        return Codes(self._golden.relu_gradient(error.codes, x.codes), error.exponent)

    def join(self, name: str, errors: Sequence[Codes]) -> Codes:
        """Linear errors are added."""
        sums, exponent = self._do.aligned_sum([(x.codes, x.exponent) for x in errors])
        return self._error(name, sums, exponent)

    def update(self, parameters: LnsParameters, gradient: Gradient, rate: Rate) -> None:
        """Weights by ``Update``; biases as with int8."""
        g = self._golden
        sum_shift = rate.sum_shift - self._momentum
        of_bias = parameters.exponent - g.BIAS_PLACES - gradient.bias_exponent + sum_shift
        parameters.bias = g.update(parameters.bias, gradient.bias, of_bias, g.LARGEST_SUM)
        if self._how is Update.MULTIPLIED:
            shift = rate.shift - self._momentum + MULTIPLIED_SHIFT
            parameters.masters, parameters.others = self._do.update_multiplied(
                parameters.masters, parameters.others, gradient.weights, shift, DECAY
            )
            return
        self._add(parameters, gradient, sum_shift)

    def _add(self, parameters: LnsParameters, gradient: Gradient, shift: int) -> None:
        from slipstick_rtl.numbers.lns.unit.arithmetic import Operation
        from slipstick_sim.golden.lns_compiled import CompiledAnswers
        from slipstick_sim.golden.lns_training import Elementwise

        step = self._golden.wide_codes(
            WIDE_FORMAT, -gradient.weights, gradient.weight_exponent - shift
        )
        answer = CompiledAnswers(WIDE_FORMAT)
        old, rest = parameters.masters, parameters.others
        new, owed = answer(Elementwise(Operation.COMPENSATED_ADD, old, step, rest))
        parameters.masters = np.where(step == 0, old, new)
        parameters.others = np.where(step == 0, rest, owed)

    def arrays(self, parameters: LnsParameters) -> dict[str, np.ndarray]:
        """Masters, norms or rests, biases, the exponent."""
        return {
            "masters": parameters.masters,
            "others": parameters.others,
            "bias": parameters.bias,
            "exponent": np.array(parameters.exponent),
        }

    def restore(self, parameters: LnsParameters, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave."""
        parameters.masters, parameters.others = arrays["masters"], arrays["others"]
        parameters.bias, parameters.exponent = arrays["bias"], int(arrays["exponent"])

    def _sum(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return self._golden.merge_gradients(parts)
