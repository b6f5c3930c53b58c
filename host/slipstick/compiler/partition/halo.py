"""Parts of an operation: what a box of its output needs of its inputs, and that part alone."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.operations import Convolution, Map, View, Window
from ..ir.requantization import Requantization

Span = tuple[int, int]
"""First and behind the last."""


@dataclass(frozen=True)
class Region:
    """A box of an activation."""

    rows: Span
    columns: Span
    channels: Span

    @classmethod
    def whole(cls, view: View) -> "Region":
        """All of it."""
        return cls((0, view.height), (0, view.width), (0, view.channels))

    @property
    def view(self) -> View:
        """Its sizes."""
        sides = self.rows, self.columns, self.channels
        height, width, channels = (end - first for first, end in sides)
        return View(height, width, channels)

    @property
    def origin(self) -> tuple[int, int, int]:
        """Its first element."""
        return self.rows[0], self.columns[0], self.channels[0]

    def hull(self, other: "Region") -> "Region":
        """The smallest box that holds both."""
        rows, columns, channels = (
            (min(a[0], b[0]), max(a[1], b[1]))
            for a, b in (
                (self.rows, other.rows),
                (self.columns, other.columns),
                (self.channels, other.channels),
            )
        )
        return Region(rows, columns, channels)

    def meets(self, other: "Region") -> bool:
        """Tells whether they share an element."""
        return all(
            a[0] < b[1] and b[0] < a[1]
            for a, b in (
                (self.rows, other.rows),
                (self.columns, other.columns),
                (self.channels, other.channels),
            )
        )


def _clipped(first: int, end: int, size: int) -> Span:
    """A span within 0..size, of one place at least: a window may lie in the padding altogether."""
    low = min(max(first, 0), size - 1)
    return low, max(min(end, size), low + 1)


def _reach(span: Span, stride: int, padding: int, extent: int, size: int) -> Span:
    """Places of an input that the windows of a span of results cover."""
    first = span[0] * stride - padding
    return _clipped(first, (span[1] - 1) * stride - padding + extent, size)


def needed(operation: Convolution | Map, region: Region) -> Region:
    """Finds the box that a box of the output needs of each input.

    Parameters
    ----------
    operation : Convolution or Map
        No map that gathers: see ``gathered``.
    region : Region
        Of its output; of grouped convolutions whole groups.
    """
    if isinstance(operation, Convolution):
        return _needed_by_convolution(operation, region)
    rows, columns = (_map_reach(operation, span, axis) for axis, span in enumerate(_sides(region)))
    return Region(rows, columns, region.channels)


def goes_down(rows: tuple[Span, Span], stripes: int, passes: int) -> bool:
    """Tells whether stripes should be made from the last one up to the first one.

    What two stripes read stays on the chip if the second one lies before the first one. Otherwise
    every second pass begins where the one before ended, whose last two stripes are still there.

    Parameters
    ----------
    rows : pair of (first, behind the last)
        Of the input, that the first two stripes read.
    stripes : int
    passes : int
        Times that all stripes are made, each time of other channels.
    """
    (first, end), (second, _) = rows
    return (end - second) * (stripes - 1) * passes > 2 * (end - first) * (passes - 1)


def gathered(operation: Map) -> dict[str, Region]:
    """Finds what a gathering map needs of each source; without parts it makes all of its output."""
    found: dict[str, Region] = {}
    for window in operation.windows:
        first, end = window.channels or (0, operation.output.channels)
        channels = window.origin_channel, window.origin_channel + end - first
        rows, columns = (
            _window_reach(window, axis, (window.rows, window.columns)[axis]) for axis in (0, 1)
        )
        name, region = operation.sources[window.source], Region(rows, columns, channels)
        found[name] = found[name].hull(region) if name in found else region
    return found


def _window_reach(window: Window, axis: int, places: Span) -> Span:
    """The inputs of a window's results along an axis."""
    results = -(-(places[1] - places[0]) // window.step[axis])
    first = window.origin[axis]
    return first, first + (results - 1) * window.stride[axis] + window.taps[axis]


def _sides(region: Region) -> tuple[Span, Span]:
    return region.rows, region.columns


def _needed_by_convolution(convolution: Convolution, region: Region) -> Region:
    view, sizes = convolution.input, (convolution.input.height, convolution.input.width)
    rows, columns = (
        _reach(
            span,
            convolution.stride[axis],
            convolution.padding[axis],
            (convolution.kernel[axis] - 1) * convolution.dilation[axis] + 1,
            sizes[axis],
        )
        for axis, span in enumerate(_sides(region))
    )
    if convolution.groups == 1:
        return Region(rows, columns, (0, view.channels))
    filters, inputs = group_sizes(convolution)
    first, end = region.channels
    return Region(rows, columns, (first // filters * inputs, -(-end // filters) * inputs))


def group_sizes(convolution: Convolution) -> tuple[int, int]:
    """Output and input channels of a group."""
    groups = convolution.groups
    return convolution.output.channels // groups, convolution.input.channels // groups


def _map_reach(operation: Map, span: Span, axis: int) -> Span:
    """Places that the windows of a span of results read, of all inputs alike."""
    found = []
    for window in operation.windows:
        places = (window.rows, window.columns)[axis]
        low, high = max(places[0], span[0]), min(places[1], span[1])
        if low < high:
            first = window.origin[axis] + (low - places[0]) * window.stride[axis]
            last = window.origin[axis] + (high - 1 - places[0]) * window.stride[axis]
            found.append((first, last + window.taps[axis]))
    return min(first for first, _ in found), max(end for _, end in found)


def restrict(
    operation: Convolution | Map, region: Region, inputs: Mapping[str, Region]
) -> Convolution | Map:
    """The operation that makes a box of the output from boxes of its inputs.

    Parameters
    ----------
    operation : Convolution or Map
    region : Region
        Of its output.
    inputs : mapping of Region by name
        They hold what is ``needed``.
    """
    if isinstance(operation, Map) and operation.gathers:
        return _shifted(operation, inputs)
    first = inputs[operation.sources[0]]
    if isinstance(operation, Convolution):
        return _restricted_convolution(operation, region, first)
    windows = [_restricted_window(window, region, first) for window in operation.windows]
    last = inputs[operation.sources[-1]]
    return dataclasses.replace(
        operation,
        output=region.view,
        windows=tuple(window for window in windows if window is not None),
        second_origin=(first.rows[0] - last.rows[0], first.columns[0] - last.columns[0]),
    )


def _shifted(operation: Map, inputs: Mapping[str, Region]) -> Map:
    """A map that gathers, all of it, from boxes of its sources."""
    windows = []
    for window in operation.windows:
        y, x, channel = inputs[operation.sources[window.source]].origin
        origin = window.origin[0] - y, window.origin[1] - x
        shifted = window.origin_channel - channel
        windows.append(dataclasses.replace(window, origin=origin, origin_channel=shifted))
    return dataclasses.replace(operation, windows=tuple(windows))


def _restricted_convolution(
    convolution: Convolution, region: Region, inputs: Region
) -> Convolution:
    first, end = region.channels
    padding = tuple(
        convolution.padding[axis] - span[0] * convolution.stride[axis] + own[0]
        for axis, (span, own) in enumerate(zip(_sides(region), _sides(inputs), strict=True))
    )
    groups = convolution.groups
    if groups > 1:
        groups = (end - first) // group_sizes(convolution)[0]
    return dataclasses.replace(
        convolution,
        input=inputs.view,
        output=region.view,
        padding=padding,
        weights=convolution.weights[first:end],
        groups=groups,
        requantization=_channels_of(convolution.requantization, region.channels),
    )


def _channels_of(values: Requantization, channels: Span) -> Requantization:
    first, end = channels
    return dataclasses.replace(
        values,
        bias=values.bias[first:end],
        multiplier=values.multiplier[first:end],
        shift=values.shift[first:end],
        rounding=values.rounding[first:end],
    )


def _restricted_window(window: Window, region: Region, inputs: Region) -> Window | None:
    spans, origins = [], []
    sides = zip((window.rows, window.columns), _sides(region), _sides(inputs), strict=True)
    for axis, (places, span, own) in enumerate(sides):
        low, high = max(places[0], span[0]), min(places[1], span[1])
        if low >= high:
            return None
        spans.append((low - span[0], high - span[0]))
        origins.append(window.origin[axis] + (low - places[0]) * window.stride[axis] - own[0])
    return dataclasses.replace(
        window, rows=spans[0], columns=spans[1], origin=(origins[0], origins[1])
    )


def split_reduction(
    convolution: Convolution, channels: Span, *, first: bool, last: bool
) -> Convolution:
    """The share of some input channels in the sums of a convolution without groups.

    Parameters
    ----------
    convolution : Convolution
    channels : (first, behind the last)
        Of its input.
    first, last : bool
        Whether the sums begin with it, and whether they become results with it.
    """
    low, high = channels
    view = convolution.input
    return dataclasses.replace(
        convolution,
        input=View(view.height, view.width, high - low),
        weights=convolution.weights[..., low:high],
        accumulates=not first,
        drains=last,
    )


def flattened(convolution: Convolution) -> Convolution:
    """One whose kernel covers its whole input, as a product with a row; others as they are."""
    view = convolution.input
    covers = convolution.kernel == (view.height, view.width) and convolution.output.pixels == 1
    if not covers or convolution.groups > 1 or any(convolution.padding):
        return convolution
    return dataclasses.replace(
        convolution,
        input=View(1, 1, view.elements),
        kernel=(1, 1),
        weights=convolution.weights.reshape(len(convolution.weights), 1, 1, -1),
    )


def without_stride(convolution: Convolution) -> tuple[Convolution, View] | None:
    """A convolution of single pixels that skips every second one, as one that skips none.

    Returns
    -------
    (Convolution, View) or None
        Two rows of its input are a row of pairs of pixels: the first half of that row, and of each
        pair, is what it reads. So a tensor of that shape has its input, and the box of the same
        places is all that is moved. None for other convolutions.
    """
    view, stride = convolution.input, convolution.stride
    pointwise = convolution.kernel == (1, 1) and not any(convolution.padding)
    if not pointwise or stride != (2, 2) or view.height % 2 or view.width % 2:
        return None
    read = View(view.height // 2, view.width // 2, view.channels)
    if (read.height, read.width) != (convolution.output.height, convolution.output.width):
        return None
    plain = dataclasses.replace(convolution, input=read, stride=(1, 1))
    return plain, View(read.height, view.width, 2 * view.channels)
