"""Writes the programs of a layer's forward product and of its input gradient."""

from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import TrainingFlag

from . import convolutions
from .program import Drain, PartConvolutions, Product, ProductWriter

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""

_NOTHING = TrainingFlag(0)


def forward_program(
    image: Shape,
    weights: np.ndarray,
    bias: np.ndarray,
    window: "Window",
    configuration: Configuration,
    *,
    depthwise: bool,
    shift: int,
    relu: bool,
) -> Product:
    """``finish_forward`` of a layer's sums, which are noted.

    Parameters
    ----------
    image : (height, width, I)
    weights : array of int8, (O, height, width, I), or (1, height, width, C) if ``depthwise``
    bias : array of int32, (O,)
    window : Window
    configuration : Configuration
        With ``training``.
    depthwise : bool
    shift : int, 0..31
    relu : bool

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    geometry = convolutions.forward(image, weights, window, depthwise)
    values = convolutions.nearest(bias, shift, 0 if relu else -127)
    flags = TrainingFlag.NOTED | (TrainingFlag.POSITIVE if relu else _NOTHING)
    taken = convolutions.forward_weights(weights, depthwise)
    part = PartConvolutions([geometry.convolution(taken, values)])
    return ProductWriter([part], geometry.output, [Drain(values, flags)], configuration).write()


def error_drains(channels: int, shift: int, reading: TrainingFlag = _NOTHING) -> list[Drain]:
    """``finish_errors`` of sums, which are noted.

    Parameters
    ----------
    channels : int
    shift : int, 0..31
    reading : TrainingFlag
        MASKED, or nothing.
    """
    noted = reading | TrainingFlag.STOCHASTIC | TrainingFlag.NOTED
    # magnitudes are noted with some shift; without one there is nothing to round
    drains = [Drain(convolutions.stochastic(channels, max(1, shift)), noted)]
    if shift == 0:
        plain = convolutions.nearest(np.zeros(channels, np.int32), 0, -127)
        drains.append(Drain(plain, reading, again=True))
    return drains


def input_gradient_program(
    error: Shape,
    weights: np.ndarray,
    window: "Window",
    configuration: Configuration,
    *,
    depthwise: bool,
    size: tuple[int, int],
    shift: int,
    masked: bool,
) -> Product:
    """``finish_errors`` of the input gradient's sums, which are noted.

    Parameters
    ----------
    error : (rows, columns, O)
    weights : array of int8, (O, height, width, I), or (1, height, width, C) if ``depthwise``
    window : Window
        The layer's.
    configuration : Configuration
        With ``training``.
    depthwise : bool
    size : (height, width)
        Of the layer's input.
    shift : int, 0..31
    masked : bool
        Errors are 0 where the bytes at the product's ``mask`` are not above 0.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """
    channels = weights.shape[3]
    drains = error_drains(channels, shift, TrainingFlag.MASKED if masked else _NOTHING)
    parts = [
        PartConvolutions(
            [
                geometry.convolution(convolutions.backward_weights(weights, taps), drains[0].values)
                for geometry, taps in part.reductions
            ],
            part.lattice,
        )
        for part in convolutions.backward(error, channels, window, depthwise, size)
    ]
    return ProductWriter(parts, (*size, channels), drains, configuration).write()
