"""Gaussian logarithms of fine formats: G+ in straight pieces, G- from G+ by cotransformation."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..formats import Lns
from .gaussian_log_model import exact_minus, exact_plus, reach, rounds_to_zero_from

GUARD_BITS = 3
"""Binary places below an ulp that arguments and results have until the last rounding."""

INTERCEPT_PLACES = 2
"""Below the guard bits."""


@dataclass(frozen=True)
class InterpolatedGauss:
    """Faithful at every distance: below one ulp, as the tests show for each of them.

    G+ is convex, so in each piece the line whose largest deviations above and below are equal errs
    by half of the chord's. Pieces are of equal length within an octave (a unit of the logarithm),
    and twice as long after every second octave, as the curvature falls as 2^-x.

    G- needs no pieces, which its pole at 0 would make many of (cotransformation: M. Arnold,
    "Improved cotransformation for logarithmic subtraction", ISCAS 2002). With the distance
    x = p + q, p its high bits and q its low ones,

        1 - 2^-(p + q) = (1 - 2^-p) + 2^-p (1 - 2^-q), so that
        G-(p + q) = G-(p) + G+(p + G-(p) - G-(q)),

    with G-(p) and G-(q) from small tables; where p or q is 0, it is the other's alone.

    Arguments and results of pieces are in *steps*, 2^-GUARD_BITS of an ulp.
    """

    lns: Lns

    @property
    def step_bits(self) -> int:
        """Steps have 2^-step_bits of the logarithm's unit: F + GUARD_BITS."""
        return self.lns.fraction_bits + GUARD_BITS

    @property
    def first_piece_bits(self) -> int:
        """Octave 0 has 2^this pieces: enough for a line's error of an eighth of an ulp."""
        # curvature ln(2)/4 at 0: pieces of length h err by h^2 ln(2)/64
        return max(0, int(np.ceil((self.lns.fraction_bits - 3.53) / 2)))

    def piece_bits(self, octave: Any) -> Any:
        """An octave has 2^this pieces."""
        return np.maximum(self.first_piece_bits - (np.asarray(octave) >> 1), 0)

    @property
    def octaves(self) -> int:
        """Octaves with pieces; beyond them G+ is 0. Cotransformed arguments exceed the distance."""
        return -(-rounds_to_zero_from(self.lns.fraction_bits) >> self.lns.fraction_bits)

    @cached_property
    def bases(self) -> np.ndarray:
        """Number of each octave's first piece, and after the last the number of all."""
        counts = 1 << self.piece_bits(np.arange(self.octaves))
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def slope_places(self) -> int:
        """Binary places of slopes."""
        return self.lns.fraction_bits + 2

    @cached_property
    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Intercepts and falls of all pieces, int64.

        An intercept has INTERCEPT_PLACES below a step, with half a step for the rounding; a fall is
        the slope's magnitude.
        """
        octave = np.repeat(np.arange(self.octaves), np.diff(self.bases))
        place = np.arange(self.bases[-1]) - self.bases[octave]
        length = 2.0 ** -self.piece_bits(octave)
        left = octave + place * length
        right = left + length

        def value(x: np.ndarray) -> np.ndarray:
            return exact_plus(x * (1 << self.lns.fraction_bits), self.lns.fraction_bits) * (
                1 << GUARD_BITS
            )

        chord = (value(left) - value(right)) / (length * (1 << self.step_bits))
        fall = np.rint(chord * (1 << self.slope_places)).astype(np.int64)
        slope = fall * 2.0**-self.slope_places
        # the slope of G+ is -1 / (2^x + 1): where the tangent is parallel to the line
        touch = np.log2(1 / np.maximum(slope, 2.0**-60) - 1).clip(left, right)
        above = [
            value(x) + slope * (x - left) * (1 << self.step_bits) for x in (left, right, touch)
        ]
        middle = (np.max(above, axis=0) + np.min(above, axis=0)) / 2 + 0.5
        return np.rint(middle * (1 << INTERCEPT_PLACES)).astype(np.int64), fall

    def fine_plus(self, argument: Any) -> np.ndarray:
        """G+ in steps, int64, of arguments in steps, not negative."""
        argument = np.asarray(argument, np.int64)
        octave = np.minimum(argument >> self.step_bits, self.octaves - 1)
        beyond = argument >> self.step_bits >= self.octaves
        fraction = argument & (1 << self.step_bits) - 1
        rest_bits = self.step_bits - self.piece_bits(octave)
        piece = self.bases[octave] + (fraction >> rest_bits)
        rest = fraction & (np.int64(1) << rest_bits) - 1
        intercept, fall = (table[piece] for table in self.pieces)
        shift = self.slope_places - INTERCEPT_PLACES
        line = ((intercept << shift) - fall * rest) >> self.slope_places
        return np.where(beyond, 0, line)

    @property
    def low_bits(self) -> int:
        """Bits of the distance's low part: as many as make the tables of G- smallest."""
        width = (reach(self.lns) - 1).bit_length()
        return min(range(1, width), key=lambda low: self._table_words(low))

    def _table_words(self, low_bits: int) -> int:
        return (((reach(self.lns) - 1) >> low_bits) + 1) + (1 << low_bits)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """-G- in steps, int64, of each high part and of each low part; 0 of 0."""
        high = np.arange(((reach(self.lns) - 1) >> self.low_bits) + 1) << self.low_bits
        low = np.arange(1 << self.low_bits)
        return self._exact_part(high), self._exact_part(low)

    def _exact_part(self, distance: np.ndarray) -> np.ndarray:
        exact = exact_minus(distance[1:], self.lns.fraction_bits) * (1 << GUARD_BITS)
        return np.concatenate([[0], np.rint(-exact)]).astype(np.int64)

    @property
    def table_bits(self) -> int:
        """Words of each table times the bits of its largest."""
        tables = (*self.pieces, *self.parts)
        return sum(len(table) * int(table.max()).bit_length() for table in tables)

    def plus(self, distance: Any) -> np.ndarray:
        """As ``GaussianLogs`` has it."""
        return _round(self.fine_plus(np.asarray(distance, np.int64) << GUARD_BITS))

    def minus(self, distance: Any) -> np.ndarray:
        """As ``GaussianLogs`` has it."""
        distance = np.asarray(distance, np.int64)
        high, low = distance >> self.low_bits, distance & (1 << self.low_bits) - 1
        of_high, of_low = self.parts[0][high], self.parts[1][low]
        argument = (high << (self.low_bits + GUARD_BITS)) - of_high + of_low
        both = (high != 0) & (low != 0)
        joined = self.fine_plus(np.where(both, argument, 0)) - of_high
        return _round(np.where(both, joined, -of_high - of_low))


def _round(steps: np.ndarray) -> np.ndarray:
    """Ulps, int32; half an ulp goes up."""
    return ((steps + (1 << GUARD_BITS - 1)) >> GUARD_BITS).astype(np.int32)
