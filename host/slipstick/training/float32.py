"""The twin that integer training is compared with: the same network and schedule in float32."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .arithmetic import Arithmetic, Gradient, Rate
from .golden import golden, window_of
from .network import Initial, Kind, Layer, TrainingNetwork

IMAGE_UNIT = np.float32(2.0**-7)


@dataclass
class FloatState:
    """A layer's parameters and their velocities, float32."""

    weights: np.ndarray
    bias: np.ndarray
    velocities: tuple[np.ndarray, np.ndarray]


class Float32Arithmetic(Arithmetic):
    """All in float32.

    Parameters
    ----------
    momentum : int
        The velocity loses 2^-momentum of itself per step; 0: there is none.
    """

    def __init__(self, momentum: int = 0) -> None:
        self._momentum = momentum
        self.ranges: dict[str, int] = {}
        self.reports: dict[str, int] = {}

    def start(self, network: TrainingNetwork, initial: Initial) -> dict[str, FloatState]:
        """Copies."""
        return {
            layer.name: FloatState(
                initial[layer.name].weights.astype(np.float32),
                initial[layer.name].bias.astype(np.float32),
                (
                    np.zeros_like(initial[layer.name].weights, np.float32),
                    np.zeros_like(initial[layer.name].bias, np.float32),
                ),
            )
            for layer in network.learning
        }

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Numbers of -1..1."""
        return images * IMAGE_UNIT

    def product(self, layer: Layer, x: np.ndarray, parameters: FloatState) -> np.ndarray:
        """A convolution."""
        window = window_of(layer)
        rows, columns = window.outputs(*x.shape[1:3])
        padded = window.pad(x)
        channels = len(parameters.bias)
        result = np.empty((len(x), rows, columns, channels), np.float32)
        if layer.kind is Kind.DEPTHWISE:
            result[:] = 0
            for ky, kx, at_rows, at_columns in window.taps(rows, columns):
                result += padded[:, at_rows, at_columns] * parameters.weights[0, ky, kx]
        else:
            factor = np.ascontiguousarray(parameters.weights.reshape(channels, -1).T)
            for piece in window.pieces(len(x), rows, columns):
                matrix = window.matrix(padded[piece], rows, columns)
                result[piece] = (matrix @ factor).reshape(result[piece].shape)
        result += parameters.bias
        return np.maximum(result, 0, out=result) if layer.relu else result

    def add(self, layer: Layer, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a + b."""
        total = a + b
        return np.maximum(total, 0, out=total) if layer.relu else total

    def average(self, layer: Layer, x: np.ndarray) -> np.ndarray:
        """Sums of windows by a power of two."""
        window = window_of(layer)
        rows, columns = window.outputs(*x.shape[1:3])
        padded = window.pad(x)
        total = np.zeros((len(x), rows, columns, x.shape[3]), np.float32)
        for _, _, at_rows, at_columns in window.taps(rows, columns):
            total += padded[:, at_rows, at_columns]
        return total * _share(layer)

    def maximum(self, layer: Layer, x: np.ndarray) -> np.ndarray:
        """Maxima."""
        return golden().max_pool(x, window_of(layer))

    def reshape(self, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The same numbers."""
        return x.reshape(shape)

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """As they are."""
        return x

    def loss_errors(self, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """softmax less one at the label."""
        flat = logits.reshape(len(labels), -1)
        errors = softmax(flat)
        errors[np.arange(len(labels)), labels] -= 1
        return errors.reshape(logits.shape)

    def gradient(self, layer: Layer, x: np.ndarray, error: np.ndarray) -> Gradient:
        """Sums over the batch."""
        window = window_of(layer)
        _, rows, columns, channels = error.shape
        padded = window.pad(x)
        if layer.kind is Kind.DEPTHWISE:
            weights = np.empty((1, *layer.kernel, channels), np.float32)
            for ky, kx, at_rows, at_columns in window.taps(rows, columns):
                taken = padded[:, at_rows, at_columns]
                weights[0, ky, kx] = np.einsum("nrcd,nrcd->d", taken, error)
        else:
            total = np.zeros((layer.kernel[0] * layer.kernel[1] * x.shape[3], channels), np.float32)
            for piece in window.pieces(len(x), rows, columns):
                matrix = window.matrix(padded[piece], rows, columns)
                total += matrix.T @ error[piece].reshape(-1, channels)
            weights = np.ascontiguousarray(total.T).reshape(channels, *layer.kernel, x.shape[3])
        return Gradient(weights, error.sum(axis=(0, 1, 2)))

    def product_back(
        self, layer: Layer, error: np.ndarray, parameters: FloatState, x: np.ndarray, masked: bool
    ) -> np.ndarray:
        """The transposed convolution."""
        window = window_of(layer)
        _, rows, columns, channels = error.shape
        padded = np.zeros_like(window.pad(x))
        if layer.kind is Kind.DEPTHWISE:
            for ky, kx, at_rows, at_columns in window.taps(rows, columns):
                padded[:, at_rows, at_columns] += error * parameters.weights[0, ky, kx]
        else:
            factor = parameters.weights.reshape(channels, -1)
            for piece in window.pieces(len(x), rows, columns):
                matrix = error[piece].reshape(-1, channels) @ factor
                window.scatter(matrix, padded[piece], rows, columns)
        return self._masked(window.unpad(padded), x, masked)

    def average_back(
        self, layer: Layer, error: np.ndarray, x: np.ndarray, masked: bool
    ) -> np.ndarray:
        """Shares of errors at all pixels of their windows."""
        window = window_of(layer)
        padded, (rows, columns) = np.zeros_like(window.pad(x)), error.shape[1:3]
        for _, _, at_rows, at_columns in window.taps(rows, columns):
            padded[:, at_rows, at_columns] += error
        return self._masked(window.unpad(padded) * _share(layer), x, masked)

    def maximum_back(
        self, layer: Layer, error: np.ndarray, x: np.ndarray, y: np.ndarray, masked: bool
    ) -> np.ndarray:
        """Errors at the first maximum."""
        return self._masked(golden().max_pool_gradient(error, x, y, window_of(layer)), x, masked)

    def mask(self, error: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Errors where x is above 0."""
        return self._masked(error, x, True)

    def join(self, name: str, errors: Sequence[np.ndarray]) -> np.ndarray:
        """Their sum."""
        return np.stack(errors).sum(axis=0, dtype=np.float32)

    def _masked(self, error: np.ndarray, x: np.ndarray, masked: bool) -> np.ndarray:
        return golden().relu_gradient(error, x) if masked else error

    def update(self, parameters: FloatState, gradient: Gradient, rate: Rate) -> None:
        """Stochastic gradient descent, with momentum."""
        factor = np.float32(2.0**-rate.sum_shift)
        values = parameters.weights, parameters.bias
        for value, velocity, change in zip(
            values, parameters.velocities, (gradient.weights, gradient.bias), strict=True
        ):
            velocity *= np.float32(1 - 2.0**-self._momentum if self._momentum else 0)
            velocity += factor * change
            value -= velocity

    def arrays(self, parameters: FloatState) -> dict[str, np.ndarray]:
        """Weights, biases, velocities."""
        first, second = parameters.velocities
        return {
            "weights": parameters.weights,
            "bias": parameters.bias,
            "velocity": first,
            "bias_velocity": second,
        }

    def restore(self, parameters: FloatState, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave."""
        parameters.weights, parameters.bias = arrays["weights"], arrays["bias"]
        parameters.velocities = arrays["velocity"], arrays["bias_velocity"]

    def _sum(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(parts).sum(axis=0, dtype=np.float32)


def _share(layer: Layer) -> np.float32:
    return np.float32(2.0 ** -golden().average_shift(window_of(layer)))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of classes, (batch, classes)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
