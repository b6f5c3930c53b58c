"""Puts together what the compiler has made: a program."""

from collections.abc import Collection, Mapping, Sequence

from slipstick_rtl.config import Configuration

from ..graph import Graph, Tensor
from ..program import Program
from ..program.alternate import Alternate
from ..program.release import Release
from ..program.steps import Image, LayerRecord, Placement, Step, TensorDescription
from .ir.operations import HostOperation, Operation


def make_program(
    graph: Graph,
    configuration: Configuration,
    operations: Sequence[Operation],
    places: Mapping[str, Placement],
    *,
    images: tuple[Image, ...],
    steps: tuple[Step, ...],
    layers: tuple[LayerRecord, ...],
    loads: tuple[Image, ...] = (),
    units: tuple[tuple[Step, ...], ...] = (),
    kept: Collection[str] = (),
    alternate: Alternate | None = None,
    releases: tuple[Release, ...] = (),
    batch: int = 1,
) -> Program:
    """A program of a graph, in the order that its parts were made.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    operations : sequence of Operation
        Those on the host read constants.
    places : mapping of Placement by name
        Of the tensors that stay at one place.
    kept : collection of str
        Variables that stay on the device.
    images, loads, steps, units, layers, alternate, releases, batch
        As ``Program`` has them.
    """
    return Program(
        name=graph.name,
        semantics=graph.semantics,
        configuration=configuration.to_dict(),
        fingerprint=configuration.fingerprint,
        tensors=_describe(graph, places),
        inputs=graph.inputs,
        outputs=graph.outputs,
        images=images,
        loads=loads,
        steps=steps,
        units=units,
        constants=_constants(graph, operations),
        layers=layers,
        variables=graph.variables,
        resident=tuple(each.source for each in graph.variables if each.source in kept),
        alternate=alternate,
        releases=releases,
        batch=batch,
    )


def _describe(graph: Graph, places: Mapping[str, Placement]) -> dict[str, TensorDescription]:
    described = {}
    for name, tensor in graph.tensors.items():
        if tensor.data is not None:
            continue
        scale = zero_point = None
        quantization = tensor.quantization
        if quantization is not None and len(quantization.scale) == 1:
            scale = float(quantization.scale[0])
            zero_point = int(quantization.zero_point[0])
        place = places.get(name)
        shape = tuple(int(size) for size in tensor.shape)
        described[name] = TensorDescription(shape, tensor.dtype, scale, zero_point, place)
    return described


def _constants(graph: Graph, operations: Sequence[Operation]) -> dict[str, Tensor]:
    """Constants that host layers read."""
    names = {
        name
        for operation in operations
        if isinstance(operation, HostOperation)
        for name in operation.node.inputs
    }
    return {
        name: tensor
        for name, tensor in graph.tensors.items()
        if name in names and tensor.data is not None
    }
