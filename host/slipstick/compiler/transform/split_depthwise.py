"""Depthwise layers of half as many channels as columns: both halves of the image at once.

Each column of the array convolves a channel of its own. Where there are only half as many channels,
the other columns take the same channels some columns of the image further on. The results lie side
by side, as one pixel of twice as many channels: only convolutions of one tap, which take a pixel
where they find it, may read them, each half of the image in tiles of its own.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from slipstick_rtl.config import DEPTHWISE_KERNEL, Configuration

from ..ir.operations import Convolution, Operation, View
from ..ir.requantization import rounding_runs
from .fold_width import repeated


def halve(
    operations: Sequence[Operation], views: Mapping[str, View], configuration: Configuration
) -> tuple[tuple[Operation, ...], dict[str, View]]:
    """The operations, and the views of the tensors, with such layers as they are computed."""
    made, shown = list(operations), dict(views)
    for number, operation in enumerate(operations):
        if not isinstance(operation, Convolution):
            continue
        apart = _apart(operation, configuration)
        readers = [k for k, other in enumerate(operations) if operation.result in _reads(other)]
        if not apart or not readers or not all(_takes_pixels(operations[k]) for k in readers):
            continue
        view = operation.output
        halved = dataclasses.replace(
            operation,
            output=View(view.height, view.width - apart, 2 * view.channels),
            weights=np.concatenate([operation.weights] * 2),
            groups=2 * operation.groups,
            requantization=repeated(operation.requantization, 2),
            apart=apart,
            work=operation.macs,
        )
        runs = rounding_runs(halved.requantization, 2 * view.channels, configuration.lanes)
        if runs is None or len(list(runs)) > 1:
            continue
        made[number] = halved
        shown[operation.result] = halved.output
        for k in readers:
            reader = made[k]
            assert isinstance(reader, Convolution)
            made[k] = dataclasses.replace(reader, source_apart=apart)
    return tuple(made), shown


def _reads(operation: Operation) -> Sequence[str]:
    return (
        operation.node.inputs[:1] if isinstance(operation, Convolution) else operation.node.inputs
    )


def _takes_pixels(operation: Operation) -> bool:
    return (
        isinstance(operation, Convolution)
        and operation.kernel == operation.stride == (1, 1)
        and operation.groups == operation.pixels == 1
        and not operation.is_partial
        and operation.input.width % 2 == 0
    )


def _apart(convolution: Convolution, configuration: Configuration) -> int:
    """Columns of the image from one half to the other, which overlap; 0 if it is not to be halved.

    The banks must deliver both, if the pixels of the input lie behind each other without gaps.
    """
    c, channels = configuration, convolution.input.channels
    fits = (
        c.takes_depthwise
        and convolution.is_diagonal
        and not convolution.is_partial
        and 2 * channels == c.columns
        and max(convolution.kernel) <= DEPTHWISE_KERNEL
        and convolution.stride == convolution.dilation == (1, 1)
        and channels % c.weight_rows == 0
    )
    period = c.banks // channels if fits else 1
    apart = (convolution.output.width // 2 - 1) // period * period + 1
    return apart if fits and apart > period and apart < 256 else 0
