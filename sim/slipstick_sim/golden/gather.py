"""Windows of a CONVOLVE copied out of activation memory, fast: a few large strided copies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Span = tuple[int, int]


@dataclass(frozen=True)
class _Tap:
    """Consecutive lanes of one kernel tap: where they go and where they come from."""

    first: int
    end: int
    ky: int
    kx: int
    offset: int


@dataclass(frozen=True)
class _Copy:
    """A box of the window matrix, and the address of its first byte; None stands for padding."""

    rows: Span
    columns: Span
    lanes: Span
    address: int | None


def _inside(origin: int, count: int, stride: int, size: int) -> Span:
    """Finds those of ``count`` positions from ``origin`` on, ``stride`` apart, in 0..size - 1."""
    if not stride:
        return (0, count if 0 <= origin < size else 0)
    first = max(0, -(origin // stride))
    end = min(count, (size - 1 - origin) // stride + 1)
    return (first, end) if first < end else (0, 0)


def _taps(ky: np.ndarray, kx: np.ndarray, offsets: np.ndarray) -> list[_Tap]:
    """Lanes grouped into runs of consecutive addresses within one tap."""
    if not len(offsets):
        return []
    breaks = (np.diff(ky) != 0) | (np.diff(kx) != 0) | (np.diff(offsets) != 1)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(offsets)]
    return [
        _Tap(first, end, int(ky[first]), int(kx[first]), int(offsets[first]))
        for first, end in pairwise(edges)
    ]


def _kernel_rows(taps: Sequence[_Tap]) -> list[list[_Tap]]:
    """Taps grouped so that each group's lanes are one run of bytes in one input row."""
    groups: list[list[_Tap]] = []
    for tap in taps:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and last.ky == tap.ky
            and last.kx + 1 == tap.kx
            and last.offset + last.end - last.first == tap.offset
        ):
            groups[-1].append(tap)
        else:
            groups.append([tap])
    return groups


class WindowGather:
    """Copies the windows of one CONVOLVE into a matrix of one row a pixel, one column a lane.

    Parameters
    ----------
    instruction : mapping
        Field values of a CONVOLVE.
    columns : int
        Output columns that the array computes, groups x P.
    ky, kx, offsets : arrays of int64, (K,)
        Tap and address offset of each lane wanted, in the order of the matrix's columns.

    Raises
    ------
    ValueError
        When called: if a byte inside the input lies outside the memory.
    """

    def __init__(
        self,
        instruction: Mapping[str, int],
        columns: int,
        ky: np.ndarray,
        kx: np.ndarray,
        offsets: np.ndarray,
    ) -> None:
        self._rows, self._columns = instruction["rows"], columns
        self._lanes = len(offsets)
        self._row_step, self._column_step = instruction["row_step"], instruction["column_step"]
        self._padding = instruction["padding_value"]
        self._copies: list[_Copy] = []
        for taps in _kernel_rows(_taps(ky, kx, offsets)):
            self._plan_kernel_row(instruction, taps)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and lanes of the matrix."""
        return self._rows, self._columns, self._lanes

    def _plan_kernel_row(self, instruction: Mapping[str, int], taps: list[_Tap]) -> None:
        """Copies and paddings for taps that are one run of bytes."""
        rows, columns = (0, self._rows), (0, self._columns)
        lanes = (taps[0].first, taps[-1].end)
        y = instruction["origin_y"] + taps[0].ky * instruction["dilation_y"]
        top, bottom = _inside(y, self._rows, instruction["stride_y"], instruction["height"])
        for outside in ((rows[0], top), (bottom, rows[1])):
            self._add(outside, columns, lanes, None)
        spans = [
            _inside(
                instruction["origin_x"] + tap.kx * instruction["dilation_x"],
                self._columns,
                instruction["stride_x"],
                instruction["width"],
            )
            for tap in taps
        ]
        # between two edges every column has the same taps inside, and those are neighbours
        edges = sorted({*columns, *(edge for span in spans for edge in span)})
        for segment in pairwise(edges):
            held = [
                tap
                for tap, span in zip(taps, spans, strict=True)
                if span[0] <= segment[0] and segment[1] <= span[1]
            ]
            first, end = (held[0].first, held[-1].end) if held else (lanes[0], lanes[0])
            self._add((top, bottom), segment, (lanes[0], first), None)
            self._add((top, bottom), segment, (end, lanes[1]), None)
            if held:
                self._add(
                    (top, bottom), segment, (first, end), instruction["origin"] + held[0].offset
                )

    def _add(self, rows: Span, columns: Span, lanes: Span, origin: int | None) -> None:
        if rows[0] < rows[1] and columns[0] < columns[1] and lanes[0] < lanes[1]:
            address = origin
            if origin is not None:
                address = origin + rows[0] * self._row_step + columns[0] * self._column_step
            self._copies.append(_Copy(rows, columns, lanes, address))

    def __call__(self, activations: np.ndarray, matrix: np.ndarray) -> None:
        """Fills ``matrix`` (batch, rows, columns, lanes) from ``activations`` (batch, bytes)."""
        size = activations.shape[1]
        for copy in self._copies:
            box = matrix[
                :, slice(*copy.rows), slice(*copy.columns), slice(copy.lanes[0], copy.lanes[1])
            ]
            if copy.address is None:
                box[...] = self._padding
                continue
            _, rows, columns, lanes = box.shape
            # rows may follow each other upwards
            span = (rows - 1) * abs(self._row_step) + (columns - 1) * self._column_step + lanes
            first = min(copy.address, copy.address + (rows - 1) * self._row_step)
            last = first + span
            if first < 0 or last > size:
                raise ValueError(
                    "addresses that CONVOLVE reads must be within the activation memory's"
                    f" 0..{size}, not {first}..{last}"
                )
            strides = (activations.strides[0], self._row_step, self._column_step, 1)
            box[...] = np.ndarray(box.shape, np.int8, activations, copy.address, strides)
