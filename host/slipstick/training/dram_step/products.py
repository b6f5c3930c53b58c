"""Writes products whose tensors lie where other products left them on the chip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import TrainingFlag

from ...compiler.ir.operations import Convolution, View
from ...program.steps import Placement
from ..device import convolutions
from ..device.convolutions import Geometry, Lattice
from ..device.layer_programs import error_drains
from ..device.program import Drain, PartConvolutions, ProductWriter
from .relocation import Streams

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""

_NOTHING = TrainingFlag(0)


@dataclass(frozen=True)
class Built:
    """A program that can be moved.

    Parameters
    ----------
    streams : Streams
    constants : bytes
        From the first word of the weight memory on.
    """

    streams: Streams
    constants: bytes


@dataclass(frozen=True)
class ProductSpec:
    """What a product computes.

    Parameters
    ----------
    parts : sequence of PartConvolutions
        Of one input.
    shape : (height, width, channels)
        Of the result.
    drains : sequence of Drain
        All but the first write again.
    """

    parts: Sequence[PartConvolutions]
    shape: Shape
    drains: Sequence[Drain]

    @property
    def convolutions(self) -> list[Convolution]:
        """Of all parts."""
        return [each for part in self.parts for each in part.convolutions]

    @property
    def masked(self) -> bool:
        """It reads a mask."""
        return any(TrainingFlag.MASKED in drain.flags for drain in self.drains)

    def least_row_pitch(self, pixel_pitch: int) -> int:
        """Of a result with this pixel pitch, so that rows hold the columns of each lattice."""
        return max(
            -(-part.convolutions[0].output.width * part.lattice.step[1] // part.lattice.step[0])
            * pixel_pitch
            for part in self.parts
        )

    def write(self, places: "ProductPlaces", configuration: Configuration) -> Built:
        """Its program; CapacityError if it does not fit the memories."""
        product = _PlacedWriter(self, places, configuration).write()
        return Built(Streams.of(product.code, product.pcs), product.constants)


@dataclass(frozen=True)
class ProductPlaces:
    """Where a product's tensors lie; mask and result have the same pitches."""

    source: Placement
    result: Placement
    mask: Placement


class _PlacedWriter(ProductWriter):
    """A ProductWriter that is told the places."""

    def __init__(
        self, spec: ProductSpec, places: ProductPlaces, configuration: Configuration
    ) -> None:
        self._given = places
        super().__init__(spec.parts, spec.shape, spec.drains, configuration)

    def _place(
        self, convolutions: Sequence[Convolution], result: View
    ) -> tuple[Placement, tuple[Placement, ...], Placement]:
        return self._given.source, (self._given.result,), self._given.mask


def forward_spec(
    image: Shape,
    weights: np.ndarray,
    bias: np.ndarray,
    window: "Window",
    *,
    depthwise: bool,
    shift: int,
    relu: bool,
) -> ProductSpec:
    """A layer's forward product, as :func:`..device.layer_programs.forward_program` has it."""
    geometry = convolutions.forward(image, weights, window, depthwise)
    values = convolutions.nearest(bias, shift, 0 if relu else -127)
    flags = TrainingFlag.NOTED | (TrainingFlag.POSITIVE if relu else _NOTHING)
    taken = convolutions.forward_weights(weights, depthwise)
    part = PartConvolutions([geometry.convolution(taken, values)])
    return ProductSpec([part], geometry.output, [Drain(values, flags)])


def input_gradient_spec(
    error: Shape,
    weights: np.ndarray,
    window: "Window",
    *,
    depthwise: bool,
    size: tuple[int, int],
    shift: int,
    masked: bool,
) -> ProductSpec:
    """A layer's input gradient, as :func:`..device.layer_programs.input_gradient_program` has
    it."""
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
    return ProductSpec(parts, (*size, channels), drains)


def copy_spec(
    geometry: Geometry, places: Sequence[Lattice], size: tuple[int, int], *, masked: bool
) -> ProductSpec:
    """A depthwise convolution with ones, whose result goes to each of the places.

    Parameters
    ----------
    geometry : Geometry
        Of one pixel's window.
    places : sequence of Lattice
    size : (height, width)
        Of the result.
    masked : bool
    """
    channels = geometry.output[2]
    values = convolutions.nearest(np.zeros(channels, np.int32), 0, -127)
    copy = geometry.convolution(np.ones((channels, 1, 1, 1), np.int8), values)
    flags = TrainingFlag.MASKED if masked else _NOTHING
    parts = [PartConvolutions([copy], place) for place in places]
    return ProductSpec(parts, (*size, channels), [Drain(values, flags)])
