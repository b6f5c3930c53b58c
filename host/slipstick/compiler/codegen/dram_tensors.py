"""Describes how the tensors of a list for the DMA lie in DRAM."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...program import Program
from ...program.steps import DownloadStep, Part, Step, UploadStep


class NotForDramError(ValueError):
    """A program cannot be a list for the DMA; the message says why."""


@dataclass(frozen=True)
class DramTensor:
    """Describes where a tensor lies in DRAM: NHWC, each row from a word on.

    Parameters
    ----------
    place : int
        Its first word.
    height, width, channels : int
        Of an image.
    dense : bool
        A row's bytes lie side by side; otherwise each pixel begins with a word.
    """

    place: int
    height: int
    width: int
    channels: int
    dense: bool

    @property
    def pixel_words(self) -> int:
        """Counts the words of a pixel, unless the rows are dense."""
        return -(-self.channels // WORD_BYTES)

    @property
    def row_words(self) -> int:
        """Words from row to row."""
        if self.dense:
            return -(-self.width * self.channels // WORD_BYTES)
        return self.width * self.pixel_words

    @property
    def words(self) -> int:
        """Counts the words of an image; those of a batch lie one behind the other."""
        return self.height * self.row_words

    @property
    def contiguous(self) -> bool:
        """Nothing lies between its rows."""
        return self.dense and (self.height == 1 or self.width * self.channels % WORD_BYTES == 0)

    def pack(self, values: np.ndarray) -> bytes:
        """An int8 tensor as it lies in DRAM."""
        box = np.ascontiguousarray(values, np.int8).view(np.uint8)
        line = (self.height, -1) if self.dense else (self.height * self.width, -1)
        box = box.reshape(line)
        padded = np.zeros((len(box), -(-box.shape[1] // WORD_BYTES) * WORD_BYTES), np.uint8)
        padded[:, : box.shape[1]] = box
        return padded.tobytes()

    def unpack(self, packed: bytes) -> np.ndarray:
        """The int8 tensor, (height, width, channels), that lies so in DRAM."""
        count = self.height if self.dense else self.height * self.width
        length = self.width * self.channels if self.dense else self.channels
        lines = np.frombuffer(packed, np.uint8).reshape(count, -1)[:, :length]
        return lines.copy().view(np.int8).reshape(self.height, self.width, self.channels)

    def unpack_batch(self, packed: bytes) -> np.ndarray:
        """Images that lie one behind the other: int8, (batch, height, width, channels)."""
        size = self.words * WORD_BYTES
        parts = (packed[first : first + size] for first in range(0, len(packed), size))
        return np.stack([self.unpack(part) for part in parts])


Shape = tuple[int, int, int]
Layouts = dict[str, dict[Shape, DramTensor]]
"""Layouts of each tensor that is moved, one for each shape that a part takes it for."""


def make_layouts(program: Program, steps: Sequence[Step]) -> Layouts:
    """Describes how each tensor that is moved lies in DRAM; all from word 0 on.

    Raises
    ------
    NotForDramError
        If a tensor is moved in two shapes whose bytes differ.
    """
    parts, is_dense = dict[str, list[Part]](), dict[tuple[str, Shape], bool]()
    for step in steps:
        if isinstance(step, UploadStep | DownloadStep):
            part = part_of(program, step)
            parts.setdefault(step.tensor, []).append(part)
            key, stored = (step.tensor, part.whole), isinstance(step, DownloadStep)
            is_dense[key] = is_dense.get(key, True) and _is_dense(part, stored)
    layouts = Layouts()
    for name, some in parts.items():
        shapes = dict.fromkeys(part.whole for part in some)
        found = {}
        for shape in shapes:
            height, width, channels = shape
            dense = is_dense[name, shape] or channels % WORD_BYTES == 0
            found[shape] = DramTensor(0, height, width, channels, dense)
        # the same bytes in every shape
        if len(found) > 1 and not all(tensor.contiguous for tensor in found.values()):
            raise NotForDramError(f"the host must not reshape {name} between runs")
        layouts[name] = found
    return layouts


def _is_dense(part: Part, stored: bool) -> bool:
    """Rows of the part are runs that begin with a word; stored, they end with one."""
    _, width, channels = part.whole
    (_, x, _), place = part.origin, part.placement
    end = x + place.width
    return (
        place.channels == channels
        and (place.pixel_pitch == channels or place.width == 1)
        and x * channels % WORD_BYTES == 0
        and (not stored or end == width or end * channels % WORD_BYTES == 0)
    )


def part_of(program: Program, step: UploadStep | DownloadStep) -> Part:
    """Returns the part that a step moves: all of its tensor, if it does not say."""
    if step.part is not None:
        return step.part
    place = program.tensors[step.tensor].placement
    assert place is not None
    return Part(place, (0, 0, 0), (place.height, place.width, place.channels))
