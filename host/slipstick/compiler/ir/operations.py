"""Defines the device's operations before anything has a place: convolutions and maps."""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration

from ...graph import Node
from .requantization import Requantization, is_identity

CODES = 256
"""Entries of an operand's table."""


def stored_table(table: np.ndarray, configuration: Configuration) -> np.ndarray:
    """Returns the entries of a table that the hardware holds: those of the format's codes.

    Parameters
    ----------
    table : array, (256,) or (512,)
        Per half from code -128 on.
    configuration : Configuration

    Returns
    -------
    array, (table_codes,) or (2 * table_codes,)
    """
    kept = configuration.table_codes // 2
    halves = table.reshape(-1, CODES)[:, CODES // 2 - kept : CODES // 2 + kept]
    return halves.reshape(-1)


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
    accumulates, drains : bool
        Whether the sums begin with those that the accumulators hold, and whether they become
        results: of a reduction that is cut, its parts one after the other.
    pixels : int
        Neighbours of a row that count as one pixel of the output; see ``folding``.
    work : int, optional
        Multiply-accumulates, if they are not those of the output and the weights.
    function : array of int8, (256,), or None
        What each result becomes, from that of code -128 on: a function of one code behind the
        layer, for hardware with ``drain_tables``.
    apart, source_apart : int
        Columns of the image from the first half of the channels to the second one, of its result
        and of its input; 0 where all are of one pixel. See ``halving``.
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
    accumulates: bool = False
    drains: bool = True
    pixels: int = 1
    work: int | None = None
    function: np.ndarray | None = None
    apart: int = 0
    source_apart: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def is_partial(self) -> bool:
        """It makes or takes sums that are not whole."""
        return self.accumulates or not self.drains

    @property
    def is_diagonal(self) -> bool:
        """Each output channel reads the input channel of the same number and no other."""
        channels = self.input.channels * (2 if self.apart else 1)
        return self.groups > 1 and self.groups == channels == self.output.channels

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
        if self.work is not None:
            return self.work
        # weights in parts of 8 bits are one product to the network
        return self.output.pixels * self.weights.size // self.node.attributes.get("parts", 1)


@dataclass(frozen=True, eq=False)
class Window:
    """A rectangle of a map's output in which every result combines the same number of taps.

    Its results are every ``step``-th of ``rows`` and ``columns``. The i-th row of them reads input
    rows ``origin_y + i * stride_y`` and the ``taps_y - 1`` behind it; columns likewise.

    Parameters
    ----------
    source : int
        Which of the map's sources it reads, where the map gathers.
    channels : (first, behind the last) or None
        Of the output, where the map gathers; by default all. Whole slices are written.
    origin_channel : int
        The input's channel that becomes the first of them.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    origin: tuple[int, int]
    stride: tuple[int, int]
    taps: tuple[int, int]
    requantization: Requantization
    step: tuple[int, int] = (1, 1)
    source: int = 0
    channels: tuple[int, int] | None = None
    origin_channel: int = 0

    def covered(self, rows: tuple[int, int]) -> tuple[int, int]:
        """Returns which of its rows of results, from 0 on, lie among these rows of the output."""
        low = max(rows[0], self.rows[0]) - self.rows[0]
        high = min(rows[1], self.rows[1]) - self.rows[0]
        return -(-low // self.step[0]), -(-high // self.step[0])


@dataclass(frozen=True, eq=False)
class Map:
    """Pooling, an elementwise sum or product, a function of one code, or a copy of parts.

    Parameters
    ----------
    node : Node
    sources : tuple of str
        One, or two operands, or any number of tensors that the map gathers.
    result : str
    output : View
    windows : tuple of Window
        They cover the output. With two operands there is one, whose taps are those of either.
    table : array of int32, (256 or 512,), or None
        If it has 256 entries, they are of the first operand.
    shifts : bool
        Operands without a table are multiplied by 2^19.
    take_maximum : bool
    gathers : bool
        Each window copies, from its own source: what a concatenation or a slice is.
    second_origin : (y, x)
        Where the second operand has what the first has at (0, 0).
    multiplies : bool
        Operands are multiplied, not added; both have a table.
    """

    node: Node
    sources: tuple[str, ...]
    result: str
    output: View
    windows: tuple[Window, ...]
    table: np.ndarray | None = None
    take_maximum: bool = False
    gathers: bool = False
    second_origin: tuple[int, int] = (0, 0)
    shifts: bool = False
    multiplies: bool = False

    @property
    def macs(self) -> int:
        return 0

    @property
    def looked_up(self) -> int:
        """Bit k: the k-th operand goes through the table."""
        return 0 if self.table is None else (1 << self.table.size // CODES) - 1

    @property
    def function(self) -> np.ndarray | None:
        """Returns what each code from -128 on becomes, int8 (256,); None if the map does more."""
        pure = self.is_elementwise and len(self.sources) == 1 and not self.shifts
        if not pure or self.looked_up != 1 or self.table is None:
            return None
        values = self.windows[0].requantization
        is_code = (self.table >= -CODES // 2) & (self.table < CODES // 2)
        return self.table.astype(np.int8) if is_identity(values) and is_code.all() else None

    @property
    def is_binary(self) -> bool:
        """Its taps are two operands, not the places of a window."""
        return len(self.sources) == 2 and not self.gathers

    @property
    def is_elementwise(self) -> bool:
        """Each result depends on the codes at its own place only."""
        first = self.windows[0]
        return (
            not self.gathers
            and len(self.windows) == 1
            and self.second_origin == (0, 0)
            and (first.origin, first.stride, first.taps) == ((0, 0), (1, 1), (1, 1))
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
    """A node that the host runs; its multiply-accumulates are none of the device's."""

    node: Node
    why: str
    macs: int = 0


DeviceOperation = Convolution | Map | Alias
Operation = Convolution | Map | Alias | HostOperation
