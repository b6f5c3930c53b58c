"""Training in integers of 8 bits, with or without master weights of 16: the golden functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .arithmetic import Arithmetic, Gradient, Rate
from .golden import golden, window_of
from .network import Initial, Kind, Layer, TrainingNetwork

IMAGE_EXPONENT = -7
"""Images are codes of 2^-7."""


class Range(StrEnum):
    """Values whose largest magnitude chooses a shift."""

    PREVIOUS = "previous"
    """The step's before: one pass, and the same for all boards; what has grown saturates."""

    PRESENT = "present"
    """This step's: sums must be kept until the largest is known."""


@dataclass(frozen=True)
class Codes:
    """A tensor: real = code x 2^exponent.

    Parameters
    ----------
    codes : array of int8
    exponent : int
    """

    codes: np.ndarray
    exponent: int


@dataclass
class IntegerParameters:
    """A layer's parameters.

    Parameters
    ----------
    masters : array of int32
        Master weights of 16 bits, in units of 2^(exponent - 8), or weights of 8 bits alone.
    bias : array of int32
        In units of 2^(exponent - 16).
    exponent : int
        Of the weights that are multiplied; it never changes.
    velocities : tuple of arrays of int32, or None
        Of masters and bias, with momentum.
    """

    masters: np.ndarray
    bias: np.ndarray
    exponent: int
    velocities: tuple[np.ndarray, np.ndarray] | None


class Int8Arithmetic(Arithmetic):
    """Activations, weights and errors of 8 bits, sums of 32.

    Parameters
    ----------
    master_bits : int
        16, or 8: the weights themselves are updated.
    momentum : int
        A velocity loses 2^-momentum of itself per step; 0: there is none.
    source : Range
        Whose largest magnitude chooses shifts.

    Raises
    ------
    ValueError
        If the masters have other bits.
    """

    def __init__(
        self, master_bits: int = 16, momentum: int = 0, source: Range = Range.PREVIOUS
    ) -> None:
        if master_bits not in (8, 16):
            raise ValueError(f"master weights must have 8 or 16 bits, not {master_bits}")
        self._golden = golden()
        self._wide, self._momentum, self._source = master_bits == 16, momentum, source
        self.ranges: dict[str, int] = {}
        self.reports: dict[str, int] = {}

    @property
    def takes_parts(self) -> bool:
        """Not where the whole batch's largest magnitude chooses the shifts."""
        return self._source is Range.PREVIOUS

    def start(self, network: TrainingNetwork, initial: Initial) -> dict[str, IntegerParameters]:
        """Rounded to nearest.

        A layer's exponent is the least with which 127 is the largest weight, and 2 standard
        deviations of random first weights, sqrt(2 / fan-in), if those are more. Twice that leaves
        room to grow, but costs 8-bit weights 0.2 points on MNIST: they learn more by small steps.
        """
        return {
            layer.name: self._rounded(initial[layer.name].weights, initial[layer.name].bias)
            for layer in network.learning
        }

    def _rounded(self, weights: np.ndarray, bias: np.ndarray) -> IntegerParameters:
        g = self._golden
        usual = 2 * np.sqrt(2 / weights[0].size) if len(weights) > 1 else 0
        largest = max(float(np.abs(weights).max(initial=0)), float(usual)) or 1.0
        exponent = int(np.ceil(np.log2(largest / g.LARGEST_CODE)))
        places = g.MASTER_PLACES if self._wide else 0
        masters = np.rint(np.ldexp(weights.astype(np.float64), places - exponent))
        biases = np.rint(np.ldexp(bias.astype(np.float64), g.BIAS_PLACES - exponent))
        whole = masters.astype(np.int32)
        whole_bias = np.clip(biases, -g.LARGEST_SUM, g.LARGEST_SUM).astype(np.int32)
        still = (np.zeros_like(whole), np.zeros_like(whole_bias)) if self._momentum else None
        return IntegerParameters(whole, whole_bias, exponent, still)

    def _weights(self, parameters: IntegerParameters) -> np.ndarray:
        if self._wide:
            return self._golden.weights_of(parameters.masters)
        return parameters.masters.astype(np.int8)

    def _shift(self, key: str, exponent: int, largest: int) -> int:
        """Reports a largest magnitude, and chooses the shift of sums of an exponent."""
        g = self._golden
        self.reports[key] = g.next_exponent(exponent, largest)
        if self._source is Range.PREVIOUS and key in self.ranges:
            return g.shift_between(exponent, self.ranges[key])
        return g.shift_for(largest)

    def _forward(self, key: str, sums: np.ndarray, exponent: int, relu: bool) -> Codes:
        g = self._golden
        shift = self._shift(key, exponent, g.largest_forward(sums, relu))
        return Codes(g.finish_forward(sums, shift, relu), exponent + shift)

    def _error(self, key: str, sums: np.ndarray, exponent: int) -> Codes:
        g = self._golden
        shift = self._shift(f"error of {key}", exponent, g.largest_error(sums))
        return Codes(g.finish_errors(sums, shift), exponent + shift)

    def encode(self, images: np.ndarray) -> Codes:
        """Images as they are."""
        return Codes(images, IMAGE_EXPONENT)

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """``finish_forward`` of sums with bias."""
        g, window = self._golden, window_of(layer)
        multiply = g.depthwise_forward if layer.kind is Kind.DEPTHWISE else g.convolve_forward
        exponent = x.exponent + parameters.exponent
        bias = g.bias_of(parameters.bias, exponent - parameters.exponent + g.BIAS_PLACES)
        sums = g.add_bias(multiply(x.codes, self._weights(parameters), window), bias)
        return self._forward(layer.name, sums, exponent, layer.relu)

    def add(self, layer: Layer, a: Codes, b: Codes) -> Codes:
        """``aligned_sum``, rounded to nearest."""
        sums, exponent = self._golden.aligned_sum([(x.codes, x.exponent) for x in (a, b)])
        return self._forward(layer.name, sums, exponent, layer.relu)

    def average(self, layer: Layer, x: Codes) -> Codes:
        """``sum_pool``, rounded to nearest."""
        g, window = self._golden, window_of(layer)
        sums = g.sum_pool(x.codes, window)
        return self._forward(layer.name, sums, x.exponent - g.average_shift(window), False)

    def maximum(self, layer: Layer, x: Codes) -> Codes:
        """``max_pool``."""
        return Codes(self._golden.max_pool(x.codes, window_of(layer)), x.exponent)

    def reshape(self, x: Codes, shape: tuple[int, ...]) -> Codes:
        """The same codes."""
        return Codes(x.codes.reshape(shape), x.exponent)

    def numbers(self, x: Codes) -> np.ndarray:
        """Codes times the power of two."""
        return np.ldexp(x.codes.astype(np.float32), x.exponent)

    def loss_errors(self, logits: Codes, labels: np.ndarray) -> Codes:
        """``loss_gradient``."""
        g, shift = self._golden, None
        if self._source is Range.PREVIOUS and "loss" in self.ranges:
            shift = g.shift_between(-g.SHARE_PLACES, self.ranges["loss"])
        flat = logits.codes.reshape(len(labels), -1)
        errors, exponent, largest = g.loss_gradient(flat, logits.exponent, labels, shift)
        self.reports["loss"] = g.next_exponent(-g.SHARE_PLACES, largest)
        return Codes(errors.reshape(logits.codes.shape), exponent)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """Sums of 32 bits."""
        g = self._golden
        multiply = (
            g.depthwise_weight_gradient if layer.kind is Kind.DEPTHWISE else g.weight_gradient
        )
        sums = multiply(x.codes, error.codes, window_of(layer))
        bias = g.bias_gradient(error.codes)
        return Gradient(sums, bias, x.exponent + error.exponent, error.exponent)

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """The transposed convolution, rounded pseudo-stochastically behind the mask."""
        g = self._golden
        multiply = g.depthwise_input_gradient if layer.kind is Kind.DEPTHWISE else g.input_gradient
        height, width = x.codes.shape[1:3]
        sums = multiply(error.codes, self._weights(parameters), window_of(layer), height, width)
        if masked:
            sums = g.relu_gradient(sums, x.codes)
        key = f"{layer.inputs[0]} by {layer.name}"
        return self._error(key, sums, error.exponent + parameters.exponent)

    def average_back(self, layer: Layer, error: Codes, x: Codes, masked: bool) -> Codes:
        """``sum_pool_gradient``."""
        g, window = self._golden, window_of(layer)
        sums = g.sum_pool_gradient(error.codes, window, *x.codes.shape[1:3])
        return self._pool_back(layer, sums, error.exponent - g.average_shift(window), x, masked)

    def maximum_back(self, layer: Layer, error: Codes, x: Codes, y: Codes, masked: bool) -> Codes:
        """``max_pool_gradient``."""
        sums = self._golden.max_pool_gradient(error.codes, x.codes, y.codes, window_of(layer))
        return self._pool_back(layer, sums, error.exponent, x, masked)

    def _pool_back(
        self, layer: Layer, sums: np.ndarray, exponent: int, x: Codes, masked: bool
    ) -> Codes:
        if masked:
            sums = self._golden.relu_gradient(sums, x.codes)
        if layer.stride[0] >= layer.kernel[0] and layer.stride[1] >= layer.kernel[1]:
            # windows do not overlap: codes travel as they are, there is no range
            return Codes(sums.astype(np.int8), exponent)
        return self._error(f"{layer.inputs[0]} by {layer.name}", sums, exponent)

    def mask(self, error: Codes, x: Codes) -> Codes:
        """``relu_gradient``."""
        return Codes(self._golden.relu_gradient(error.codes, x.codes), error.exponent)

    def join(self, name: str, errors: Sequence[Codes]) -> Codes:
        """``aligned_sum``, rounded pseudo-stochastically."""
        sums, exponent = self._golden.aligned_sum([(x.codes, x.exponent) for x in errors])
        return self._error(name, sums, exponent)

    def update(self, parameters: IntegerParameters, gradient: Gradient, rate: Rate) -> None:
        """One rounding of the whole batch's sums."""
        g, velocities = self._golden, parameters.velocities
        largest = g.LARGEST_MASTER if self._wide else g.LARGEST_CODE
        shift = self.update_shift(parameters.exponent, gradient.weight_exponent, rate)
        if velocities is None:
            parameters.masters = g.update(parameters.masters, gradient.weights, shift, largest)
            self.update_bias(parameters, gradient, rate)
            return
        first, second = velocities
        parameters.masters, first = g.update_with_momentum(
            parameters.masters, first, gradient.weights, shift, largest, self._momentum
        )
        parameters.bias, second = g.update_with_momentum(
            parameters.bias,
            second,
            gradient.bias,
            self._bias_shift(parameters, gradient, rate),
            g.LARGEST_SUM,
            self._momentum,
        )
        parameters.velocities = first, second

    def update_bias(self, parameters: IntegerParameters, gradient: Gradient, rate: Rate) -> None:
        """The bias alone, without momentum."""
        g, shift = self._golden, self._bias_shift(parameters, gradient, rate)
        parameters.bias = g.update(parameters.bias, gradient.bias, shift, g.LARGEST_SUM)

    def _bias_shift(self, parameters: IntegerParameters, gradient: Gradient, rate: Rate) -> int:
        places = self._golden.BIAS_PLACES
        return parameters.exponent - places - gradient.bias_exponent + rate.sum_shift

    def update_shift(self, exponent: int, of_gradient: int, rate: Rate) -> int:
        """The shift of an update of weights; below 0 to the left.

        Parameters
        ----------
        exponent : int
            Of the weights that are multiplied.
        of_gradient : int
            The exponent of the gradient's sums.
        rate : Rate
        """
        places = self._golden.MASTER_PLACES if self._wide else 0
        return exponent - places - of_gradient + rate.sum_shift

    def arrays(self, parameters: IntegerParameters) -> dict[str, np.ndarray]:
        """Masters, biases, the exponent, velocities."""
        found = {
            "masters": parameters.masters,
            "bias": parameters.bias,
            "exponent": np.array(parameters.exponent),
        }
        if parameters.velocities is not None:
            found["velocity"], found["bias_velocity"] = parameters.velocities
        return found

    def restore(self, parameters: IntegerParameters, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave."""
        parameters.masters, parameters.bias = arrays["masters"], arrays["bias"]
        parameters.exponent = int(arrays["exponent"])
        if parameters.velocities is not None:
            parameters.velocities = arrays["velocity"], arrays["bias_velocity"]

    def _sum(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return self._golden.merge_gradients(parts)
