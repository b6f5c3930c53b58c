"""Opens what is to be trained: a network's file, or a network by hand, by its name."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import InputError, UnsupportedError
from ..graph import Graph
from ..quantize import FloatNetwork
from .files import import_even, read_graph
from .interface import HALVING, IMAGE_SCALE, Interface, interface_of
from .network import FloatParameters, TrainingNetwork, initial_parameters
from .networks import ds_cnn, mnist_cnn, resnet8


@dataclass(frozen=True)
class OpenedNetwork:
    """A network, ready to be trained.

    Parameters
    ----------
    network : TrainingNetwork
    initial : mapping of FloatParameters
    interface : Interface
    known : bool
        Whether the weights are a file's, and not random.
    """

    network: TrainingNetwork
    initial: Mapping[str, FloatParameters]
    interface: Interface
    known: bool


@dataclass(frozen=True)
class _ByHand:
    """A network by hand: what makes it, and the codes that its images come as."""

    make: Callable[[], TrainingNetwork]
    dtype: str
    scale: float
    zero_point: int
    halved: bool = False


BY_HAND = {
    # a pixel of 0..255 becomes 0..127, so that the border of a digit is the padding's 0
    "mnist-cnn": _ByHand(mnist_cnn, "uint8", IMAGE_SCALE / HALVING, 0, True),
    # a pixel becomes -128..127
    "resnet8": _ByHand(resnet8, "uint8", IMAGE_SCALE, 128),
    "ds-cnn": _ByHand(ds_cnn, "int8", IMAGE_SCALE, 0),
}
"""Networks by hand, by their names."""


def open_network(
    model: str | os.PathLike[str],
    *,
    samples: Callable[[tuple[int, ...]], np.ndarray] | None = None,
    from_scratch: bool = False,
    classes: int | None = None,
    seed: int = 0,
) -> OpenedNetwork:
    """Opens a network.

    Parameters
    ----------
    model : str or path
        An int8 .tflite or .onnx file, a float .onnx file, or one of ``BY_HAND``.
    samples : callable, optional
        Given the shape of a float network's input, returns some inputs: the scales of its tensors
        come of them.
    from_scratch : bool
        Begins with random weights; a network by hand always does.
    classes : int, optional
        The last layer gets so many outputs, and random weights. By default it stays.
    seed : int
        Of random weights.

    Raises
    ------
    ModelError, UnsupportedError
        If the file cannot be read, or holds what cannot be trained.
    InputError
        If there is neither such a file nor such a network, or if the classes are none.
    """
    if classes is not None and classes < 2:
        raise InputError(f"classes must be at least 2, not {classes}")
    name = os.fspath(model)
    known = name not in BY_HAND and not from_scratch
    if name in BY_HAND:
        network, interface = _by_hand(name)
        initial: Mapping[str, FloatParameters] = {}
    else:
        place = Path(name)
        if not place.exists() and not place.suffix:
            raise InputError(
                f"a network must be a .tflite or .onnx file or one of {', '.join(BY_HAND)}, not"
                f" {name!r}"
            )
        network, initial, interface = _of_file(place, samples)
    last = network.layers[-1]
    if classes is not None and classes != network.classes:
        changed = replace(last, outputs=classes)
        network = replace(network, layers=(*network.layers[:-1], changed))
    if not known:
        initial = initial_parameters(network, seed)
    elif classes is not None:
        initial = {**initial, last.name: initial_parameters(network, seed)[last.name]}
    return OpenedNetwork(network, initial, interface, known)


def _by_hand(name: str) -> tuple[TrainingNetwork, Interface]:
    entry = BY_HAND[name]
    network = entry.make()
    interface = Interface(
        input="image",
        shape=(1, *network.shape),
        dtype=entry.dtype,
        scale=entry.scale,
        zero_point=entry.zero_point,
        codes_scale=entry.scale,
        codes_zero_point=entry.zero_point,
        halved=entry.halved,
        output="logits",
    )
    return network, interface


def _of_file(
    place: Path, samples: Callable[[tuple[int, ...]], np.ndarray] | None
) -> tuple[TrainingNetwork, Mapping[str, FloatParameters], Interface]:
    graph = _read(place, samples)
    found = import_even(graph)
    interface = interface_of(
        graph,
        found.codes,
        halved=found.halved,
        channels_first=place.suffix.lower() == ".onnx",
    )
    return found.network, found.initial, interface


def _read(place: Path, samples: Callable[[tuple[int, ...]], np.ndarray] | None) -> Graph:
    if samples is None or place.suffix.lower() != ".onnx":
        return read_graph(place)
    try:
        shape = FloatNetwork(place).shape
    except UnsupportedError:
        # it holds codes already
        return read_graph(place)
    return read_graph(place, samples(shape))
