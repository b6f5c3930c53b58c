"""Writes sums of two tensors with unequal exponents, which brings both to one unit.

The array adds them: a depthwise convolution whose kernel has two rows, one per tensor, and powers
of two as weights. What is shifted further than a weight can goes through the post-processor's
tables instead (MAP), which takes longer.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.convolution import Rectangle
from ...compiler.ir.requantization import Requantization
from ...compiler.mapping.activation_layout import round_up
from ...compiler.memory.constants import Images
from ...devices.link.regions import pieces
from ...program.steps import Placement
from ..device.program import Drain
from .maps import MapWriter
from .pieces import Heights, Plan, choose, plans, refuse_half
from .relocation import Built, Streams

_BOTH = 3
"""``use_table`` of even and odd taps."""
_MOST_PLACES = 6
"""By which a weight can shift."""


@dataclass(frozen=True)
class SumSpec:
    """A sum of tensors that is to be computed.

    Parameters
    ----------
    shape : (height, width, channels)
    places : (int or None, int or None)
        By how many bits the codes of each are shifted to the left, 0..15; None: it counts as 0.
    drains : sequence of Drain
        What becomes of the sums, with one entry for all channels; each writes over the one before.
    masked : bool
        Sums count as 0 where a mask is not above 0; not if ``needs_zeros``.
    """

    shape: tuple[int, int, int]
    places: tuple[int | None, int | None]
    drains: Sequence[Drain]
    masked: bool = False

    def write(
        self,
        terms: tuple[Placement, Placement],
        result: Placement,
        mask: Placement,
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """Its program.

        Parameters
        ----------
        terms : (Placement, Placement)
            With equal pitches. Bytes behind a pixel's channels are 0 if ``needs_zeros``.
        result, mask : Placement
        configuration : Configuration
            With ``training``.
        halved : bool
            It has half of the accumulators.

        Raises
        ------
        CapacityError
            If the constants do not fit.
        """
        if self.needs_zeros:
            return self._map(terms, result, configuration)
        return _SumWriter(self, terms, result, mask, configuration).write(halved=halved)

    @property
    def needs_zeros(self) -> bool:
        """Bytes behind a pixel's channels are added as well."""
        return any(each is not None and each > _MOST_PLACES for each in self.places)

    def _map(
        self,
        terms: tuple[Placement, Placement],
        result: Placement,
        configuration: Configuration,
    ) -> Built:
        maps = MapWriter(configuration, self.shape)
        codes = np.arange(-128, 128)
        even, odd = (0 * codes if each is None else codes << each for each in self.places)
        maps.load_table(even, odd)
        first, second = terms
        for drain in self.drains:
            maps.add(
                (first.address, first.row_pitch, first.pixel_pitch),
                (result.address, result.row_pitch, result.pixel_pitch),
                use_table=_BOTH,
                tap_step_x=second.address - first.address,
                **maps.finish(drain.values, drain.flags),
            )
        program = maps.program()
        return Built(Streams.of(program.code, program.pcs), program.constants)


class _SumWriter:
    """Writes a sum as a convolution: a tile of lanes per tensor, whose weights are diagonal."""

    def __init__(
        self,
        spec: SumSpec,
        terms: tuple[Placement, Placement],
        result: Placement,
        mask: Placement,
        configuration: Configuration,
    ) -> None:
        self._spec, self._terms, self._result, self._mask = spec, terms, result, mask
        self._configuration = configuration
        # lane r is column r: no more channels at a time than there are of both
        self._most = min(configuration.rows, configuration.columns)
        self._images = Images(configuration, shares=False)
        counts = {min(self._most, spec.shape[2] - first) for first in self._firsts}
        self._weights = {
            count: self._images.add_weights(self._diagonals(count), "sum")
            for count in sorted(counts)
        }
        self._parameters = [
            self._images.add_parameters(_all_channels(drain.values, self._most), 0, self._most, "")
            for drain in spec.drains
        ]

    @property
    def _firsts(self) -> range:
        """The first channel of each tile of channels."""
        return range(0, self._spec.shape[2], self._most)

    def _diagonals(self, count: int) -> np.ndarray:
        """A word per tensor: byte (r div (R / W)) * C + r is of lane r, of so many that work."""
        configuration = self._configuration
        chains, columns = configuration.weight_rows, configuration.columns
        lanes = np.arange(count)
        words = np.zeros((2, chains * columns), np.int8)
        for number, places in enumerate(self._spec.places):
            bytes_of = lanes // configuration.tile_words * columns + lanes
            words[number, bytes_of] = 0 if places is None else 1 << places
        return words.reshape(2, chains, columns)

    def write(self, *, halved: bool) -> Built:
        """The program; banks of accumulators take turns."""
        height, width, _ = self._spec.shape
        across = -(-width // self._configuration.pixels)
        if across > self._configuration.accumulator_depth >> halved:
            refuse_half(halved)
            return self._write(self._strips(), Plan(()))

        def write(plan: Plan) -> Built:
            return self._write(self._pieces(plan.heights), plan)

        every = plans([height] * len(self._firsts), across, self._configuration, halved=halved)
        return choose(every, write, self._configuration, halved=halved)

    def _write(self, some: Iterable[tuple[Rectangle, int]], plan: Plan) -> Built:
        matrix, post = bytearray(), bytearray()
        drained, channels = [0], self._spec.shape[2]
        for number, (rectangle, first) in enumerate(some):
            count = min(self._most, channels - first)
            wait, bank = drained[max(0, number + 1 - plan.banks)], number % plan.banks
            fields = self._convolve(rectangle, first, count)
            fields |= {"bank": bank, "parts": plan.parts, "wait": wait}
            matrix += pack(MATRIX_FIELDS, fields)
            for drain, parameters in zip(self._spec.drains, self._parameters, strict=True):
                fields = self._drain(rectangle, first, count, drain)
                fields |= {"bank": bank, "parts": plan.parts, "wait": number + 1}
                post += pack(POST_FIELDS, {**fields, "parameter_address": parameters})
            drained.append(drained[-1] + len(self._spec.drains))
        (constants,) = (each.data for each in self._images.all() if each.space == Space.WEIGHTS)
        return Built(Streams(bytes(matrix), bytes(post)), constants)

    def _pieces(self, heights: Heights) -> Iterator[tuple[Rectangle, int]]:
        """Returns what a bank of accumulators holds: pixels, and the first channel."""
        columns = 0, self._spec.shape[1]
        for first, some in zip(self._firsts, heights, strict=True):
            for rows, end in zip(some, itertools.accumulate(some), strict=True):
                yield Rectangle((end - rows, end), columns), first

    def _strips(self) -> Iterator[tuple[Rectangle, int]]:
        """The same of rows that are wider than a bank."""
        height, width, _ = self._spec.shape
        most = self._configuration.accumulator_depth * self._configuration.pixels
        for first, y in itertools.product(self._firsts, range(height)):
            for x in pieces(width, most):
                yield Rectangle((y, y + 1), x), first

    def _convolve(self, rectangle: Rectangle, first: int, count: int) -> dict[str, int]:
        place, second = self._terms
        (y, y_end), (x, x_end) = rectangle.rows, rectangle.columns
        offset = y * place.row_pitch + x * place.pixel_pitch + first
        return {
            "opcode": Opcode.CONVOLVE,
            "diagonal": 1,
            "align_row": 1,
            "weight_address": self._weights[count],
            "reduction_tiles": 2,
            "channels": count,
            "kernel_x": 1,
            "tap_step_x": place.pixel_pitch,
            "tap_step_y": second.address - place.address,
            "origin": place.address + offset,
            "origin_y": y,
            "origin_x": x,
            "height": place.height,
            "width": place.width,
            "stride_y": 1,
            "stride_x": 1,
            "column_step": place.pixel_pitch,
            "row_step": place.row_pitch,
            "rows": y_end - y,
            "groups": -(-(x_end - x) // self._configuration.pixels),
            "whole_words": count % self._configuration.weight_rows == 0,
        }

    def _drain(self, rectangle: Rectangle, first: int, count: int, drain: Drain) -> dict[str, int]:
        lanes, (y, y_end), (x, x_end) = self._configuration.lanes, rectangle.rows, rectangle.columns
        fields = {
            "opcode": Opcode.DRAIN,
            "rows": y_end - y,
            "columns": x_end - x,
            "slices": round_up(count, lanes) // lanes,
            "rounding": Rounding.HALF_EVEN,
            "minimum": drain.values.minimum,
            "maximum": drain.values.maximum,
            "table_words": drain.flags | (TrainingFlag.MASKED if self._spec.masked else 0),
        }
        sides = {"destination": self._result}
        if self._spec.masked:
            sides["source"] = self._mask
        for name, place in sides.items():
            fields[name] = place.address + y * place.row_pitch + x * place.pixel_pitch + first
            fields[f"{name}_row_step"] = place.row_pitch
            fields[f"{name}_column_step"] = place.pixel_pitch
        return fields


def _all_channels(values: Requantization, count: int) -> Requantization:
    """One entry's values for so many channels."""
    return Requantization(
        np.full(count, values.bias[0]),
        np.full(count, values.multiplier[0]),
        np.full(count, values.shift[0]),
        np.full(count, values.rounding[0]),
        values.zero_point,
        values.minimum,
        values.maximum,
    )
