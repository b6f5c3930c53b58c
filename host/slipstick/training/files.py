"""Reads networks that are to be trained: int8 .tflite and .onnx, float .onnx."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import InputError, ModelError, UnsupportedError
from ..frontends.onnx import load_onnx, load_onnx_bytes
from ..frontends.tflite import load_tflite
from ..graph import Graph
from .equalise import equalise
from .graphs import ImportedNetwork, import_graph


def load_network(
    path: str | os.PathLike[str], samples: np.ndarray | None = None
) -> ImportedNetwork:
    """A network of a file, with channels that are even.

    Parameters
    ----------
    path : path
    samples : array of float32, optional
        Inputs of a float network, as its file takes them: the scales of its tensors come of them.

    Raises
    ------
    ModelError, UnsupportedError
        If the file cannot be read, or holds what cannot be trained.
    InputError
        If the network is float and there are no samples.
    """
    return import_even(read_graph(Path(path), samples))


def import_even(graph: Graph) -> ImportedNetwork:
    """A graph's network for training, with channels that are even; UnsupportedError as there."""
    found = import_graph(graph)
    return replace(found, initial=equalise(found.network, found.initial))


def read_graph(place: Path, samples: np.ndarray | None = None) -> Graph:
    """The graph of int8 codes of a file; parameters and errors as ``load_network``'s."""
    if place.suffix.lower() == ".tflite":
        return load_tflite(place)
    if place.suffix.lower() == ".onnx":
        return _of_onnx(place, samples)
    raise ModelError(f"a network to be trained must be a .tflite or .onnx file, not {place}")


def _of_onnx(place: Path, samples: np.ndarray | None) -> Graph:
    from ..quantize import FloatNetwork

    try:
        network = FloatNetwork(place)
    except UnsupportedError:
        # quantised already, or neither: then this says why not
        return load_onnx(place)
    if samples is None or not len(samples):
        raise InputError(f"{place} is a float network: some samples of its inputs must be given")
    return load_onnx_bytes(network.quantize(samples.astype(np.float32)))
