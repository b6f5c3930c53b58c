"""The graph that front-ends make and passes rewrite: tensors by name, nodes in execution order."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Quantization:
    """real = scale x (code - zero_point); one pair, or one a channel along ``axis``.

    Parameters
    ----------
    scale : array of float64, 1 or channels long
    zero_point : array of int64, as long
    axis : int or None
        The channel axis where there is more than one scale, else None.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int | None = None


@dataclass(frozen=True)
class Tensor:
    """A tensor: activations have ``data`` None, constants hold theirs.

    ``dtype`` is a NumPy name: int8, uint8, int32, int64, float32, bool. Shapes are complete (batch
    1): a front-end refuses dynamic ones.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantization: Quantization | None = None
    data: np.ndarray | None = None


@dataclass(frozen=True)
class Node:
    """A node of one operator, of which ``slipstick.operators`` holds the record.

    ``attributes`` are normalised by the front-end:

    ============================  ==================================================================
    operator                      inputs; attributes
    ============================  ==================================================================
    conv2d                        x NHWC, weights OHWI, bias or ""; stride (y, x), dilation (y, x),
                                  padding (top, bottom, left, right), groups, activation
    depthwise_conv2d              x, weights 1HWO, bias or ""; as conv2d, and multiplier (O / I)
    transpose_conv2d              x, weights OHWI, bias or ""; stride, activation, padding (top,
                                  left): what is cut off the whole result
    fully_connected               x (any rank, flattened to rows of I), weights OI, bias or "";
                                  activation, keep_dimensions
    add, sub, mul                 a, b, which broadcast; activation
    squared_difference            a, b, which broadcast
    maximum, minimum              a, b, which broadcast; all of one quantisation
    pooling                       x; window (y, x), stride, padding, activation; ties of the average
                                  "away" from zero (if absent) or "up"
    mean                          x; axes (tuple), keep_dimensions
    reduce_sum, -_max, -_min      x; as mean
    matmul                        a, b, matrices in the last two axes; transpose_a, transpose_b
    reshape                       x; shape
    concatenation                 any number; axis
    pack                          any number; axis, a new one
    slice                         x; starts, steps, sizes (one an axis), shape (of what is left)
    transpose                     x; permutation
    pad                           x; padding ((before, after) per axis), value (a code)
    mirror_pad                    x; padding, mode "reflect" or "symmetric"
    space_to_depth,               x; block
    depth_to_space
    resize_nearest,               x; size (y, x), align_corners, half_pixel_centers; ties "up"
    resize_bilinear               where the codes were uint8
    softmax                       x; beta
    log_softmax                   x
    arg_max, arg_min              x; axis
    functions of one number       x; their own, as alpha of leaky_relu
    prelu                         x, alpha, which broadcasts
    quantize, dequantize          x
    lstm                          x, hidden state, cells; weights of x and of the hidden state, and
                                  biases, of the input, forget, cell and output gate each; clip
                                  (a cell's largest magnitude, 0: none). Outputs: the hidden states
                                  of all steps, the last one, the last cells
    ============================  ==================================================================

    Of graphs with ONNX's semantics (they have not all of the above, and no fused activations):

    ============================  ==================================================================
    all that compute              clamp (lowest and highest code), if not all codes; where an input
                                  or output is float32, they compute in float32
    add                           negate: a - b; offset "before": the zero point is added before the
                                  rounding; "before of uint8": that of codes 128 higher
    average_pool2d, mean          counted: how much of the padding counts; float32 "rows" or
                                  "columns": in which order float32 numbers are summed up
    matmul, div, pow              a, b
    softmax, log_softmax          x; axis
    layer_normalization           x, scale, bias; axes, epsilon, centred (false: the mean is 0)
    lookup                        codes, a table of 256
    function                      x; function (ONNX's name) and its attributes
    reduce                        x; function, axes, keep_dimensions
    pooling with gaps             x; as without gaps, and dilation (y, x)
    resize                        x, places and weights (taps, outputs) an axis; axes, outside
    gather                        x, places; axis
    arg_max, arg_min              x; axis, last (the last of equal ones)
    pixel_shuffle, _unshuffle     x; block: its channels are columns of the block's pixels
    edge_pad, tile, expand        x; padding, or repeats
    where                         condition (float32), a, b
    einsum                        any number; equation
    recurrent                     x; weights of x and of the hidden state, biases, first hidden
                                  state and cells, peepholes, scales of weights; kind (LSTM or GRU),
                                  units, reverse (a direction each), clip, ...; outputs as ONNX's
    dynamic_scale, _zero_point    x, and the scale: DynamicQuantizeLinear's, of each image
    quantize_by, dequantize_by    x, scales, zero points, which broadcast; int8 without a meaning
    ============================  ==================================================================

    Of graphs of logarithmic codes, as of ONNX's; but codes mean sign x 2^(abs(code) / 2^F) x scale,
    and all zero points are 0. What has no codes on either side is computed in float32.

    A layer or matmul in float32 is exact where ``whole`` is set: its numbers are whole.

    Weights may have zero points. The leading axis of an activation is its batch: no operator mixes
    or moves it.

    ``activation`` is "none", "relu", "relu6" or "relu_n1_to_1". Names in ``inputs`` that are ""
    stand for an absent optional input.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variable:
    """A tensor that a network keeps from run to run.

    Parameters
    ----------
    name : str
    source : str
        The tensor that a run begins with; no node makes it.
    result : str
        The tensor that the next run begins with: a node's output, or itself a source or an input.
    initial : array
        The first run's.
    """

    name: str
    source: str
    result: str
    initial: np.ndarray


@dataclass(frozen=True)
class Graph:
    """A network: nodes in an order in which they can run, every tensor by name.

    ``variables`` are what it keeps from run to run: their sources are inputs of a run, and their
    results outputs, beside the network's own.

    ``semantics`` names the reference whose rounding the integers follow: "tflm" or "onnx"; or, of a
    graph of logarithmic codes, their format, such as "lns1+3+4": all codes are of one format.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    semantics: str = "tflm"
    variables: tuple[Variable, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """All that a run begins with: the inputs, and what variables hold."""
        return (*self.inputs, *(variable.source for variable in self.variables))

    @property
    def results(self) -> tuple[str, ...]:
        """All that must be there when a run ends: the outputs, and what variables are to hold."""
        kept = (variable.result for variable in self.variables)
        return tuple(dict.fromkeys((*self.outputs, *kept)))

    def replace(self, **changes: Any) -> "Graph":
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def consumers(self, tensor: str) -> list[Node]:
        """The nodes that read a tensor."""
        return [node for node in self.nodes if tensor in node.inputs]

    def producer(self, tensor: str) -> Node | None:
        """The node that writes a tensor, None for inputs and constants."""
        return next((node for node in self.nodes if tensor in node.outputs), None)
