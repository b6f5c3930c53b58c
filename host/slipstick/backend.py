"""ONNX's own face of Slipstick: ``onnx.backend.base.Backend``, so that its conformance cases run.

``slipstick.backend.run_model(model, inputs)``; ``python -m slipstick.backend`` runs ONNX's cases.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .compiler import compile_graph
from .devices import KINDS, Device, open_device
from .errors import DeviceError, InputError, ModelError, SlipstickError, UnsupportedError
from .frontends.onnx import INPUT_TYPES, read_network
from .frontends.onnx.operator import ComputedError
from .graph import Graph
from .session import InferenceSession
from .verify.onnxruntime_reference import NEWEST_IR

_PREFIX = "slipstick:"
_NUMBERS = ("float32", "int8", "uint8")
"""Other inputs are rather shapes and axes than data, if there are such as well."""


def device_name(device: str) -> str:
    """Returns ``open_device``'s name for a device of ONNX's: ``CPU`` is the golden model.

    Raises
    ------
    DeviceError
        If it is none of ``CPU`` and ``slipstick:`` with a name that ``open_device`` knows.
    """
    if device.upper() == "CPU":
        return "model"
    name = device.removeprefix(_PREFIX)
    if name == device or name.partition(":")[0] not in KINDS:
        kinds = ", ".join(KINDS)
        raise DeviceError(f"device must be CPU, or {_PREFIX} and one of {kinds}, not {device!r}")
    return name


@dataclasses.dataclass(frozen=True)
class _Network:
    """A network as it was read; ``batched`` as for ``read_network``."""

    graph: Graph
    batched: bool


class Representation(BackendRep):
    """A network on a device, from ``prepare``.

    What an operator needs when a network is compiled, as weights, scales and shapes, may be among
    the network's inputs, as it is in ONNX's conformance cases. Then the network is compiled by
    ``run``, with what it is given there as constants, and anew whenever that changes.

    Parameters
    ----------
    model : ModelProto
    device : str
        As ``open_device`` has it.

    Raises
    ------
    SlipstickError
        If the network cannot be read or compiled, whatever its inputs are.
    """

    def __init__(self, model: onnx.ModelProto, device: str) -> None:
        self._model, self._device_name = model, device
        held = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [item.name for item in model.graph.input if item.name not in held]
        self._outputs = [item.name for item in model.graph.output]
        kinds = {
            item.name: _type_name(item) for item in model.graph.input if item.name in self._inputs
        }
        self._constants = {name for name, kind in kinds.items() if kind not in _NUMBERS}
        if len(self._constants) == len(self._inputs):
            self._constants = {name for name, kind in kinds.items() if kind not in INPUT_TYPES}
        if self._inputs and len(self._constants) == len(self._inputs):
            listed = ", ".join(sorted(kind or "no tensor" for kind in set(kinds.values())))
            raise UnsupportedError(
                f"{model.graph.name}: an input must be {', '.join(INPUT_TYPES)}, not {listed}"
            )
        self._device: Device | None = None
        self._session: InferenceSession | None = None
        self._batched = True
        self._compiled: list[tuple[np.dtype, tuple[int, ...], bytes]] = []
        if not self._constants:
            network = self._read({})
            if network is not None:
                self._load(network)

    @property
    def constants(self) -> frozenset[str]:
        """Inputs that are compiled into the network, as far as it is known."""
        return frozenset(self._constants)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the network.

        Parameters
        ----------
        inputs : sequence, mapping or array
            Arrays in the order of the network's inputs, or by their names.

        Returns
        -------
        tuple of arrays
            Also by the outputs' names.

        Raises
        ------
        InputError
            If the inputs do not suit the network.
        UnsupportedError, ModelError
            If the network cannot be compiled with them.
        """
        values = self._named(inputs)
        for _ in range(len(self._inputs) + 1):
            known = [values[name] for name in sorted(self._constants)]
            state = [(array.dtype, array.shape, array.tobytes()) for array in known]
            if self._session is not None and state == self._compiled:
                break
            network = self._read({name: values[name] for name in self._constants})
            if network is not None:
                self._load(network)
                self._compiled = state
                break
        assert self._session is not None
        feeds = {name: values[name] for name in self._inputs if name not in self._constants}
        if not self._batched:
            inputs = self._session.get_inputs()
            shapes = {argument.name: argument.shape for argument in inputs}
            feeds = {
                name: value[np.newaxis] if len(shapes[name]) > value.ndim else value
                for name, value in feeds.items()
            }
        made = self._session.run(self._outputs, feeds)
        made = made if self._batched else [value[0] for value in made]
        return namedtupledict("Outputs", self._outputs)(*made)

    def close(self) -> None:
        """Closes the device."""
        if self._device is not None:
            self._device.close()
        self._device = self._session = None
        self._compiled = []

    def _named(self, inputs: Any) -> dict[str, np.ndarray]:
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            if not isinstance(inputs, Sequence) or len(inputs) != len(self._inputs):
                raise InputError(f"inputs must be arrays for {', '.join(self._inputs)}")
            inputs = dict(zip(self._inputs, inputs, strict=True))
        missing = [name for name in self._inputs if name not in inputs]
        if missing or len(inputs) != len(self._inputs):
            raise InputError(f"inputs must be {', '.join(self._inputs)}, not {', '.join(inputs)}")
        return {name: as_array(value) for name, value in inputs.items()}

    def _read(self, constants: dict[str, np.ndarray]) -> _Network | None:
        """The network; None if more of its inputs must be known, which it notes."""
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        for name, value in constants.items():
            model.graph.initializer.append(numpy_helper.from_array(value, name))
        data, name = model.SerializeToString(), model.graph.name or "model"
        errors: list[SlipstickError] = []
        for batched in (True, False):
            try:
                graph, _ = read_network(data, name, batched=batched, quantised=False)
            except ComputedError as error:
                needed = self._made_of(error.tensor)
                if needed and len(needed | self._constants) < len(self._inputs):
                    self._constants |= needed
                    return None
                errors.append(error)
            except (UnsupportedError, ModelError) as error:
                errors.append(error)
            else:
                return _Network(graph, batched)
        first, second = errors
        if str(first) == str(second):
            raise first
        raise UnsupportedError(f"{first}; without a batch: {second}")

    def _made_of(self, tensor: str) -> set[str]:
        """The inputs that a tensor depends on."""
        makers = {name: node for node in self._model.graph.node for name in node.output}
        found, waiting = {tensor}, [tensor]
        while waiting:
            node = makers.get(waiting.pop())
            more = set(node.input) - found if node is not None else set()
            found |= more
            waiting += more
        return found & set(self._inputs)

    def _load(self, network: _Network) -> None:
        if self._device is None:
            self._device = open_device(self._device_name)
        program = compile_graph(network.graph, self._device.configuration)
        self._session = InferenceSession(program, self._device)
        self._batched = network.batched


class SlipstickBackend(Backend):
    """Slipstick as ONNX's interface for backends has it."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tells whether ``prepare`` takes a network; it does if some inputs must be known first."""
        try:
            cls.prepare(model, device, **kwargs).close()
        except SlipstickError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        """A network, ready to run; errors are as for ``Representation`` and ``open_device``."""
        return Representation(model, device_name(device))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Runs a network once."""
        with contextlib.closing(cls.prepare(model, device, **kwargs)) as network:
            return network.run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node of ONNX's newest operators."""
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        return cls.run_model(_model_of(node, arrays, outputs_info), arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tells whether ``prepare`` knows a device's name; a board need not be there."""
        try:
            device_name(device)
        except DeviceError:
            return False
        return True


def as_array(value: Any) -> np.ndarray:
    """An array of one, or of a tensor of ONNX's."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def _type_name(item: onnx.ValueInfoProto) -> str:
    kind = item.type.tensor_type.elem_type
    try:
        return helper.tensor_dtype_to_np_dtype(kind).name
    except (KeyError, TypeError, ValueError):
        return ""


def _model_of(
    node: onnx.NodeProto,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[tuple[np.dtype, tuple[int, ...]]] | None,
) -> onnx.ModelProto:
    """A network of one node, whose outputs are of the types that ONNX infers."""
    names = [name for name in node.input if name]
    if len(names) != len(inputs):
        raise InputError(f"inputs of {node.op_type} must be {len(names)} arrays, not {len(inputs)}")

    def described(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)

    given = [described(name, x.dtype, x.shape) for name, x in zip(names, inputs, strict=True)]
    made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    if outputs is not None:
        kinds = zip(node.output, outputs, strict=True)
        made = [described(name, np.dtype(dtype), shape) for name, (dtype, shape) in kinds]
    opsets = [helper.make_opsetid(node.domain, 1)] if node.domain else []
    opsets.append(helper.make_opsetid("", onnx.defs.onnx_opset_version()))
    graph = helper.make_graph([node], node.op_type, given, made)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=NEWEST_IR)
    return model if outputs is not None else shape_inference.infer_shapes(model)


is_compatible = SlipstickBackend.is_compatible
prepare = SlipstickBackend.prepare
run_model = SlipstickBackend.run_model
run_node = SlipstickBackend.run_node
supports_device = SlipstickBackend.supports_device


def main() -> int:
    """Runs ONNX's conformance cases and prints what became of them; 1 if one failed."""
    from .verify.onnx_conformance import report

    made = report(*sys.argv[1:2])
    print("\n".join(made.lines()))
    return 1 if made.failed or made.stale else 0


if __name__ == "__main__":
    sys.exit(main())
