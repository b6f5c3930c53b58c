"""Variables that may stay on the device: what a run begins with is where the last one left it."""

from collections.abc import Sequence

from ...graph import Graph, Variable
from ..ir.operations import Alias, HostOperation, Operation
from ..mapping.activation_layout import Buffer

Pair = tuple[str, str]
"""A variable's source and its result."""


def staying(graph: Graph, operations: Sequence[Operation]) -> tuple[Pair, ...]:
    """The variables that only the device reads and writes.

    Whether their memory allows it, ``Arranger`` finds out.
    """
    on_host = {name for made in operations if isinstance(made, HostOperation) for name in _of(made)}
    written = {made.result for made in operations if not isinstance(made, HostOperation | Alias)}
    read = {
        name
        for made in operations
        if not isinstance(made, HostOperation | Alias)
        for name in made.sources
    }
    ends = [name for each in graph.variables for name in (each.source, each.result)]

    def stays(variable: Variable) -> bool:
        shared = on_host | set(graph.outputs)
        return (
            variable.source in read
            and variable.result in written
            and not {variable.source, variable.result} & shared
            and ends.count(variable.source) == ends.count(variable.result) == 1
        )

    return tuple((each.source, each.result) for each in graph.variables if stays(each))


def _of(made: HostOperation) -> tuple[str, ...]:
    return (*made.node.inputs, *made.node.outputs)


def alike(source: Buffer, result: Buffer) -> bool:
    """Tells whether the bytes of one are the bytes of the other."""
    return (
        source is not result
        and not source.by_device
        and result.by_device
        and source.view == result.view
        and source.pitches == result.pitches
    )
