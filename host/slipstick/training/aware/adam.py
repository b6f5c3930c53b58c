"""Adam with steps relative to parameters, and a learning rate that falls as a cosine."""

import math
from collections.abc import Mapping

import numpy as np

from ..arithmetic import Gradient
from ..network import FloatParameters, Initial

DECAYS = 0.9, 0.999


class Adam:
    """Moves float32 parameters in place (D. Kingma and J. Ba, "Adam", 2015).

    A network that takes pixels of 0..255 has first weights of a thousandth, and other layers of a
    tenth. So a layer's steps are relative to the root mean square of its first weights (N. Shazeer
    and M. Stern, "Adafactor", 2018), and its bias's to that of the first bias, if it is not 0.

    Parameters
    ----------
    initial : mapping of FloatParameters
        Copied.

    Members
    -------
    parameters : dict of FloatParameters
        Master weights.
    """

    def __init__(self, initial: Initial) -> None:
        self.parameters = {
            name: FloatParameters(own.weights.copy(), own.bias.copy())
            for name, own in initial.items()
        }
        self._moments = {
            (name, kind): (np.zeros(array.size, np.float32), np.zeros(array.size, np.float32))
            for name, own in self.parameters.items()
            for kind, array in _arrays(own)
        }
        self._sizes = {
            (name, kind): _size(array) or _size(own.weights) or 1.0
            for name, own in self.parameters.items()
            for kind, array in _arrays(own)
        }
        self._steps = 0

    def step(self, gradients: Mapping[str, Gradient], rate: float) -> None:
        """Moves all parameters once, by about ``rate`` of their size."""
        from .kernels import step_adam

        self._steps += 1
        decays = tuple(np.float32(decay) for decay in DECAYS)
        corrections = tuple(np.float32(1 / (1 - decay**self._steps)) for decay in DECAYS)
        for name, own in self.parameters.items():
            changes = gradients[name].weights, gradients[name].bias
            for (kind, array), change in zip(_arrays(own), changes, strict=True):
                flat = np.ascontiguousarray(change, np.float32).reshape(-1)
                moments, own_rate = self._moments[name, kind], rate * self._sizes[name, kind]
                step_adam(
                    array.reshape(-1), flat, *moments, np.float32(own_rate), decays, corrections
                )


def _arrays(own: FloatParameters) -> tuple[tuple[str, np.ndarray], tuple[str, np.ndarray]]:
    return ("weights", own.weights), ("bias", own.bias)


def _size(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))


def cosine(rate: float, step: int, steps: int) -> float:
    """The learning rate of a step, from ``rate`` down to 0."""
    return rate * 0.5 * (1 + math.cos(math.pi * step / steps))
