"""Computes a network's outputs and gradients in float32, with numbers rounded to a format."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...quantize.lns_scales import fitting_scales
from ..arithmetic import Gradient
from ..float32 import Float32Arithmetic, FloatState, softmax
from ..golden import golden, window_of
from ..network import INPUT, FloatParameters, Initial, Kind, Layer, TrainingNetwork
from .formats import AwareFormat
from .rounding import Products, SumRounding, round_input, round_weights

_FINE = 2.0**-24
"""Ratio of additions' and means' units to their scales; a power of two leaves no trace."""


@dataclass
class Forward:
    """A forward pass.

    Parameters
    ----------
    tensors : dict
        float32, (batch, height, width, channels), by name.
    passes : dict
        Where errors pass, uint8 of 0 or 1, by the names of layers that round or have a ReLU.
    """

    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    passes: dict[str, np.ndarray] = field(default_factory=dict)


class AwareNetwork:
    """A network that rounds as its format's array does.

    Forward, every number that the array holds as a code is what that code stands for. Products are
    the array's, their sums are in float32, and become codes as ``ArrayArithmetic.requantize`` makes
    them. Backward, products are exact, and rounding counts as the identity within the range (see
    :mod:`.rounding`).

    Parameters
    ----------
    network : TrainingNetwork
        Averages are true means here, whatever their windows' sizes.
    coded : collection of str
        Layers whose outputs are rounded.
    form : AwareFormat or None
        None: nothing is rounded, so this is float32.

    Members
    -------
    coded : frozenset of str
        None of them in float32.
    scales : dict of float
        Of the input and of the coded layers' outputs.
    weight_scales : dict of array of float32, (outputs,)
        By layer.
    rounded : dict of FloatState
        Weights and biases of the passes, as ``round_parameters`` made them.
    exact_products : bool
        Whether products are the array's. If not, they are those of the numbers, which takes a
        fraction of the time: an array's are up to 1.7 % (F = 2) or 2.8 % (F = 1) off.
    """

    def __init__(
        self, network: TrainingNetwork, coded: Collection[str], form: AwareFormat | None
    ) -> None:
        self.network, self.form = network, form
        self.coded = frozenset(coded if form else ())
        self._plain = {layer.name: replace(layer, relu=False) for layer in network.layers}
        self._float = Float32Arithmetic()
        self.exact_products = True
        self.scales: dict[str, float] = {}
        self.weight_scales: dict[str, np.ndarray] = {}
        self.rounded: dict[str, FloatState] = {}
        self._beyond: dict[str, np.ndarray] = {}
        self._products = Products(form.arithmetic) if form else None
        self._factors: dict[str, list[np.ndarray]] = {}
        """Weights of the layers, each in the parts that ``Products`` multiplies."""

    def source_scale(self, layer: Layer) -> float:
        """The scale of what a layer reads: of the nearest tensor before it that is rounded."""
        name = layer.inputs[0]
        while name not in self.scales:
            name = self.network.by_name[name].inputs[0]
        return self.scales[name]

    def fit_weights(self, parameters: Initial) -> None:
        """Chooses the weights' scales as the quantiser does, from the scales of activations."""
        if self.form is None:
            return
        for layer in self.network.learning:
            copies = 2 if self._reads_two_codes(layer) else 1
            own = parameters[layer.name]
            self.weight_scales[layer.name] = fitting_scales(
                as_rows(layer, own.weights),
                self.source_scale(layer),
                own.bias.astype(np.float64),
                self.form.arithmetic,
                copies,
            )

    def _reads_two_codes(self, layer: Layer) -> bool:
        return self.doubled and layer.inputs[0] == INPUT

    @property
    def doubled(self) -> bool:
        """Tells whether the input has two codes per number.

        That is so if the format's codes are coarse, and only layers that sum over all channels
        read it.
        """
        readers = [layer for layer in self.network.layers if INPUT in layer.inputs]
        sums = all(layer.kind is Kind.CONVOLUTION for layer in readers)
        return self.form is not None and self.form.is_doubled and sums

    def round_parameters(self, parameters: Initial) -> None:
        """Rounds the master weights for the passes to come."""
        for layer in self.network.learning:
            own = parameters[layer.name]
            weights, bias = own.weights, own.bias
            if self._products is not None and self.form is not None:
                rows = as_rows(layer, weights)
                scales = self.weight_scales[layer.name]
                rounded, beyond = round_weights(rows, scales, self.form.arithmetic)
                self._beyond[layer.name] = from_rows(layer, beyond, weights.shape)
                self._factors[layer.name] = [
                    from_rows(layer, part, weights.shape)
                    for part in self._products.weights(rounded, scales)
                ]
                weights = from_rows(layer, rounded, weights.shape)
                unit = self._units(layer).astype(np.float32)
                bias = np.rint(bias.astype(np.float64) / unit).astype(np.float32) * unit
            # velocities play no part here
            self.rounded[layer.name] = FloatState(weights, bias, (weights, bias))

    def rounded_parameters(self) -> dict[str, FloatParameters]:
        """Returns the parameters that ``round_parameters`` made."""
        return {
            name: FloatParameters(state.weights, state.bias) for name, state in self.rounded.items()
        }

    def forward(self, images: np.ndarray) -> Forward:
        """All tensors of a batch.

        Parameters
        ----------
        images : array, (batch, height, width, channels)
            Numbers as the network's file takes them.
        """
        found = Forward()
        if self.form is None:
            codes = [images.astype(np.float32)]
        else:
            scale, arithmetic = self.scales[INPUT], self.form.arithmetic
            codes = round_input(images, scale, arithmetic, doubled=self.doubled)
        found.tensors[INPUT] = np.add.reduce(codes)
        for layer in self.network.layers:
            inputs = [found.tensors[name] for name in layer.inputs]
            made = self._compute(layer, codes if layer.inputs[0] == INPUT else inputs)
            found.tensors[layer.name] = self._finish(layer, made, found.passes)
        return found

    def _compute(self, layer: Layer, inputs: list[np.ndarray]) -> np.ndarray:
        plain, do = self._plain[layer.name], self._float
        if layer.learns:
            return self._sums(layer, inputs)
        if layer.kind is Kind.ADD:
            return do.add(plain, *inputs)
        if layer.kind is Kind.MAX_POOL:
            return do.maximum(plain, inputs[0])
        if layer.kind is Kind.AVERAGE_POOL:
            return do.average(plain, inputs[0]) * _whole_mean(layer)
        return inputs[0].reshape(len(inputs[0]), *self.network.shapes[layer.name])

    def _sums(self, layer: Layer, inputs: list[np.ndarray]) -> np.ndarray:
        """A layer's sums with its bias, of one code per number or two."""
        plain, do, own = self._plain[layer.name], self._float, self.rounded[layer.name]
        if self._products is None or not self.exact_products:
            return do.product(plain, np.add.reduce(inputs), own)
        scale, bias = self.source_scale(layer), own.bias
        total = None
        for codes in inputs:
            parts = self._products.activations(codes, scale)
            for part, factor in zip(parts, self._factors[layer.name], strict=True):
                made = do.product(plain, part, replace(own, weights=factor, bias=bias))
                total = made if total is None else np.add(total, made, out=total)
                bias = np.zeros_like(bias)
        assert total is not None
        return total

    def _finish(
        self, layer: Layer, numbers: np.ndarray, passes: dict[str, np.ndarray]
    ) -> np.ndarray:
        """Rounds what a layer gives, or cuts it at 0."""
        if layer.name in self.coded:
            numbers, passes[layer.name] = self._rounding(layer)(numbers)
        elif layer.relu:
            passes[layer.name] = (numbers > 0).astype(np.uint8)
            np.maximum(numbers, 0, out=numbers)
        return numbers

    def _rounding(self, layer: Layer) -> SumRounding:
        assert self.form is not None
        arithmetic, scale = self.form.arithmetic, self.scales[layer.name]
        if layer.learns:
            units = self._units(layer)
        elif layer.kind is Kind.AVERAGE_POOL:
            count = layer.kernel[0] * layer.kernel[1]
            units = np.array([_FINE * self.source_scale(layer) / count])
        else:
            units = np.array([2.0 ** np.floor(np.log2(scale)) * _FINE])
        return SumRounding(arithmetic, units, scale, layer.relu)

    def _units(self, layer: Layer) -> np.ndarray:
        """Real numbers that a layer's sums of 1 stand for, float64."""
        assert self.form is not None
        units = self.weight_scales[layer.name].astype(np.float64)
        return units * self.source_scale(layer) * self.form.arithmetic.unit

    def gradients(self, found: Forward, targets: np.ndarray) -> dict[str, Gradient]:
        """Computes gradients of the batch's mean cross-entropy with regard to the master weights.

        Parameters
        ----------
        found : Forward
            Of the batch.
        targets : array of float32, (batch, classes)
            Probabilities that the softmax should give; 1 at an image's label to learn labels alone.
        """
        last = self.network.layers[-1].name
        logits = found.tensors[last]
        errors_of_softmax = softmax(logits.reshape(targets.shape)) - targets
        first = errors_of_softmax.reshape(logits.shape) / np.float32(len(targets))
        errors: dict[str, list[np.ndarray]] = {last: [first]}
        gradients = {}
        for layer in reversed(self.network.layers):
            if layer.name not in errors:
                continue
            error = np.add.reduce(errors.pop(layer.name))
            if layer.name in found.passes:
                error = error * found.passes[layer.name]
            if layer.learns:
                whole = self._float.gradient(layer, found.tensors[layer.inputs[0]], error)
                gradients[layer.name] = self._cut(layer.name, whole)
            for name in layer.inputs:
                if name != INPUT:
                    back = self._back(layer, error, found.tensors, name)
                    errors.setdefault(name, []).append(back)
        return gradients

    def _cut(self, name: str, gradient: Gradient) -> Gradient:
        """No change of a weight beyond the largest code, but towards it."""
        if name not in self._beyond:
            return gradient
        signs = self.rounded[name].weights
        outward = self._beyond[name] & (gradient.weights * signs < 0)
        return Gradient(np.where(outward, np.float32(0), gradient.weights), gradient.bias)

    def _back(
        self, layer: Layer, error: np.ndarray, tensors: Mapping[str, np.ndarray], name: str
    ) -> np.ndarray:
        """The error of one of a layer's inputs."""
        do, x = self._float, tensors[name]
        if layer.learns:
            return do.product_back(layer, error, self.rounded[layer.name], x, False)
        if layer.kind is Kind.MAX_POOL:
            return do.maximum_back(layer, error, x, tensors[layer.name], False)
        if layer.kind is Kind.AVERAGE_POOL:
            return do.average_back(layer, error, x, False) * _whole_mean(layer)
        return error.reshape(x.shape)


def as_rows(layer: Layer, weights: np.ndarray) -> np.ndarray:
    """A layer's weights as (outputs, weights per output)."""
    if layer.kind is Kind.DEPTHWISE:
        return np.ascontiguousarray(weights.reshape(-1, weights.shape[3]).T)
    return weights.reshape(len(weights), -1)


def from_rows(layer: Layer, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The reverse of ``as_rows``."""
    if layer.kind is Kind.DEPTHWISE:
        return np.ascontiguousarray(rows.T).reshape(shape)
    return rows.reshape(shape)


def _whole_mean(layer: Layer) -> np.float32:
    """Returns the factor from a training's average to the mean.

    The training divides by a power of two.
    """
    count = layer.kernel[0] * layer.kernel[1]
    return np.float32((1 << golden().average_shift(window_of(layer))) / count)
