"""A trained network as files have it: codes of weights, and the meaning of every code."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import UnsupportedError
from ..golden import golden
from ..interface import IMAGE_SCALE, Interface
from ..network import INPUT, Kind, Layer, TrainingNetwork


@dataclass(frozen=True)
class LayerCodes:
    """A layer's parameters.

    Parameters
    ----------
    weights : array of int8
        Of ``TrainingNetwork.weight_shape``.
    exponent : int
        A weight is code x 2^exponent in the training.
    bias : array of int32
        In units of 2^(exponent - 16).
    """

    weights: np.ndarray
    exponent: int
    bias: np.ndarray


@dataclass(frozen=True)
class TrainedNetwork:
    """A network whose ranges are known.

    Parameters
    ----------
    network : TrainingNetwork
    layers : mapping of LayerCodes
        By the names of the layers that have weights.
    exponents : mapping of int
        By tensor: in the training it is code x 2^exponent.
    interface : Interface
    """

    network: TrainingNetwork
    layers: Mapping[str, LayerCodes]
    exponents: Mapping[str, int]
    interface: Interface


@dataclass(frozen=True)
class Meaning:
    """Describes the numbers that codes of a tensor stand for.

    Parameters
    ----------
    unit : float
        In the training: the real number per code.
    scale : float
        In the file.
    """

    unit: float
    scale: float


def meanings(
    trained: TrainedNetwork, image_scale: float, *, rescaled_averages: bool
) -> dict[str, Meaning]:
    """Finds the numbers that the codes of every tensor stand for.

    Parameters
    ----------
    trained : TrainedNetwork
    image_scale : float
        Of the int8 codes of images, in the file.
    rescaled_averages : bool
        Whether the file's averages may have a scale of their own. If not, those that are of no
        whole picture keep their input's.

    Raises
    ------
    UnsupportedError
        If an addition's inputs differ in what a real number of the file is in the training.
    """
    network = trained.network
    found = {INPUT: Meaning(IMAGE_SCALE, image_scale)}
    for layer in network.layers:
        source = found[layer.inputs[0]]
        unit = 2.0 ** trained.exponents[layer.name]
        ratio = source.scale / source.unit
        if layer.learns:
            made = Meaning(unit, unit)
        elif layer.kind is Kind.ADD:
            other = found[layer.inputs[1]]
            if not np.isclose(other.scale / other.unit, ratio, rtol=1e-6):
                raise UnsupportedError(
                    f"layer {layer.name!r} must not add an average of windows to what is none: no"
                    " file has such a sum"
                )
            made = Meaning(unit, unit * ratio)
        elif layer.kind is Kind.AVERAGE_POOL:
            # a training divides by the power of two at or above the count
            count = layer.kernel[0] * layer.kernel[1]
            share = count / (1 << (count - 1).bit_length())
            if rescaled_averages or is_global(network, layer):
                made = Meaning(unit, unit * ratio / share)
            else:
                made = Meaning(source.unit * share, source.scale)
        else:
            made = source
        found[layer.name] = made
    return found


def is_global(network: TrainingNetwork, layer: Layer) -> bool:
    """Tells whether a pool's one window is the whole picture."""
    return layer.kernel == network.shapes[layer.inputs[0]][:2] and not any(layer.padding)


def is_dense(network: TrainingNetwork, layer: Layer) -> bool:
    """Tells whether a convolution is fully connected: of one pixel, behind ``FLATTEN`` or last."""
    plain = layer.kind is Kind.CONVOLUTION and layer.kernel == (1, 1) and not any(layer.padding)
    one_pixel = network.shapes[layer.inputs[0]][:2] == (1, 1)
    last = layer.name == network.layers[-1].name
    return plain and one_pixel and (last or is_flat(network, layer.inputs[0]))


def is_flat(network: TrainingNetwork, name: str) -> bool:
    """Tells whether a tensor is a row of numbers, and no picture."""
    layer = network.by_name.get(name)
    if layer is None:
        return False
    if layer.kind is Kind.FLATTEN or is_dense(network, layer):
        return True
    return not layer.learns and is_flat(network, layer.inputs[0])


def weight_scale(layer: LayerCodes, source: Meaning) -> float:
    """The file's scale of a layer's weights: a product of codes means what it does in training."""
    return float(np.ldexp(source.unit / source.scale, layer.exponent))


def bias_codes(layer: LayerCodes, source: Meaning) -> np.ndarray:
    """A layer's biases in units of its sums, int32, rounded half to even as the training rounds."""
    g = golden()
    codes = np.rint(np.ldexp(layer.bias.astype(np.float64), -g.BIAS_PLACES) / source.unit)
    return np.clip(codes, -g.LARGEST_SUM, g.LARGEST_SUM).astype(np.int32)


def code_steps(interface: Interface) -> list[tuple[float, int]]:
    """Scales and zero points of the int8 codes that the input becomes, one after the other.

    None if the input's own codes are what a training reads.
    """
    steps, now = [], (interface.dtype, interface.scale, interface.zero_point)
    if interface.graph is not None:
        first = interface.codes_scale, interface.codes_zero_point
        if now != ("int8", *first):
            steps.append(first)
            now = ("int8", *first)
    last = interface.image_scale, 0
    return steps if now == ("int8", *last) else [*steps, last]


class Names:
    """Names of a file's tensors: those that are asked for, made unlike those before.

    Parameters
    ----------
    taken : str
        Names that are there.
    """

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)

    def new(self, name: str) -> str:
        """The name, or one like it."""
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        return name
