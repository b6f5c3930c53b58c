"""The input and output of a network to be trained, as its file has them."""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError, UnsupportedError
from ..graph import Graph
from ..kernels import run_graph
from ..program.steps import TensorDescription
from ..runtime.feeds import prepare_input

IMAGE_SCALE = 2.0**-7
"""Scale of the codes that a training reads."""

HALVING = 2 * (1 - 2.0**-12)
"""Halved codes stand for so many times the file's step. It is a little less than 2, so that every
runtime rounds halves away from 0: none of them is a tie."""

_AT_ONCE = 1024
"""Images."""


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A network's input and output, as a file has them.

    Parameters
    ----------
    input : str
    shape : tuple of int
        Of the input, with a batch of 1.
    dtype : str
        float32, int8 or uint8.
    scale : float or None
    zero_point : int or None
        Of the input's codes; None of float32.
    codes_scale : float
    codes_zero_point : int
        Of the int8 codes that the first layer of the file reads.
    halved : bool
        Whether a training reads half of those codes, less their zero point, to fit a byte.
    output : str
    softmax : bool
        Whether the output is the softmax of the logits.
    graph : Graph or None
        Makes those codes of the input; None: they are the input itself, as int8 or uint8.
    channels_first : bool
        Whether the file is ONNX's: pictures are N x C x H x W.
    """

    input: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None
    zero_point: int | None
    codes_scale: float
    codes_zero_point: int
    halved: bool
    output: str
    softmax: bool = False
    graph: Graph | None = None
    channels_first: bool = False

    @property
    def description(self) -> TensorDescription:
        """The input's, as sessions have it."""
        return TensorDescription(self.shape, self.dtype, self.scale, self.zero_point)

    @property
    def image_scale(self) -> float:
        """Real numbers of the file per code that a training reads."""
        return self.codes_scale * (HALVING if self.halved else 1)

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Images as the file takes them as codes of 2^-7.

        Parameters
        ----------
        images : array, (count, ...)
            Of the input's shape and type; real numbers and, for the zero point -128, uint8 are
            taken as ``InferenceSession`` takes them.

        Returns
        -------
        array of int8, (count, height, width, channels)
            The file's codes less their zero point; if ``halved``, half of that, rounded away from
            0.

        Raises
        ------
        InputError
            If the shape, the type or a value is none that the input takes.
        """
        if np.ndim(images) == len(self.shape) and len(images) > _AT_ONCE:
            starts = range(0, len(images), _AT_ONCE)
            return np.concatenate([self.encode(images[at : at + _AT_ONCE]) for at in starts])
        taken = prepare_input(self.input, self.description, images)
        if self.graph is None:
            codes = taken.astype(np.int16) - (self.zero_point or 0)
        else:
            codes = run_graph(self.graph, [taken])[self.graph.outputs[0]].astype(np.int16)
            codes -= self.codes_zero_point
        if self.halved:
            codes = np.sign(codes) * ((np.abs(codes) + 1) >> 1)
        return np.clip(codes, -128, 127).astype(np.int8)


def interface_of(graph: Graph, codes: str, *, halved: bool, channels_first: bool) -> Interface:
    """The interface of a file's graph.

    Parameters
    ----------
    graph : Graph
    codes : str
        The tensor of int8 codes that the first layer reads.
    halved : bool
    channels_first : bool

    Raises
    ------
    UnsupportedError
        If the input is neither codes of 8 bits nor float32.
    """
    source, first = graph.tensors[graph.inputs[0]], graph.tensors[codes]
    quantization = first.quantization
    if source.dtype not in ("float32", "int8", "uint8") or quantization is None:
        raise UnsupportedError(
            f"{graph.name}: input {source.name!r} must be float32, int8 or uint8 to be trained,"
            f" not {source.dtype}"
        )
    own = source.quantization
    if own is None and source.dtype != "float32":
        raise UnsupportedError(f"{graph.name}: codes of input {source.name!r} must have a scale")
    nodes = []
    for node in graph.nodes:
        if codes == graph.inputs[0] or (nodes and codes in nodes[-1].outputs):
            break
        nodes.append(node)
    return Interface(
        input=source.name,
        shape=source.shape,
        dtype=source.dtype,
        scale=None if own is None else float(own.scale[0]),
        zero_point=None if own is None else int(own.zero_point[0]),
        codes_scale=float(quantization.scale[0]),
        codes_zero_point=int(quantization.zero_point[0]),
        halved=halved,
        output=graph.outputs[0],
        softmax=any(node.operator == "softmax" for node in graph.nodes[-3:]),
        graph=graph.replace(nodes=tuple(nodes), outputs=(codes,)),
        channels_first=channels_first,
    )


def check_labels(labels: np.ndarray, images: int, classes: int) -> np.ndarray:
    """Labels as int64.

    Raises
    ------
    InputError
        If they are not one whole number per image, below ``classes``.
    """
    found = np.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (images,) or found.dtype.kind not in "iu":
        raise InputError(
            f"labels must be {images} whole numbers, one per image, not {found.dtype} {found.shape}"
        )
    for label in (found.min(initial=0), found.max(initial=0)):
        if not 0 <= label < classes:
            raise InputError(
                f"labels must be 0 to {classes - 1}, the network's classes, not {label}"
            )
    return found.astype(np.int64)
