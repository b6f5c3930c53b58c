"""Training on a logarithmic array: products of ordered codes by a table, sums in linear integers.

Tensors are ordered codes of 8 bits (:class:`slipstick_rtl.numbers.lns.formats.Lns`): code k of a
tensor with exponent e is sign * 2^(abs(k) / 2^F) * 2^e. Sums are int32 in units of
2^(exponents of both operands) * ``ArrayArithmetic.unit``, as the array computes them.
"""

from collections.abc import Sequence

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import GUARD_BITS, ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.conversions import from_float

from .compiled import add_table_products
from .geometry import Window
from .loss import SHARE_PLACES, probabilities
from .rounding import exact_sum, round_pseudo_stochastic

MASTER_PLACES = 8
"""Binary places of a multiplicative update's masters below an ordered code."""

STEP_PLACES = 14
"""Binary places of an antilogarithm in a multiplicative update."""

_LARGEST_DISTANCE = 11
"""Between exponents of tensors that are added: 16 of 2^15 x 2^11 have 31 bits."""


class LogarithmicProducts:
    """The three products, and rounding, of one format's array.

    Parameters
    ----------
    lns : Lns
        Of 8 bits or fewer.

    Members
    -------
    unit_exponent : int
        The array's unit is 2^this.
    octaves : int
        2^I: from the smallest to the largest code.
    """

    def __init__(self, lns: Lns) -> None:
        self.array = ArrayArithmetic(lns)
        self._table = np.ascontiguousarray(self.array.products)
        self.unit_exponent = int(np.log2(self.array.unit))
        self.octaves = 1 << lns.integer_bits
        codes = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        whole, part = np.divmod(np.abs(codes), 1 << lns.fraction_bits)
        values = self.array.antilog[part].astype(np.int64) << whole
        self._values = (values * np.sign(codes)).astype(np.int32)

    def next_exponent(self, exponent: int, largest: int) -> int:
        """The exponent at which a largest sum is within the format's largest octave."""
        return exponent + int(largest).bit_length() - self.octaves

    def linear(self, codes: np.ndarray) -> np.ndarray:
        """Codes as int32 in units of 2^-(F + 2): what the post-processor's table holds."""
        return self._values[codes.view(np.uint8)]

    def multiply(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Products of codes, which broadcast; int32."""
        return self._table[a.view(np.uint8), b.view(np.uint8)]

    def round(self, sums: np.ndarray, exponent: int, target: int, relu: bool = False) -> np.ndarray:
        """Codes of a tensor of another exponent, by ``ArrayArithmetic.requantize``.

        Parameters
        ----------
        sums : array of int32
        exponent, target : int
            Powers of two of the sums and of the codes.
        relu : bool

        Returns
        -------
        array of int8
            Nearest logarithms; magnitudes below the smallest code's are 0, beyond the largest
            they saturate.
        """
        places = self.array.lns.fraction_bits + GUARD_BITS
        offset = np.clip((exponent - target) << places, -(1 << 15), (1 << 15) - 1)
        codes = self.array.requantize(sums, 0, offset)
        return (np.maximum(codes, 0) if relu else codes).astype(np.int8)

    def forward(self, images: np.ndarray, weights: np.ndarray, window: Window) -> np.ndarray:
        """As ``convolution.convolve_forward`` of codes; OverflowError if a sum passes 32 bits."""
        rows, columns = window.outputs(*images.shape[1:3])
        padded, batch = window.pad(images), len(images)
        factor = np.ascontiguousarray(weights.reshape(len(weights), -1).T)
        results = np.empty((batch, rows, columns, len(weights)), np.int32)
        for piece in window.pieces(batch, rows, columns):
            matrix = window.matrix(padded[piece], rows, columns).astype(np.int8)
            results[piece] = exact_sum(self._product(matrix, factor)).reshape(results[piece].shape)
        return results

    def input_gradient(
        self, errors: np.ndarray, weights: np.ndarray, window: Window, height: int, width: int
    ) -> np.ndarray:
        """As ``convolution.input_gradient`` of codes."""
        batch, rows, columns, outputs = errors.shape
        top, bottom, left, right = window.padding
        shape = batch, height + top + bottom, width + left + right, weights.shape[3]
        padded = np.zeros(shape, np.float64)
        factor = np.ascontiguousarray(weights.reshape(outputs, -1))
        for piece in window.pieces(batch, rows, columns):
            product = self._product(errors[piece].reshape(-1, outputs), factor)
            # whole numbers of 53 bits are exact
            window.scatter(product.astype(np.float64), padded[piece], rows, columns)
        return exact_sum(window.unpad(padded))

    def weight_gradient(self, images: np.ndarray, errors: np.ndarray, window: Window) -> np.ndarray:
        """As ``convolution.weight_gradient`` of codes."""
        batch, rows, columns, outputs = errors.shape
        padded, channels = window.pad(images), images.shape[3]
        total = np.zeros((window.kernel[0] * window.kernel[1] * channels, outputs), np.int64)
        for piece in window.pieces(batch, rows, columns):
            matrix = window.matrix(padded[piece], rows, columns).astype(np.int8)
            flat = np.ascontiguousarray(errors[piece].reshape(-1, outputs))
            total += self._product(np.ascontiguousarray(matrix.T), flat)
        by_output = np.ascontiguousarray(total.T).reshape(outputs, *window.kernel, channels)
        return exact_sum(by_output, "a weight's gradient")

    def bias_gradient(self, errors: np.ndarray) -> np.ndarray:
        """Errors, as linear numbers in units of 2^-(F + 2), summed over the batch and pixels."""
        total = self.linear(errors).sum(axis=(0, 1, 2), dtype=np.int64)
        return exact_sum(total, "a bias' gradient")

    def _product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Sums of products of codes (m, k) and (k, n), int64: no sum here can wrap."""
        total = np.zeros((b.shape[1], a.shape[0]), np.int64)
        by_lane = np.ascontiguousarray(a.T).view(np.uint8)
        add_table_products(by_lane, np.ascontiguousarray(b).view(np.uint8), self._table, total)
        return total.T

    def aligned_sum(self, tensors: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
        """Adds tensors as linear numbers; see ``elementwise.aligned_sum``.

        Parameters
        ----------
        tensors : sequence of (array of codes, exponent), 1 to 16

        Returns
        -------
        sums : array of int32
        exponent : int
        """
        largest = max(exponent for _, exponent in tensors)
        counting = [entry for entry in tensors if largest - entry[1] <= _LARGEST_DISTANCE]
        smallest = min(exponent for _, exponent in counting)
        total = np.zeros(tensors[0][0].shape, np.int64)
        for codes, exponent in counting:
            total += self.linear(codes).astype(np.int64) << (exponent - smallest)
        return exact_sum(total), smallest - self.array.antilog_places

    def loss_errors(
        self, logits: np.ndarray, exponent: int, labels: np.ndarray, target: int | None = None
    ) -> tuple[np.ndarray, int, int]:
        """As ``loss.loss_gradient``; the label's error is minus the sum of the others', rounded.

        Parameters
        ----------
        logits : array of codes, (batch, classes)
        exponent : int
        labels : array of int, (batch,)
        target : int, optional
            Exponent of the errors; by default as this step's largest asks.

        Returns
        -------
        errors : array of int8
        exponent : int
        next exponent : int
            As this step's largest asks.
        """
        places = self.array.antilog_places
        shares = probabilities(self.linear(logits), exponent - places)
        true = np.arange(logits.shape[1]) == np.asarray(labels)[:, None]
        others = np.where(true, 0, shares)
        total = others.sum(axis=1, keepdims=True)
        following = self.next_exponent(-SHARE_PLACES, int(total.max(initial=0)))
        unit = following if target is None else target
        rounded = self.round(others, -SHARE_PLACES, unit)
        linear = self.linear(rounded).sum(axis=1, keepdims=True, dtype=np.int32)
        label = self.round(-linear, unit - places, unit)
        return np.where(true, label, rounded).astype(np.int8), unit, following

    def update_multiplied(
        self, masters: np.ndarray, norms: np.ndarray, gradient: np.ndarray, shift: int, decay: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """A step that multiplies weights: their logarithms lose their gradient's share.

        ``norm = max(norm - decay, log2|gradient|)``, with F + 3 binary places;
        ``step = 2^(log2|gradient| - norm) * 2^-shift`` octaves, at most 2^-shift;
        ``|master| = |master| - step * sign(gradient * master)``.

        A weight keeps its sign and is never 0. (J. Zhao et al., "LNS-Madam: low-precision training
        in logarithmic number system using multiplicative weight update", 2022, after J. Bernstein
        et al., "Learning compositional functions via multiplicative weight updates", 2020; there
        the norm is a root mean square, here the decaying largest of D. Kingma and J. Ba's AdaMax,
        2015, which in logarithms is a subtraction and a comparison.)

        Parameters
        ----------
        masters : array of int32
            Ordered codes with 8 more binary places, 16 bits.
        norms : array of int32
            At first ``lowest_norm``.
        gradient : array of int32
            Summed over the batch; its unit is without effect.
        shift : int
            A step is at most 2^-shift octaves.
        decay : int
            Of the norm, in 2^-(F + 3) octaves.

        Returns
        -------
        masters, norms : array of int32
        """
        places = self.array.lns.fraction_bits + GUARD_BITS
        log = self._logarithms(gradient, places)
        norms = np.maximum(norms - decay, log)
        below = np.where(gradient == 0, 40 << places, norms - log)
        whole, part = below >> places, below & ((1 << places) - 1)
        table = np.rint(np.exp2(STEP_PLACES - np.arange(1 << places) / (1 << places)))
        share = table[part].astype(np.int64) << 16
        # octaves have 2^(F + 8) units
        unit = STEP_PLACES + 16 - self.array.lns.fraction_bits - MASTER_PLACES
        step = round_pseudo_stochastic(
            exact_sum(share >> np.minimum(whole, 40)), min(31, max(0, unit + shift)), 16
        )
        magnitude = np.abs(masters) - step * np.sign(gradient) * np.sign(masters)
        top = (self.array.lns.largest_code << MASTER_PLACES) + (1 << MASTER_PLACES - 1) - 1
        magnitude = np.clip(magnitude, 1 << MASTER_PLACES, top)
        return (magnitude * np.sign(masters)).astype(np.int32), norms.astype(np.int32)

    @property
    def lowest_norm(self) -> int:
        """Returns the norm of a weight that no gradient has reached yet."""
        return -(1 << 24)

    def _logarithms(self, values: np.ndarray, places: int) -> np.ndarray:
        """log2 of magnitudes with binary places, as the requantiser's; ``lowest_norm`` for 0."""
        magnitude = np.abs(values.astype(np.int64))
        place = np.frexp(magnitude.astype(np.float64))[1] - 1
        bits = self.array.mantissa_bits
        aligned = (magnitude << 31) >> np.maximum(place, 0)
        mantissa = (aligned >> (31 - bits)) & ((1 << bits) - 1)
        log = (place << places) + self.array.log[mantissa]
        return np.where(values == 0, self.lowest_norm, log)


def weights_of_masters(masters: np.ndarray) -> np.ndarray:
    """Ordered codes of multiplicative masters: the rounded upper byte of the magnitude."""
    magnitude = (np.abs(masters) + (1 << MASTER_PLACES - 1)) >> MASTER_PLACES
    return (magnitude * np.sign(masters)).astype(np.int8)


def codes_of_wide(wide: np.ndarray, source: Lns, target: Lns, exponent: int) -> np.ndarray:
    """Ordered codes of a narrow format and an exponent from those of a wide one, to nearest.

    Parameters
    ----------
    wide : array of int32
        Ordered codes of ``source``, which has more binary places.
    source, target : Lns
    exponent : int
        Of the codes that come out.

    Returns
    -------
    array of int8
        0 below the smallest code; saturated.
    """
    places = source.fraction_bits - target.fraction_bits
    logarithm = np.abs(wide) + source.zero
    nearest = (logarithm + (1 << places >> 1)) >> places
    code = np.clip(nearest - (exponent << target.fraction_bits), 0, target.largest_code)
    return np.where(wide == 0, 0, code * np.sign(wide)).astype(np.int8)


def wide_codes(lns: Lns, values: np.ndarray, exponent: int) -> np.ndarray:
    """Ordered codes of values x 2^exponent, to the nearest logarithm.

    Parameters
    ----------
    lns : Lns
    values : array of int32
    exponent : int

    Returns
    -------
    array of int32
        ``unit.conversions.from_float`` of the exact numbers.
    """
    return from_float(lns, np.ldexp(values.astype(np.float64), exponent))
