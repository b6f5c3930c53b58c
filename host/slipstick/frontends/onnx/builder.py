"""The graph under construction: its tensors and nodes, and values brought to one layout or type."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ...errors import ModelError, UnsupportedError
from ...graph import Node, Quantization, Tensor
from ...kernels.lns.codes import meanings
from ..files import MAXIMUM_ACTIVATION, MAXIMUM_ELEMENTS, MAXIMUM_FOLDED, MAXIMUM_RANK, quoted
from .values import Activation, Coded, Constant, Float, Pending, Real, Result, Shape, Value

LARGEST = float(np.finfo(np.float32).max)

_TO_PICTURE, _TO_NATURAL = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True)
class Source:
    """Describes which of ONNX's tensors a tensor of the graph is.

    Parameters
    ----------
    name : str
    layout : str
    picture : tuple of int
        Both as an ``Activation`` has them.
    dtype, kept : str
        ONNX's type and the graph's: uint8 codes are int8 ones there, less 128.
    lead : int
        Axes of one in front that the graph alone has.
    """

    name: str
    layout: str
    picture: Shape
    dtype: str
    kept: str
    lead: int = 0


def per_tensor(scale: float, zero_point: int) -> Quantization:
    """One scale and zero point."""
    return Quantization(np.array([scale], np.float64), np.array([zero_point], np.int64))


def picture_shape(shape: Shape) -> Shape:
    """N x H x W x C of an ONNX shape N x C x H x W, or N x C x W."""
    return (shape[0], *(shape[2:] if len(shape) == 4 else (1, shape[2])), shape[1])


class Builder:
    """Tensors and nodes so far.

    Parameters
    ----------
    model : str
        The file's name, for messages.
    batch : int
        The batch that the file fixes; the graph's is 1.
    lead : int
        Axes of one that the graph has in front of ONNX's: 1 if that has no batch.
    arithmetic : ArrayArithmetic, optional
        Of logarithmic codes; by default codes are int8's.

    Members
    -------
    foldable : int
        Bytes that constants may still make of each other.
    reserved : set of str
        Names that only ``rename`` gives: those of the network's outputs.
    derived : dict
        Tensors that are functions of another one's codes: that one, and a code for each code.
    reshaped_of : dict
        By a tensor's name and an ONNX shape: the activation of that shape that it was made of.
    """

    def __init__(
        self,
        model: str,
        batch: int = 1,
        lead: int = 0,
        arithmetic: ArrayArithmetic | None = None,
    ) -> None:
        self.model, self.batch, self._lead = model, batch, lead
        self.arithmetic = arithmetic
        self.foldable = MAXIMUM_FOLDED
        self.reserved: set[str] = set()
        self.derived: dict[str, tuple[Activation, np.ndarray]] = {}
        self.reshaped_of: dict[tuple[str, Shape], Activation] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.sources: dict[str, Source] = {}
        self._node_names: set[str] = set()
        self._renamed: dict[str, str] = {}
        self._laid: dict[tuple[str, str], Activation] = {}

    @property
    def every_code(self) -> np.ndarray:
        """The code that each of the bytes -128, ..., 127 is: itself, or the nearest."""
        largest = 128 if self.arithmetic is None else self.arithmetic.lns.largest_code
        return np.clip(np.arange(-128, 128), -largest, largest)

    def meanings(self, quantization: Quantization) -> np.ndarray:
        """The real numbers, float32, that the bytes -128, ..., 127 stand for."""
        scale = np.float32(quantization.scale[0])
        if self.arithmetic is not None:
            return (meanings(self.arithmetic) * scale).astype(np.float32)
        return (np.arange(-128, 128) - quantization.zero_point[0]).astype(np.float32) * scale

    def tensor(
        self,
        name: str,
        shape: Shape,
        dtype: str,
        quantization: Quantization | None = None,
        data: np.ndarray | None = None,
    ) -> str:
        """A new tensor, and its name: the one given, or one like it."""
        what = f"{self.model}: tensor {quoted(name)}"
        most = MAXIMUM_ACTIVATION if data is None else MAXIMUM_ELEMENTS
        sizes = (len(shape) <= MAXIMUM_RANK, math.prod(shape) <= most)
        if min(shape, default=1) < 1 or not all(sizes):
            raise ModelError(
                f"{what}: shape must be up to {MAXIMUM_RANK} sizes of at least 1 and"
                f" {most} elements, not {shape}"
            )
        if data is None and (not shape or shape[0] != 1):
            raise UnsupportedError(f"{what}: the batch (dimension 0) must be 1, not shape {shape}")
        free = name or "tensor"
        while free in self.tensors or free in self.reserved:
            free = f"{free}'"
        self.tensors[free] = Tensor(free, tuple(shape), dtype, quantization, data)
        return free

    def constant(
        self, name: str, array: np.ndarray, quantization: Quantization | None = None
    ) -> str:
        """A new tensor with contents."""
        data = np.ascontiguousarray(array)
        return self.tensor(name, data.shape, data.dtype.name, quantization, data)

    def node(
        self,
        name: str,
        operator: str,
        inputs: tuple[str, ...],
        output: str | tuple[str, ...],
        attributes: Mapping[str, Any],
    ) -> None:
        """A new node behind the others, of one output or several."""
        free = name
        while free in self._node_names:
            free = f"{free}'"
        self._node_names.add(free)
        outputs = (output,) if isinstance(output, str) else output
        self.nodes.append(Node(free, operator, inputs, outputs, dict(attributes)))

    def note(self, name: str, activation: Activation, dtype: str) -> None:
        """Remembers which ONNX tensor the graph's tensor is."""
        known = [(activation, self._lead)]
        inner = self.reshaped_of.get((activation.tensor, activation.shape[1:]))
        if self._lead and inner is not None:
            # a picture with a batch of its own
            known.append((inner, 0))
        for item, lead in known:
            kept = self.tensors[item.tensor].dtype
            source = Source(name, item.layout, item.picture, dtype, kept, lead)
            self.sources.setdefault(item.tensor, source)

    def rename(self, tensor: str, name: str) -> None:
        """Gives a tensor that a node writes a name that was reserved."""
        old = self.tensors.pop(tensor)
        self.tensors[name] = Tensor(name, old.shape, old.dtype, old.quantization)
        for index, node in enumerate(self.nodes):
            if tensor in node.inputs or tensor in node.outputs:
                inputs, outputs = (
                    tuple(name if item == tensor else item for item in items)
                    for items in (node.inputs, node.outputs)
                )
                self.nodes[index] = Node(node.name, node.operator, inputs, outputs, node.attributes)
        if tensor in self.sources:
            self.sources[name] = self.sources.pop(tensor)
        self._renamed[tensor] = name

    def current(self, activation: Activation) -> Activation:
        """The activation by the name that its tensor has now."""
        name = self._renamed.get(activation.tensor)
        return activation if name is None else dataclasses.replace(activation, tensor=name)

    def like(self, tensor: str, name: str, shape: Shape) -> str:
        """A new tensor of another's type and quantisation."""
        other = self.tensors[tensor]
        return self.tensor(name, shape, other.dtype, other.quantization)

    def picture(self, activation: Activation) -> Activation:
        """In layout "picture"; the ONNX tensor has three or four dimensions."""
        if activation.layout == "picture":
            return activation
        key = (activation.tensor, "picture")
        if key not in self._laid:
            n, c, *rest = activation.shape
            source, name = activation.tensor, f"{activation.tensor}/nhwc"
            if len(rest) == 1 and c > 1:
                source = self._reshaped(source, f"{activation.tensor}/nchw", (n, c, 1, *rest))
            shape = picture_shape(activation.shape)
            made = self._moved(source, name, shape, _TO_PICTURE, c == 1 or math.prod(rest) == 1)
            self._laid[key] = Activation(made, activation.shape, "picture")
            self._laid[made, "natural"] = activation
        return self._laid[key]

    def natural(self, activation: Activation) -> Activation:
        """In layout "natural"."""
        if activation.layout == "natural":
            return activation
        key = (activation.tensor, "natural")
        if key not in self._laid:
            flat = activation.layout == "flattened"
            n, c, *rest = shape = activation.picture if flat else activation.shape
            tensor, name = activation.tensor, f"{activation.tensor}/nchw"
            still = c == 1 or math.prod(rest) == 1
            if flat and not still:
                tensor = self._reshaped(tensor, f"{tensor}/nhwc", picture_shape(shape))
            whole = (n, c, *((1, *rest) if len(rest) == 1 else rest))
            if not still:
                tensor = self._moved(tensor, name, whole, _TO_NATURAL, False)
            if self.tensors[tensor].shape != activation.shape:
                tensor = self._reshaped(tensor, name, activation.shape)
            self._laid[key] = Activation(tensor, activation.shape)
        return self._laid[key]

    def reshaped(self, activation: Activation, name: str, shape: Shape, label: str) -> Activation:
        """An activation of another ONNX shape; one that flattens a picture stays as it lies."""
        n, *rest = activation.shape
        picture = activation.layout == "picture"
        trivial = picture and (rest[0] == 1 or math.prod(rest[1:]) == 1)
        if picture and not trivial and tuple(shape) == (n, math.prod(rest)):
            made = self._reshaped(activation.tensor, name, shape, label)
            return Activation(made, shape, "flattened", activation.shape)
        if not trivial:
            activation = self.natural(activation)
        return Activation(self._reshaped(activation.tensor, name, shape, label), shape)

    def _reshaped(self, tensor: str, name: str, shape: Shape, label: str = "") -> str:
        made = self.like(tensor, name, shape)
        self.node(label or made, "reshape", (tensor,), made, {"shape": tuple(shape)})
        return made

    def _moved(self, tensor: str, name: str, shape: Shape, permutation: Shape, still: bool) -> str:
        """Transposed, or only reshaped where every element keeps its place."""
        if still:
            return self._reshaped(tensor, name, shape)
        made = self.like(tensor, name, shape)
        self.node(made, "transpose", (tensor,), made, {"permutation": permutation})
        return made

    def relabelled(self, activation: Activation, quantization: Quantization) -> Activation:
        """The same codes with another meaning."""
        old = self.tensors[activation.tensor]
        if old.quantization is None:
            self.tensors[activation.tensor] = Tensor(
                old.name, old.shape, old.dtype, quantization, old.data
            )
            return activation
        known = (float(old.quantization.scale[0]), int(old.quantization.zero_point[0]))
        if known == (float(quantization.scale[0]), int(quantization.zero_point[0])):
            return activation
        name = f"{activation.tensor}/as"
        made = self.tensor(name, old.shape, old.dtype, quantization)
        self.node(made, "reshape", (activation.tensor,), made, {"shape": old.shape})
        return Activation(made, activation.shape, activation.layout, activation.picture)

    def emit(self, pending: Pending, result: Result) -> Activation:
        """Computes a pending tensor in the codes that are asked for, or as float32."""
        quantization = result.quantization
        key = (result.dtype, result.clamp) + (
            () if quantization is None else (quantization.scale[0], quantization.zero_point[0])
        )
        if key not in pending.made:
            pending.made[key] = pending.emit(result)
        return pending.made[key]

    def real(self, value: Value) -> Activation:
        """A tensor of the graph that stands for the real numbers of a value: linear codes, or
        float32; constants are the caller's."""
        match value:
            case Float(activation):
                return activation
            case Real(activation, _, True):
                return activation
            case Real(activation, values, _):
                source = activation.tensor
                made = self.tensor(f"{source}/real", self.tensors[source].shape, "float32")
                table = self.constant(f"{made}/table", values)
                self.node(made, "lookup", (source, table), made, {})
                return Activation(made, activation.shape, activation.layout, activation.picture)
            case Pending():
                return self._whole(value)
            case _:
                raise ModelError(f"{self.model}: a real number is read of what is none")

    def _whole(self, pending: Pending) -> Activation:
        """A pending tensor as float32, clamped as it must be."""
        clamped = math.isfinite(pending.low) or math.isfinite(pending.high)
        name = f"{pending.name}/all" if clamped else pending.name
        made = self.emit(pending, Result(name, pending.dtype))
        if clamped and (made.tensor, "clip") not in self._laid:
            clipped = self.like(made.tensor, pending.name, self.tensors[made.tensor].shape)
            low, high = (min(max(end, -LARGEST), LARGEST) for end in (pending.low, pending.high))
            attributes = {"function": "Clip", "low": float(low), "high": float(high)}
            self.node(clipped, "function", (made.tensor,), clipped, attributes)
            self._laid[made.tensor, "clip"] = Activation(
                clipped, made.shape, made.layout, made.picture
            )
        made = self._laid[made.tensor, "clip"] if clamped else made
        self.note(pending.name, made, pending.dtype)
        return made

    def real_constant(self, name: str, value: Constant | Coded) -> str:
        """A constant of real numbers as a tensor of the graph."""
        return self.constant(name, value.array.astype(np.float32))
