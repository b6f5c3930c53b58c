"""Defines the parts of a program: tensors with their places, images, steps, the mapping table."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import Space

from ..errors import ProgramError
from ..graph import Quantization, Tensor

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64", "bool")
LARGEST = 1 << 31
"""No count, address or size in a program reaches this."""


def require(condition: bool, message: str) -> None:
    """ProgramError with this message unless the condition holds."""
    if not condition:
        raise ProgramError(message)


@dataclass(frozen=True)
class Placement:
    """Describes where an activation lives on the device, in bytes of its activation memory.

    Element (y, x, c) is at ``address + y * row_pitch + x * pixel_pitch + c``; height x width x
    channels elements in that order are the tensor in NHWC order, whatever its shape is (a
    flattened tensor keeps the placement of the picture that it came from).
    """

    address: int
    row_pitch: int
    pixel_pitch: int
    height: int
    width: int
    channels: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(0 <= value < LARGEST, f"{name} must be within 0..2^31 - 1, not {value}")
        require(
            self.pixel_pitch >= self.channels and self.row_pitch >= self.width * self.pixel_pitch,
            f"pitches must hold {self.width} x {self.channels} bytes, not {self}",
        )

    @property
    def bytes(self) -> int:
        """Bytes from the first element's row to the last one's."""
        return self.height * self.row_pitch

    @property
    def end(self) -> int:
        """First address behind the tensor."""
        return self.address + self.bytes

    @property
    def reach(self) -> int:
        """First address behind its last element: of a box in a tensor, ``end`` may be too far."""
        rows, columns = self.height - 1, self.width - 1
        return self.address + rows * self.row_pitch + columns * self.pixel_pitch + self.channels


@dataclass(frozen=True)
class TensorDescription:
    """A tensor of a program: real = scale x (code - zero_point) where ``scale`` is not None; in one
    of logarithmic codes scale x what the code means (``kernels/log_codes.py``)."""

    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None
    placement: Placement | None = None

    def __post_init__(self) -> None:
        require(self.dtype in DTYPES, f"dtype must be one of {DTYPES}, not {self.dtype!r}")
        sizes_good = len(self.shape) <= 8 and all(0 <= size < LARGEST for size in self.shape)
        require(sizes_good, f"a shape must be up to 8 sizes under 2^31, not {self.shape}")
        if self.scale is not None:
            good = math.isfinite(self.scale) and self.scale > 0
            require(good, f"a scale must be positive, not {self.scale}")
        require((self.scale is None) == (self.zero_point is None), "a scale needs a zero point")
        place = self.placement
        if place is not None:
            held = place.height * place.width * place.channels
            require(self.dtype == "int8", f"a placed tensor must be int8, not {self.dtype}")
            require(
                held == math.prod(self.shape),
                f"a placement of {held} elements must hold the shape {self.shape}",
            )

    def as_tensor(self, name: str) -> Tensor:
        """The graph's form of this tensor, as host kernels take it."""
        quantization = None
        if self.scale is not None and self.zero_point is not None:
            scale = np.array([self.scale], np.float64)
            quantization = Quantization(scale, np.array([self.zero_point], np.int64))
        return Tensor(name, self.shape, self.dtype, quantization)


@dataclass(frozen=True)
class Image:
    """Bytes loaded once into a memory of the device; ``address`` in units of the space."""

    space: int
    address: int
    data: bytes

    def __post_init__(self) -> None:
        spaces = [int(space) for space in Space]
        require(self.space in spaces, f"an image's space must be one of {spaces}, not {self.space}")
        good = 0 <= self.address < LARGEST
        require(good, f"an image's address must be within 0..2^31 - 1, not {self.address}")


@dataclass(frozen=True)
class Part:
    """A box cut out of a tensor that does not lie on the device as a whole.

    Parameters
    ----------
    placement : Placement
        Where the box lies; its sizes are the box's.
    origin : (y, x, c)
        The box's first element in the tensor.
    whole : (height, width, channels)
        The tensor's sizes.
    """

    placement: Placement
    origin: tuple[int, int, int]
    whole: tuple[int, int, int]

    def __post_init__(self) -> None:
        place = self.placement
        sizes = place.height, place.width, place.channels
        inside = all(
            0 <= first and first + size <= limit
            for first, size, limit in zip(self.origin, sizes, self.whole, strict=True)
        )
        require(inside, f"a part {sizes} at {self.origin} must lie within {self.whole}")

    @property
    def box(self) -> tuple[slice, slice, slice, slice]:
        """Its indices in a batch of tensors as (batch, height, width, channels)."""
        place = self.placement
        y, x, c = (
            slice(first, first + size)
            for first, size in zip(
                self.origin, (place.height, place.width, place.channels), strict=True
            )
        )
        return slice(None), y, x, c


@dataclass(frozen=True)
class LoadStep:
    """Writes one of the program's ``loads`` to the device, unless it is there."""

    load: int


@dataclass(frozen=True)
class UploadStep:
    """Writes a tensor, or a part of it, to its placement on the device.

    ``image`` is which of a batch it is of.
    """

    tensor: str
    part: Part | None = None
    image: int = 0


Owners = tuple[tuple[int, int], ...]
"""Instructions of a stream in their order: (which of the program's layers, how many of its)."""


@dataclass(frozen=True)
class RunStep:
    """Starts all streams at these words of the instruction memory and waits for their ends.

    Parameters
    ----------
    pcs : tuple of int
        A word per stream, in the order of ``isa.STREAMS``.
    owners : tuple of Owners
        Per stream, whose instructions it holds, HALTs left out.
    clear_counters : bool
    overlapped : int
        How many of the steps that follow, all of them transfers, are done before its end is waited
        for: they touch nothing that it does.
    cycles : int
        Predicted; 0 if they are not known.
    """

    pcs: tuple[int, ...]
    owners: tuple[Owners, ...] = ((),) * len(STREAMS)
    clear_counters: bool = True
    overlapped: int = 0
    cycles: int = 0

    def __post_init__(self) -> None:
        require(0 <= self.cycles < LARGEST, f"a run's cycles must not be {self.cycles}")
        for name, values in (("pcs", self.pcs), ("owners", self.owners)):
            good = len(values) == len(STREAMS)
            require(good, f"a run's {name} must be {len(STREAMS)}, not {len(values)}")
        for layer, count in itertools.chain(*self.owners):
            good = layer >= 0 and 0 < count < LARGEST
            require(good, f"a run's instructions must be some of a layer, not {count} of {layer}")

    @property
    def instructions(self) -> tuple[int, ...]:
        """Instructions that each stream completes."""
        return tuple(sum(count for _, count in owned) for owned in self.owners)


@dataclass(frozen=True)
class DownloadStep:
    """Reads a tensor, or a part of it, from its placement on the device; ``image`` as above."""

    tensor: str
    part: Part | None = None
    image: int = 0


@dataclass(frozen=True)
class HostStep:
    """One node that the host runs: the graph's ``Node`` as data."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


Transfer = LoadStep | UploadStep | DownloadStep
Step = Transfer | RunStep | HostStep


@dataclass(frozen=True)
class LayerRecord:
    """A line of the mapping table.

    Parameters
    ----------
    name, operator : str
        The node's, as the model has them.
    where : str
        "device" or "host".
    why : str
        Why it runs there, or what it became.
    macs : int
        Multiply-accumulates of the network's layer, wherever it runs; padding included, idle lanes
        not.
    predicted_cycles : int
        From the completion of the layer before it to its own, in all runs.
    output : str
        The tensor it makes.
    """

    name: str
    operator: str
    where: str
    why: str
    macs: int
    predicted_cycles: int
    output: str

    def __post_init__(self) -> None:
        require(self.where in ("device", "host"), f"where must be device or host: {self.where!r}")
        for value in (self.macs, self.predicted_cycles):
            require(0 <= value < 1 << 62, f"a layer's counts must be within 0..2^62, not {value}")
