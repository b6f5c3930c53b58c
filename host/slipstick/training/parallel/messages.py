"""A worker's result as bytes: gradients of 32, 8, 4, 2 or 1 bits per number, ranges, figures."""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..arithmetic import Gradient, StepResult
from ..trainer import Trainer
from .quantise import WIDTHS, Levels, pack, packed_size, unpack

WHOLE = 32
"""Bits of a number that is not compressed."""

_MAGIC = b"SG"
_VERSION = 1
_HEADER = struct.Struct("<2sBBIIId")
"""Magic, version, bits, checksum of the layout, images, right answers, loss."""
_EXPONENT = struct.Struct("<h")
_CHECKSUM = struct.Struct("<I")
"""At the end, of all before it."""
_MOST_IMAGES = 1 << 31


@dataclass(frozen=True)
class Tensor:
    """A layer's weights or biases in a message.

    Parameters
    ----------
    layer : str
    is_bias : bool
    shape : tuple of int
    """

    layer: str
    is_bias: bool
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Numbers."""
        return int(np.prod(self.shape, dtype=np.int64))

    def of(self, gradient: Gradient) -> tuple[np.ndarray, int]:
        """Its numbers in a layer's gradients, and their exponent."""
        if self.is_bias:
            return gradient.bias, gradient.bias_exponent
        return gradient.weights, gradient.weight_exponent


@dataclass(frozen=True)
class Layout:
    """Describes the numbers of a message and their order, which both of its sides know.

    Parameters
    ----------
    tensors : tuple of Tensor
    ranges : tuple of str
        Keys of ranges.
    """

    tensors: tuple[Tensor, ...]
    ranges: tuple[str, ...]

    @property
    def checksum(self) -> int:
        """Computes the checksum of all names and shapes, which messages contain."""
        return zlib.crc32(repr((self.tensors, self.ranges)).encode())

    @property
    def count(self) -> int:
        """Numbers of a message."""
        return sum(tensor.count for tensor in self.tensors)


def layout_of(trainer: Trainer) -> Layout:
    """The layout of a trainer's results: it looks at one blank image.

    Raises
    ------
    ValueError
        If gradients are no integers.
    """
    do, images = trainer.arithmetic, np.zeros((1, *trainer.network.shape), np.int8)
    kept, do.reports = do.reports, {}
    result = trainer.gradients(images, np.zeros(1, np.int64))
    do.reports = kept
    tensors = []
    for name in sorted(result.gradients):
        for is_bias in (False, True):
            tensor = Tensor(name, is_bias, ())
            numbers, _ = tensor.of(result.gradients[name])
            if numbers.dtype != np.int32:
                raise ValueError(f"gradients in messages must be int32, not {numbers.dtype}")
            tensors.append(Tensor(name, is_bias, numbers.shape))
    return Layout(tuple(tensors), tuple(sorted(result.ranges)))


def encode_result(
    result: StepResult, layout: Layout, levels: Mapping[Tensor, Levels] | None = None, bits: int = 8
) -> bytes:
    """A result as bytes.

    Parameters
    ----------
    result : StepResult
    layout : Layout
        Of the trainer that made it.
    levels : mapping of Levels, optional
        By tensor, instead of the gradients' own numbers.
    bits : int
        Of the levels; without them numbers have 32.
    """
    width = WHOLE if levels is None else bits
    header = _HEADER.pack(
        _MAGIC, _VERSION, width, layout.checksum, result.images, result.right, result.loss
    )
    parts = [header]
    for tensor in layout.tensors:
        numbers, exponent = tensor.of(result.gradients[tensor.layer])
        parts.append(_EXPONENT.pack(exponent))
        if levels is None:
            parts.append(numbers.astype("<i4").tobytes())
        else:
            parts.append(pack(levels[tensor], bits))
    parts.extend(_EXPONENT.pack(result.ranges[key]) for key in layout.ranges)
    whole = b"".join(parts)
    return whole + _CHECKSUM.pack(zlib.crc32(whole))


def message_size(layout: Layout, bits: int) -> int:
    """Bytes of a message."""
    numbers = sum(
        4 * tensor.count if bits == WHOLE else packed_size(tensor.count, bits)
        for tensor in layout.tensors
    )
    exponents = _EXPONENT.size * (len(layout.tensors) + len(layout.ranges))
    return _HEADER.size + numbers + exponents + _CHECKSUM.size


def decode_result(data: bytes, layout: Layout) -> StepResult:
    """The result of bytes: what compression has left of it.

    Raises
    ------
    InputError
        If they are no message of this layout.
    """
    bits, images, right, loss = _header(data, layout)
    if len(data) != message_size(layout, bits):
        raise InputError(
            f"a message of {bits} bits per number must have {message_size(layout, bits)} bytes,"
            f" not {len(data)}"
        )
    if zlib.crc32(data[: -_CHECKSUM.size]) != _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
        raise InputError("the message is damaged: its checksum is another one")
    place, found = _HEADER.size, {}
    for tensor in layout.tensors:
        (exponent,) = _EXPONENT.unpack_from(data, place)
        place += _EXPONENT.size
        size = 4 * tensor.count if bits == WHOLE else packed_size(tensor.count, bits)
        numbers = _numbers(data[place : place + size], tensor, bits)
        place += size
        found[tensor.layer, tensor.is_bias] = numbers.reshape(tensor.shape), exponent
    exponents = struct.unpack_from(f"<{len(layout.ranges)}h", data, place)
    gradients = {
        name: Gradient(weights, found[name, True][0], exponent, found[name, True][1])
        for (name, is_bias), (weights, exponent) in found.items()
        if not is_bias
    }
    ranges = dict(zip(layout.ranges, exponents, strict=True))
    return StepResult(gradients, ranges, loss, right, images)


def _header(data: bytes, layout: Layout) -> tuple[int, int, int, float]:
    """Bits, images, right answers and loss."""
    if len(data) < _HEADER.size:
        raise InputError(f"a message must have at least {_HEADER.size} bytes, not {len(data)}")
    magic, version, bits, checksum, images, right, loss = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise InputError(f"a message must begin with {_MAGIC!r} and {_VERSION}, not {data[:3]!r}")
    if bits not in (WHOLE, *WIDTHS):
        raise InputError(f"numbers of a message must have 32, 8, 4, 2 or 1 bits, not {bits}")
    if checksum != layout.checksum:
        raise InputError("the message is of another network, or of other layers of it")
    if not 0 <= right <= images < _MOST_IMAGES:
        raise InputError(f"right answers must be 0 to {images}, the images, not {right}")
    if not np.isfinite(loss):
        raise InputError(f"the loss must be a number, not {loss}")
    return bits, images, right, loss


def _numbers(data: bytes, tensor: Tensor, bits: int) -> np.ndarray:
    if bits == WHOLE:
        return np.frombuffer(data, "<i4").astype(np.int32)
    return unpack(data, tensor.count, bits).values().astype(np.int32)
