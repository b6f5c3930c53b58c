"""What the device does, before it is known where anything lies: convolutions and maps."""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift

from ..graph import Node


@dataclass(frozen=True)
class View:
    """The sizes of an activation as the device sees it."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def elements(self) -> int:
        return self.pixels * self.channels


@dataclass(frozen=True, eq=False)
class Requantization:
    """How sums become codes: one entry a channel, or one for all.

    Parameters
    ----------
    bias : array of int64
    multiplier : array of int64, 0..2^31 - 1
    shift : array of int64
        As ``encode_shift`` gives them.
    rounding : array of int64
        A ``Rounding`` each.
    zero_point, minimum, maximum : int
    """

    bias: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    rounding: np.ndarray
    zero_point: int = 0
    minimum: int = -128
    maximum: int = 127


def requantization(
    multiplier: np.ndarray,
    shift: np.ndarray,
    bias: np.ndarray,
    zero_point: int,
    clamp: tuple[int, int],
) -> Requantization:
    """TensorFlow Lite's multiplication by mantissa / 2^31 x 2^shift, exactly.

    With a right shift it is gemmlowp's two roundings. With a left shift by s, doubling and rounding
    (x 2^s m + 2^30) >> 31 is (x m + 2^(30 - s)) >> (31 - s): one rounding, half up.

    Raises
    ------
    ValueError
        If a left shift is too large for the hardware.
    """
    left = shift > 0
    rounding = np.where(left, int(Rounding.HALF_UP), int(Rounding.DOUBLE))
    encoded = [
        encode_shift(Rounding.HALF_UP, 31 - int(places))
        if raised
        else encode_shift(Rounding.DOUBLE, -int(places))
        for raised, places in zip(left, shift, strict=True)
    ]
    return Requantization(bias, multiplier, np.array(encoded), rounding, zero_point, *clamp)


def rounding_runs(
    values: Requantization, channels: int, lanes: int
) -> list[tuple[int, int, int]] | None:
    """Runs of slices that share one rounding, as (first channel, behind the last, rounding).

    An instruction has one rounding. DOUBLE without a right shift is HALF_UP by 31, and both are
    encoded alike, so such a channel suits either. None if channels of one slice disagree.
    """
    unshifted = encode_shift(Rounding.DOUBLE, 0)
    runs: list[tuple[int, int, int]] = []
    for first in range(0, channels, lanes):
        end = min(first + lanes, channels)
        raised = values.rounding[first:end] == int(Rounding.HALF_UP)
        lowered = ~raised & (values.shift[first:end] > unshifted)
        if raised.any() and lowered.any():
            return None
        rounding = int(Rounding.HALF_UP if raised.any() else Rounding.DOUBLE)
        if runs and runs[-1][2] == rounding:
            runs[-1] = (runs[-1][0], end, rounding)
        else:
            runs.append((first, end, rounding))
    return runs


def half_up(multiplier: int, shift: int, zero_point: int, clamp: tuple[int, int]) -> Requantization:
    """(sum x multiplier) / 2^shift, rounded once, for all channels."""
    return Requantization(
        np.array([0]),
        np.array([multiplier]),
        np.array([encode_shift(Rounding.HALF_UP, shift)]),
        np.array([int(Rounding.HALF_UP)]),
        zero_point,
        *clamp,
    )


def identity(clamp: tuple[int, int] = (-128, 127)) -> Requantization:
    """The sum itself, clamped."""
    return half_up(1 << 30, 30, 0, clamp)


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution, depthwise or not, or a fully connected layer as one.

    Parameters
    ----------
    node : Node
        What it came from.
    source, result : str
    input, output : View
    kernel, stride, dilation, padding : (y, x)
        Padding is that before the first row and column.
    weights : array of int8, (O, kernel_y, kernel_x, input channels / groups)
    groups : int
    input_zero_point : int
    requantization : Requantization
        One entry an output channel; the input's zero point is in the bias.
    """

    node: Node
    source: str
    result: str
    input: View
    output: View
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    weights: np.ndarray
    groups: int
    input_zero_point: int
    requantization: Requantization

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def is_diagonal(self) -> bool:
        """Each output channel reads the input channel of the same number and no other."""
        return self.groups > 1 and self.groups == self.input.channels == self.output.channels

    @property
    def covers_rows(self) -> bool:
        """The kernel covers each row of the input: a row of pixels may count as one tap."""
        return (
            self.groups == 1
            and self.kernel[1] == self.input.width
            and self.output.width == self.dilation[1] == 1
            and not self.padding[1]
        )

    @property
    def macs(self) -> int:
        return self.output.pixels * self.weights.size


@dataclass(frozen=True, eq=False)
class Window:
    """A rectangle of a map's output in which every result combines the same number of taps.

    Output (y, x) reads input rows ``origin_y + (y - rows[0]) * stride_y`` and the ``taps_y - 1``
    behind it, and columns likewise.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    origin: tuple[int, int]
    stride: tuple[int, int]
    taps: tuple[int, int]
    requantization: Requantization


@dataclass(frozen=True, eq=False)
class Map:
    """Pooling, an elementwise sum, or a function of one code.

    Parameters
    ----------
    node : Node
    sources : tuple of str
        One, or the two operands of a sum.
    result : str
    output : View
    windows : tuple of Window
        They cover the output. A sum has one, whose taps are those of either operand.
    table : array of int32, (256 or 512,), or None
    take_maximum : bool
    """

    node: Node
    sources: tuple[str, ...]
    result: str
    output: View
    windows: tuple[Window, ...]
    table: np.ndarray | None = None
    take_maximum: bool = False

    @property
    def macs(self) -> int:
        return 0

    @property
    def is_elementwise(self) -> bool:
        """Each result depends on the codes at its own place only."""
        first = self.windows[0]
        return len(self.windows) == 1 and (first.origin, first.stride, first.taps) == (
            (0, 0),
            (1, 1),
            (1, 1),
        )


@dataclass(frozen=True, eq=False)
class Alias:
    """A reshape on the device: the same bytes by another name."""

    node: Node
    source: str
    result: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def macs(self) -> int:
        return 0


@dataclass(frozen=True, eq=False)
class HostOperation:
    """A node that the host runs."""

    node: Node
    why: str
    macs: int = 0


DeviceOperation = Convolution | Map | Alias
Operation = Convolution | Map | Alias | HostOperation
