"""What the device does, before it is known where anything lies: convolutions and maps."""

from dataclasses import dataclass

import numpy as np

from ..graph import Node
from .requantization import Requantization


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
