"""The compiled network: what a session loads on a device, and how each inference goes."""

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from .errors import ProgramError
from .graph import Quantization, Tensor

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64", "bool")
LARGEST = 1 << 31
"""No count, address or size in a program reaches this."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ProgramError(message)


@dataclass(frozen=True)
class Placement:
    """Where an activation lives on the device, in bytes of its activation memory.

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
            _require(0 <= value < LARGEST, f"{name} must be within 0..2^31 - 1, not {value}")
        _require(
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


@dataclass(frozen=True)
class TensorDescription:
    """A tensor of a program: real = scale x (code - zero_point) where ``scale`` is not None."""

    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None
    placement: Placement | None = None

    def __post_init__(self) -> None:
        _require(self.dtype in DTYPES, f"dtype must be one of {DTYPES}, not {self.dtype!r}")
        sizes_good = len(self.shape) <= 8 and all(0 <= size < LARGEST for size in self.shape)
        _require(sizes_good, f"a shape must be up to 8 sizes under 2^31, not {self.shape}")
        if self.scale is not None:
            good = math.isfinite(self.scale) and self.scale > 0
            _require(good, f"a scale must be positive, not {self.scale}")
        _require((self.scale is None) == (self.zero_point is None), "a scale needs a zero point")
        place = self.placement
        if place is not None:
            held = place.height * place.width * place.channels
            _require(self.dtype == "int8", f"a placed tensor must be int8, not {self.dtype}")
            _require(
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
        _require(
            self.space in spaces, f"an image's space must be one of {spaces}, not {self.space}"
        )
        good = 0 <= self.address < LARGEST
        _require(good, f"an image's address must be within 0..2^31 - 1, not {self.address}")


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
        _require(inside, f"a part {sizes} at {self.origin} must lie within {self.whole}")

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
    """Writes a tensor, or a part of it, to its placement on the device."""

    tensor: str
    part: Part | None = None


Owners = tuple[tuple[int, int], ...]
"""Instructions of a stream in their order: (which of the program's layers, how many of its)."""


@dataclass(frozen=True)
class RunStep:
    """Starts both streams at these words of the instruction memory and waits for their ends.

    Parameters
    ----------
    matrix_pc, post_pc : int
    matrix_layers, post_layers : Owners
        Whose instructions the streams hold, HALTs left out.
    clear_counters : bool
    overlapped : int
        How many of the steps that follow, all of them transfers, are done before its end is waited
        for: they touch nothing that it does.
    """

    matrix_pc: int
    post_pc: int
    matrix_layers: Owners = ()
    post_layers: Owners = ()
    clear_counters: bool = True
    overlapped: int = 0

    def __post_init__(self) -> None:
        for layer, count in (*self.matrix_layers, *self.post_layers):
            good = layer >= 0 and 0 < count < LARGEST
            _require(good, f"a run's instructions must be some of a layer, not {count} of {layer}")

    @property
    def instructions(self) -> tuple[int, int]:
        """How many each stream completes, matrix and post."""
        matrix, post = (
            sum(count for _, count in owners) for owners in (self.matrix_layers, self.post_layers)
        )
        return matrix, post


@dataclass(frozen=True)
class DownloadStep:
    """Reads a tensor, or a part of it, from its placement on the device."""

    tensor: str
    part: Part | None = None


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
        Multiply-accumulates of the network's layer, padding included, idle lanes not.
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
        _require(self.where in ("device", "host"), f"where must be device or host: {self.where!r}")
        for value in (self.macs, self.predicted_cycles):
            _require(0 <= value < 1 << 62, f"a layer's counts must be within 0..2^62, not {value}")


@dataclass(frozen=True)
class Traffic:
    """Bytes that cross the link in one inference.

    Parameters
    ----------
    loaded : int
        Weights, parameters and instructions.
    uploaded, downloaded : int
        Activations.
    """

    loaded: int
    uploaded: int
    downloaded: int


@dataclass(frozen=True)
class Program:
    """A compiled network.

    Parameters
    ----------
    name : str
    semantics : str
        The reference whose rounding the integers follow: "tflm" or "onnx".
    configuration : mapping
        ``Configuration.to_dict()`` of the hardware that it was compiled for.
    fingerprint : str
        That configuration's fingerprint.
    tensors : mapping of TensorDescription by name
    inputs, outputs : tuple of str
    images : tuple of Image
        Loaded once.
    loads : tuple of Image
        What does not fit at once, and is loaded during an inference.
    steps : tuple of Step
        Every inference, in order.
    units : tuple of tuple of Step
        Where there are ``loads``: the same for many images, each unit for all of them before the
        next one, so that loads are shared.
    constants : mapping of Tensor by name
        What host steps read besides activations.
    layers : tuple of LayerRecord
        The mapping table.

    Raises
    ------
    ProgramError
        If a part refers to something that is not there, or does not fit the configuration.
    """

    name: str
    semantics: str
    configuration: Mapping[str, Any]
    fingerprint: str
    tensors: Mapping[str, TensorDescription]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    images: tuple[Image, ...]
    loads: tuple[Image, ...]
    steps: tuple[Step, ...]
    units: tuple[tuple[Step, ...], ...]
    constants: Mapping[str, Tensor]
    layers: tuple[LayerRecord, ...]

    def __post_init__(self) -> None:
        try:
            configuration = Configuration.from_dict(dict(self.configuration))
        except (TypeError, ValueError) as error:
            raise ProgramError(f"program {self.name!r}: {error}") from None
        _require(
            configuration.fingerprint == self.fingerprint,
            f"program {self.name!r}: its fingerprint {self.fingerprint} is not that of its"
            f" configuration, {configuration.fingerprint}; it was compiled for other hardware or"
            " by another version: compile it again",
        )
        _require(
            self.semantics in ("tflm", "onnx"),
            f"semantics must be tflm or onnx, not {self.semantics!r}",
        )
        self._check_names()
        self._check_steps()
        self._check_memories(configuration)

    def _check_steps(self) -> None:
        for steps in (self.steps, *self.units):
            for number, step in enumerate(steps):
                self._check_step(step)
                if isinstance(step, RunStep):
                    behind = steps[number + 1 : number + 1 + max(step.overlapped, 0)]
                    _require(
                        len(behind) == step.overlapped
                        and all(isinstance(other, Transfer) for other in behind),
                        f"program {self.name!r}: {step.overlapped} transfers must follow a run",
                    )

    def _check_step(self, step: Step) -> None:
        if isinstance(step, LoadStep):
            _require(
                0 <= step.load < len(self.loads),
                f"program {self.name!r}: a load must be one of {len(self.loads)}, not {step.load}",
            )
        elif isinstance(step, UploadStep | DownloadStep) and step.part is not None:
            described = self.tensors.get(step.tensor)
            _require(
                described is not None
                and described.dtype == "int8"
                and math.prod(described.shape) == math.prod(step.part.whole),
                f"program {self.name!r}: {step.part} must be of {step.tensor!r}'s size",
            )

    @property
    def _all_steps(self) -> Iterator[Step]:
        return itertools.chain(self.steps, *self.units)

    def _check_names(self) -> None:
        known = set(self.tensors) | set(self.constants) | {""}
        used = [*self.inputs, *self.outputs, *(layer.output for layer in self.layers)]
        for step in self._all_steps:
            if isinstance(step, HostStep):
                used += [*step.inputs, *step.outputs]
            elif isinstance(step, RunStep):
                owners = [layer for layer, _ in (*step.matrix_layers, *step.post_layers)]
                _require(
                    max(owners, default=-1) < len(self.layers),
                    f"program {self.name!r}: a run works on layer {max(owners, default=-1)} of"
                    f" {len(self.layers)}",
                )
            elif isinstance(step, UploadStep | DownloadStep):
                described = self.tensors.get(step.tensor)
                placed = described is not None and described.placement is not None
                placed = placed or step.part is not None
                _require(placed, f"program {self.name!r}: tensor {step.tensor!r} has no placement")
        for name in used:
            _require(name in known, f"program {self.name!r}: tensor {name!r} is not described")

    def _check_memories(self, configuration: Configuration) -> None:
        units = space_units(configuration)
        for image in (*self.images, *self.loads):
            unit, depth = units[Space(image.space)]
            end = image.address * unit + len(image.data)
            _require(
                len(image.data) % unit == 0 and end <= unit * depth,
                f"program {self.name!r}: an image of {len(image.data)} bytes at {image.address}"
                f" must be whole units of {unit} bytes within {depth} of {Space(image.space).name}",
            )
        places = [(name, tensor.placement) for name, tensor in self.tensors.items()]
        for step in self._all_steps:
            if isinstance(step, UploadStep | DownloadStep) and step.part is not None:
                places.append((step.tensor, step.part.placement))
        for name, place in places:
            end = 0 if place is None else place.end
            _require(
                end <= configuration.activation_bytes,
                f"program {self.name!r}: tensor {name!r} ends at {end}, the activation memory at"
                f" {configuration.activation_bytes}",
            )
        for step in self._all_steps:
            if isinstance(step, RunStep):
                for pc in (step.matrix_pc, step.post_pc):
                    _require(
                        0 <= pc < configuration.instruction_words,
                        f"program {self.name!r}: a stream starts at word {pc}, the instruction"
                        f" memory has {configuration.instruction_words}",
                    )

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(layer.macs for layer in self.layers)

    @property
    def predicted_cycles(self) -> int:
        """Cycles of one inference on the device, without transfers and host layers."""
        return sum(layer.predicted_cycles for layer in self.layers)

    @property
    def is_streamed(self) -> bool:
        """It does not fit: activations travel in parts, and what is loaded may have to be again."""
        return bool(self.units)

    def transferred(self) -> "Traffic":
        """Bytes that cross the link in one inference, beyond what stays on the device."""
        loaded = up = down = 0
        for step in self.steps:
            if isinstance(step, LoadStep):
                loaded += len(self.loads[step.load].data)
            elif isinstance(step, UploadStep | DownloadStep):
                size = math.prod(self.tensors[step.tensor].shape)
                if step.part is not None:
                    place = step.part.placement
                    size = place.height * place.width * place.channels
                up += size * isinstance(step, UploadStep)
                down += size * isinstance(step, DownloadStep)
        return Traffic(loaded, up, down)

    @property
    def hardware(self) -> Configuration:
        """The configuration as an object."""
        return Configuration.from_dict(dict(self.configuration))

    def check(self, configuration: Configuration) -> None:
        """ProgramError, naming both fingerprints, unless it was compiled for this hardware."""
        if configuration.fingerprint != self.fingerprint:
            raise ProgramError(
                f"program {self.name!r} was compiled for hardware {self.fingerprint}"
                f" ({self.hardware.shape}), the device is {configuration.fingerprint}"
                f" ({configuration.shape}): compile it for this target"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program as one ``.slip`` file; ProgramError if that cannot be done."""
        from .program_file import encode, write_file

        write_file(path, encode(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Program":
        """Reads a ``.slip`` file.

        Raises
        ------
        ProgramError
            If it cannot be read, or is not a whole, consistent program of this version.
        """
        from .program_file import decode, read_file

        return decode(read_file(path))


def space_units(configuration: Configuration) -> dict[Space, tuple[int, int]]:
    """Bytes a unit and units of each memory space."""
    return {
        Space.INSTRUCTIONS: (4, configuration.instruction_words),
        Space.WEIGHTS: (configuration.columns, configuration.weight_words),
        Space.PARAMETERS: (configuration.parameter_bytes, configuration.parameter_words),
        Space.ACTIVATIONS: (1, configuration.activation_bytes),
    }
