"""The front-end for quantised ONNX networks: a file becomes a graph, or is refused.

Networks of codes (QLinearConv and its like) and of real numbers between DequantizeLinear and
QuantizeLinear are read alike: the first are taken for short forms of the second. A float operator
waits for what reads its result; a QuantizeLinear makes it an operator of codes.

Inputs and outputs stay as the file has them, N x C x H x W; inside, pictures are N x H x W x C,
with ``transpose`` nodes between.
"""

import math
from pathlib import Path

import numpy as np

from ...errors import ModelError, SlipstickError, UnsupportedError
from ...graph import Graph, Quantization, Tensor
from ..files import MAXIMUM_ACTIVATION, MAXIMUM_ELEMENTS, quoted, read_file
from .advice import LISTED, refuse_unknown
from .builder import Builder, Source, per_tensor
from .factors import check_factors
from .folding import fold
from .lns import arithmetic_of_nodes, require_logarithms
from .operator import Operator
from .operators import TAKE_PLACES, handlers, take_codes
from .quantization import SHIFT
from .reader import DOMAINS, RawModel, RawNode, RawTensor, read_model
from .recurrent import RECURRENT
from .values import Activation, Coded, Codes, Constant, Float, Overall, Shape, Value

INPUT_TYPES = ("float32", "int8", "uint8", "int32", "int64")
"""Whole numbers of 32 and 64 bits are places that Gather takes, as of words."""


def load_onnx(path: str | Path) -> Graph:
    """Reads a quantised ONNX network.

    Raises
    ------
    ModelError
        If the file cannot be read or is malformed.
    UnsupportedError
        If it holds something that Slipstick does not run; the message names the node.
    """
    path = Path(path)
    return load_onnx_bytes(read_file(path), path.stem, path.parent)


def load_onnx_bytes(data: bytes, name: str = "model", folder: Path | None = None) -> Graph:
    """As ``load_onnx``, from bytes; ``name`` becomes the graph's name, and ``folder`` is where
    tensors that are kept outside of the file must be."""
    return read_network(data, name, folder)[0]


def read_network(
    data: bytes,
    name: str = "model",
    folder: Path | None = None,
    *,
    batched: bool | None = None,
    quantised: bool = True,
) -> tuple[Graph, dict[str, Source]]:
    """The graph, and which ONNX tensor each of its tensors is.

    Parameters
    ----------
    data, name, folder
        As for ``load_onnx_bytes``.
    batched : bool, optional
        Whether axis 0 of every computed tensor is the batch. If not, the graph's tensors have an
        axis of one more, in front of ONNX's. By default it is, unless the network is refused so.
    quantised : bool
        Whether a network without any codes is refused.
    """
    model = read_model(data, name, folder)
    failure: SlipstickError | None = None
    forms = (True, False) if batched is None else (batched,)
    if batched is None and any(node.operator in RECURRENT for node in model.nodes):
        # their steps come before the batch
        forms = (False,)
    for with_batch in forms:
        reading = _Reading(model, name, batched=with_batch, quantised=quantised)
        try:
            return reading.graph(), reading.sources
        except (ModelError, UnsupportedError) as error:
            # what is wrong with it in its usual form is what a user understands
            failure = failure or error
        except RecursionError:
            raise UnsupportedError(
                f"{name} must not have hundreds of float operators in a row without QuantizeLinear"
            ) from None
    assert failure is not None
    raise failure


class _Reading:
    """Walks the nodes in an order in which they can run."""

    def __init__(self, model: RawModel, name: str, *, batched: bool, quantised: bool) -> None:
        self._model = model
        self._name = name
        self._batched, self._quantised = batched, quantised
        self._handlers, self._take_codes = handlers(), take_codes()
        self._values: dict[str, Value] = {
            name: Constant(array) for name, array in model.constants.items()
        }
        self._inputs: dict[str, str] = {}
        arithmetic = arithmetic_of_nodes(model.nodes, name)
        self._builder = Builder(name, self._batch(), 0 if batched else 1, arithmetic)
        self._builder.foldable += 8 * sum(array.nbytes for array in model.constants.values())
        self.sources = self._builder.sources
        self._done: set[str] = set()
        self._read_names = {name for node in model.nodes for name in node.inputs}
        self._read_names |= {tensor.name for tensor in model.outputs}

    def _batch(self) -> int:
        """The batch that the file fixes in all its inputs, 1 if it leaves it open."""
        if not self._batched:
            return 1
        sizes = {tensor.shape[0] for tensor in self._model.inputs if tensor.shape}
        size = sizes.pop() if len(sizes) == 1 else None
        return size if size is not None and 0 < size <= MAXIMUM_ELEMENTS else 1

    def graph(self) -> Graph:
        """The whole network."""
        model = self._model
        if not model.nodes or not model.inputs or not model.outputs:
            raise ModelError(
                f"{self._name} must have nodes, inputs and outputs, not {len(model.nodes)},"
                f" {len(model.inputs)} and {len(model.outputs)}"
            )
        for tensor in model.inputs:
            self._add_input(tensor)
        self._builder.reserved |= {tensor.name for tensor in model.outputs}
        if len(self._builder.reserved) < len(model.outputs):
            raise ModelError(f"{self._name} must have outputs of different names")
        needed = self._needed()
        refuse_unknown(
            needed, {each.name for each in self._model.inputs}, self._handlers, self._name
        )
        for node in needed:
            self._read(node)
        outputs = tuple(self._finish(tensor) for tensor in model.outputs)
        builder = self._builder
        if self._quantised and not any(
            tensor.dtype == "int8" for tensor in builder.tensors.values()
        ):
            raise UnsupportedError(
                f"{self._name} must be quantised, and is float: quantise it first"
                f" (slipstick quantize {self._name}.onnx --calibrate FILES)"
            )
        # steps within a node are no tensors of ONNX's
        known = {name for node in model.nodes for name in node.outputs}
        known |= {tensor.name for tensor in model.inputs}
        for name in [name for name, source in self.sources.items() if source.name not in known]:
            del self.sources[name]
        used = {name for node in builder.nodes for name in (*node.inputs, *node.outputs)}
        used |= set(self._inputs.values())
        tensors = {name: tensor for name, tensor in builder.tensors.items() if name in used}
        inputs = tuple(self._inputs[tensor.name] for tensor in model.inputs)
        semantics = "onnx" if builder.arithmetic is None else builder.arithmetic.lns.name
        graph = Graph(self._name, inputs, outputs, tensors, tuple(builder.nodes), semantics)
        if builder.arithmetic is None:
            check_factors(graph)
        return graph

    def _needed(self) -> list[RawNode]:
        """The nodes that an output depends on."""
        wanted, kept = {tensor.name for tensor in self._model.outputs}, []
        for node in reversed(self._model.nodes):
            if wanted & set(node.outputs):
                wanted |= set(node.inputs)
                kept.append(node)
        return kept[::-1]

    def _add_input(self, tensor: RawTensor) -> None:
        what = f"{self._name}: input {quoted(tensor.name)}"
        if tensor.dtype not in INPUT_TYPES:
            raise UnsupportedError(f"{what} must be one of {INPUT_TYPES}, not {tensor.dtype}")
        if self._builder.arithmetic is not None and tensor.dtype in SHIFT:
            self._refuse_codes(what, tensor.dtype)
        shape = self._shape(tensor, what)
        if math.prod(shape) > MAXIMUM_ACTIVATION:
            raise ModelError(f"{what} must have at most {MAXIMUM_ACTIVATION} elements, not {shape}")
        # an own batch of one is what users of the network know
        known = shape if self._batched or shape[1:2] != (1,) else shape[1:]
        made = self._builder.tensor(tensor.name, known, tensor.dtype)
        self._inputs[tensor.name] = made
        activation = Activation(made, known)
        if tensor.dtype not in ("int8", "uint8"):
            self._values[tensor.name] = Float(self._with_lead(activation, shape))
        else:
            codes = self._input_codes(tensor, activation)
            led = self._with_lead(codes.activation, shape)
            self._values[tensor.name] = Codes(led, codes.dtype)

    def _refuse_codes(self, what: str, dtype: str) -> None:
        raise UnsupportedError(f"{what} of a logarithmic network must be float32, not {dtype}")

    def _with_lead(self, activation: Activation, shape: Shape) -> Activation:
        """An input as the operators of a network without a batch want it."""
        if activation.shape == shape:
            return activation
        name = f"{activation.tensor}/whole"
        made = self._builder.reshaped(activation, name, shape, name)
        self._builder.reshaped_of[made.tensor, activation.shape] = activation
        return made

    def _shape(self, tensor: RawTensor, what: str) -> Shape:
        """The graph's shape of an input."""
        shape = tensor.shape
        rest = shape[1:] if self._batched and shape else shape
        open_size = rest is None or any(size is None or size < 1 for size in rest)
        if open_size or self._batched and not shape:
            rule = "fixed but for the batch"
            if any(node.operator in RECURRENT for node in self._model.nodes):
                rule = (
                    "fixed in a network with LSTM or GRU (python -m"
                    " onnxruntime.tools.make_dynamic_shape_fixed does it)"
                )
            raise UnsupportedError(f"{what}: shape must be {rule}, not {shape}")
        first = shape[0] if self._batched and shape else None
        if first is not None and first > 0 and first != self._builder.batch:
            raise UnsupportedError(f"{what}: the batch must be that of all inputs, not {first}")
        return (1, *(size or 1 for size in rest or ()))

    def _input_codes(self, tensor: RawTensor, activation: Activation) -> Codes:
        """An input of codes, which mean what the first node that reads them says."""
        builder, name = self._builder, activation.tensor
        shift = SHIFT[tensor.dtype]
        quantization = self._meaning(tensor) or per_tensor(1.0, 0)
        described = builder.tensors[name]
        builder.tensors[name] = Tensor(name, described.shape, tensor.dtype, quantization)
        if shift:
            lowered = Quantization(quantization.scale, quantization.zero_point - shift)
            made = builder.tensor(f"{name}/codes", described.shape, "int8", lowered)
            builder.node(made, "quantize", (name,), made, {})
            activation = Activation(made, activation.shape)
        return Codes(activation, tensor.dtype)

    def _meaning(self, tensor: RawTensor) -> Quantization | None:
        for node in self._model.nodes:
            for index in range(len(node.inputs) - 2):
                scale, zero_point = (
                    self._model.constants.get(name) for name in node.inputs[index + 1 : index + 3]
                )
                if node.inputs[index] != tensor.name or scale is None or zero_point is None:
                    continue
                types = (scale.dtype.name, zero_point.dtype.name)
                if scale.size == zero_point.size == 1 and types == ("float32", tensor.dtype):
                    return per_tensor(float(scale.ravel()[0]), int(zero_point.ravel()[0]))
        return None

    def _read(self, node: RawNode) -> None:
        label = f"{self._name}: {node.operator} (node {node.index}"
        label += f" {quoted(node.name)})" if node.name else ")"
        if node.domain not in DOMAINS or (node.domain, node.operator) not in self._handlers:
            if not self._is_constant(node):
                raise UnsupportedError(f"{label}: operator must be one that {LISTED} lists")
        operator = Operator(
            self._builder,
            label,
            node.name or f"{node.operator}_{node.index}",
            node.operator,
            self._model.opset,
            tuple(self._values[name] if name else None for name in node.inputs),
            node.inputs,
            node.outputs,
            node.attributes,
            lead=0 if self._batched else 1,
        )
        named = any(node.outputs) if node.operator in RECURRENT else node.outputs[:1] > ("",)
        if not named:
            operator.reject("the first output must have a name")
        made = fold(operator) if node.domain == "" else None
        if made is None:
            made = self._handle(operator, node)
        for name, value in zip(node.outputs, made, strict=False):
            if name:
                self._values[name] = value

    def _is_constant(self, node: RawNode) -> bool:
        return all(isinstance(self._values.get(name), Constant) for name in node.inputs if name)

    def _handle(self, operator: Operator, node: RawNode) -> list[Value]:
        handler = self._handlers.get((node.domain, node.operator))
        if handler is None:
            operator.refuse("operator is not known, even of constants")
        for name, value in node.attributes.items():
            if name not in handler.attributes:
                listed = ", ".join(handler.attributes) or "none"
                operator.refuse(f"attributes must be {listed}, not {quoted(name)} = {value!r:.40}")
        for index in handler.constants:
            if operator.has(index):
                operator.constant(index)
        logarithmic = self._builder.arithmetic is not None
        if logarithmic:
            require_logarithms(operator)
        takes_codes = node.operator in self._take_codes or node.operator.startswith("Q")
        # linear mixtures of logarithms are none of numbers
        if not takes_codes or logarithmic and node.operator == "Resize":
            for index, value in enumerate(operator.inputs):
                if isinstance(value, Codes):
                    operator.refuse(
                        f"{operator.what(index)} must be real numbers, behind DequantizeLinear, and"
                        f" is codes of {value.dtype}"
                    )
        if node.operator not in TAKE_PLACES:
            for index, value in enumerate(operator.inputs):
                kind = self._whole_numbers(value)
                if kind:
                    operator.refuse(f"{operator.what(index)} must be real numbers, not {kind}")
        made = handler.read(operator)
        if isinstance(made, list):
            return made
        for name in node.outputs[1:]:
            if name in self._read_names:
                operator.refuse(f"outputs must be 1, but {quoted(name)} is read as well")
        return [made]

    def _whole_numbers(self, value: Value | None) -> str:
        """The type of a tensor of whole numbers, that are no codes."""
        if not isinstance(value, Float):
            return ""
        kind = self._builder.tensors[value.activation.tensor].dtype
        return "" if kind == "float32" else kind

    def _may_be_renamed(self, tensor: str) -> bool:
        return tensor not in self._inputs.values() and tensor not in self._done

    def _finish(self, tensor: RawTensor) -> str:
        """The graph's tensor of an output, in the file's layout and type, by the file's name."""
        what = f"{self._name}: output {quoted(tensor.name)}"
        value = self._values.get(tensor.name)
        if value is None:
            raise ModelError(f"{what} must be some node's output")
        if isinstance(value, Constant | Coded):
            raise UnsupportedError(f"{what} must depend on an input, and is constant")
        if isinstance(value, Overall) and self._batched:
            raise UnsupportedError(f"{what} must have a batch, and has shape {value.shape}")
        builder = self._builder
        if builder.arithmetic is not None and isinstance(value, Codes):
            self._refuse_codes(what, value.dtype)
        known = isinstance(value, Codes | Overall)
        activation = value.activation if known else builder.real(value)
        # another output may be the same tensor, and have given it its name
        activation = builder.current(builder.natural(builder.current(activation)))
        wanted = value.dtype if known else tensor.dtype
        if wanted == "uint8" and builder.tensors[activation.tensor].quantization is None:
            activation = builder.relabelled(activation, per_tensor(1.0, -128))
        described = builder.tensors[activation.tensor]
        builder.reserved.discard(tensor.name)
        if wanted != tensor.dtype or wanted not in INPUT_TYPES:
            raise UnsupportedError(f"{what} must be {tensor.dtype}, and is {wanted}")
        name = activation.tensor
        quantization = described.quantization
        if described.dtype == "int8" and wanted != "int8":
            operator = "quantize"
            if wanted == "uint8":
                quantization = _raised(described)
            else:
                operator, quantization = "dequantize", None
            name = builder.tensor(tensor.name, described.shape, wanted, quantization)
            builder.node(name, operator, (activation.tensor,), name, {})
        elif self._may_be_renamed(name):
            builder.rename(name, tensor.name)
            name = tensor.name
        else:
            name = builder.like(activation.tensor, tensor.name, described.shape)
            attributes = {"shape": described.shape}
            builder.node(name, "reshape", (activation.tensor,), name, attributes)
        self._done.add(name)
        if builder.tensors[name].dtype != wanted:
            raise UnsupportedError(f"{what} must be {wanted}, and is {builder.tensors[name].dtype}")
        builder.note(name, Activation(name, activation.shape), wanted)
        return name


def _raised(described: Tensor) -> Quantization:
    """The same numbers for codes that are 128 more."""
    quantization = described.quantization or Quantization(np.ones(1), np.array([-128]))
    return Quantization(quantization.scale, quantization.zero_point + 128)
