"""Writes products whose tensors lie where other products left them on the chip."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import TrainingFlag

from ...compiler.codegen.convolution import Rectangle
from ...compiler.ir.operations import Convolution, View
from ...program.steps import Placement
from ..device import convolutions
from ..device.convolutions import Geometry, Lattice
from ..device.layer_programs import error_drains
from ..device.program import Drain, PartConvolutions, Piece, ProductWriter
from .pieces import Plan, choose, plans, refuse_half
from .relocation import Built, Streams, in_parts, without_masks

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""

_NOTHING = TrainingFlag(0)


@dataclass(frozen=True)
class ProductSpec:
    """A product that is to be computed.

    Parameters
    ----------
    parts : sequence of PartConvolutions
        Of one input.
    shape : (height, width, channels)
        Of the result.
    drains : sequence of Drain
        All but the first write again.
    idle : collection of int
        Parts without taps: their results are 0, whatever the mask.
    """

    parts: Sequence[PartConvolutions]
    shape: Shape
    drains: Sequence[Drain]
    idle: Collection[int] = ()

    @property
    def convolutions(self) -> list[Convolution]:
        """Returns the convolutions of all parts."""
        return [each for part in self.parts for each in part.convolutions]

    @property
    def masked(self) -> bool:
        """It reads a mask."""
        return any(TrainingFlag.MASKED in drain.flags for drain in self.drains)

    def least_row_pitch(self, pixel_pitch: int) -> int:
        """Returns a result's least row pitch: rows hold the columns of each lattice."""
        return max(
            -(-part.convolutions[0].output.width * part.lattice.step[1] // part.lattice.step[0])
            * pixel_pitch
            for part in self.parts
        )

    def write(
        self, places: "ProductPlaces", configuration: Configuration, *, halved: bool = False
    ) -> Built:
        """Its program; CapacityError if it does not fit the memories.

        Parameters
        ----------
        places : ProductPlaces
        configuration : Configuration
        halved : bool
            It has half of the accumulators.
        """
        return _PlacedWriter(self, places, configuration).write_best(halved=halved)


@dataclass(frozen=True)
class ProductPlaces:
    """The places of a product's tensors; mask and result have the same pitches."""

    source: Placement
    result: Placement
    mask: Placement


class _PlacedWriter(ProductWriter):
    """A ProductWriter that is told the places."""

    def __init__(
        self, spec: ProductSpec, places: ProductPlaces, configuration: Configuration
    ) -> None:
        self._given, self._spec, self._plan = places, spec, Plan(())
        super().__init__(spec.parts, spec.shape, spec.drains, configuration)

    def write_best(self, *, halved: bool) -> Built:
        """The program with the pieces that take the fewest cycles."""
        groups = [
            (part, tile)
            for part, emitters in enumerate(self._emitters)
            for tile in range(len(emitters[0].tiles))
        ]
        outputs = [self._parts[part].convolutions[0].output for part, _ in groups]
        rows, columns = [each.height for each in outputs], max(each.width for each in outputs)
        across = -(-columns // self._configuration.pixels)
        if across > self._configuration.accumulator_depth >> halved:
            refuse_half(halved)
            return self._built(self.pieces)

        def write(plan: Plan) -> Built:
            pieces = [
                Piece(part, tile, Rectangle((end - height, end), (0, output.width)))
                for (part, tile), output, some in zip(groups, outputs, plan.heights, strict=True)
                for height, end in zip(some, itertools.accumulate(some), strict=True)
            ]
            self._plan = plan
            return self._built(pieces)

        every = plans(rows, across, self._configuration, halved=halved)
        return choose(every, write, self._configuration, halved=halved)

    @property
    def banks(self) -> int:
        """Counts the banks of the plan at hand."""
        return self._plan.banks

    def _built(self, pieces: Sequence[Piece]) -> Built:
        product = self.write(pieces)
        streams = in_parts(Streams.of(product.code, product.pcs), self._plan.parts)
        # what has no taps is 0: no mask need be read
        masked = [piece.part not in self._spec.idle for piece in pieces for _ in self._drains]
        return Built(without_masks(streams, masked), product.constants)

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
    every = list(convolutions.backward(error, channels, window, depthwise, size))
    parts = [
        PartConvolutions(
            [
                geometry.convolution(convolutions.backward_weights(weights, taps), drains[0].values)
                for geometry, taps in part.reductions
            ],
            part.lattice,
        )
        for part in every
    ]
    idle = frozenset(
        number
        for number, part in enumerate(every)
        if not any(weights[:, taps[0], taps[1]].size for _, taps in part.reductions)
    )
    return ProductSpec(parts, (*size, channels), drains, idle)


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
