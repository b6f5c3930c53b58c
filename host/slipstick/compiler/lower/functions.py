"""Puts functions of one code into the layers before them, where results may be looked up."""

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence

from slipstick_rtl.config import Configuration

from ..ir.operations import Convolution, HostOperation, Map, Operation


def fuse_functions(
    operations: Sequence[Operation],
    kept: Collection[str],
    configuration: Configuration,
    apart: Collection[str] = (),
) -> tuple[Operation, ...]:
    """The operations, with functions of one code in the layers before them.

    A layer takes the function that is the only reader of its result. It then makes the function's
    result, and its own is nowhere.

    Parameters
    ----------
    operations : sequence of Operation
        In their order.
    kept : collection of str
        Tensors that must be there in the end.
    configuration : Configuration
        Without ``drain_tables`` nothing changes.
    apart : collection of str
        Nodes of layers that take no function.
    """
    if not configuration.drain_tables:
        return tuple(operations)
    readers = Counter(name for operation in operations for name in set(_reads(operation)))
    makers = {
        operation.result: operation
        for operation in operations
        if isinstance(operation, Convolution) and operation.node.name not in apart
    }
    changed: dict[int, Convolution] = {}
    dropped: set[int] = set()
    for operation in operations:
        if not isinstance(operation, Map) or (function := operation.function) is None:
            continue
        (source,) = operation.sources
        maker = makers.get(source)
        if maker is None or source in kept or readers[source] > 1:
            continue
        if maker.output == operation.output:
            changed[id(maker)] = dataclasses.replace(
                maker, result=operation.result, function=function
            )
            dropped.add(id(operation))
    return tuple(
        changed.get(id(operation), operation)
        for operation in operations
        if id(operation) not in dropped
    )


def _reads(operation: Operation) -> tuple[str, ...]:
    return operation.node.inputs if isinstance(operation, HostOperation) else operation.sources
