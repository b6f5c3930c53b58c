"""Keeps what a recorded step left: where its tensors lie, its works, and what is read back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...compiler.codegen.dram_tensors import DramTensor
from ...errors import UnsupportedError
from ..int8 import Codes
from .gradient_lists import GradientWork
from .gradient_results import Masters
from .gradients import GradientProgram
from .places import Arena
from .works import Work


class UnknownRangeError(LookupError):
    """A range of the step before is not known: the step cannot be written before it begins."""


class HostUpdateError(ValueError):
    """The device cannot update the weights of a layer; the host can."""


@dataclass(frozen=True)
class DramCodes(Codes):
    """A tensor that will be in DRAM: its codes here are zeros that take no room.

    Parameters
    ----------
    tensor : DramTensor
    positive : bool
        A ReLU is behind it.
    mask : DramTensor, optional
        It is 0 where this is not above 0.
    pending : bool
        The mask is still to be applied.
    """

    tensor: DramTensor
    positive: bool = False
    mask: DramTensor | None = None
    pending: bool = False


@dataclass(frozen=True)
class Note:
    """The place of the largest magnitude of a tensor's sums.

    Parameters
    ----------
    key : str
        Of the range.
    exponent : int
        Of the sums.
    place : int
        The byte behind the answers' first one, for ``NOTE_BYTES`` bytes per lane.
    pitch : int
        Bytes from an image's to the next one's.
    """

    key: str
    exponent: int
    place: int
    pitch: int


@dataclass(frozen=True)
class RecordedGradient:
    """The place of a layer's gradients.

    Parameters
    ----------
    program : GradientProgram
    place : int
        A word of DRAM.
    weight_exponent, bias_exponent : int
    masters : Masters, optional
        The device updates the weights: only the gradient of the bias will be there.
    """

    program: GradientProgram
    place: int
    weight_exponent: int
    bias_exponent: int
    masters: Masters | None = None


@dataclass
class Pass:
    """The works of a list, and what the host reads behind it.

    Parameters
    ----------
    answers : Arena
        All of it is read.
    works : list of Work
        For each image.
    gradients : list of GradientWork
        Behind them, for the batch.
    exponents : dict of int
        Of sums that are noted, by their works' names.
    """

    answers: Arena
    works: list[Work] = field(default_factory=list)
    gradients: list[GradientWork] = field(default_factory=list)
    exponents: dict[str, int] = field(default_factory=dict)

    def is_like(self, other: "Pass") -> bool:
        """Returns whether the works have the same tensors, and gradients the same places."""
        return (
            self.answers.first == other.answers.first
            and [each.tensors for each in self.works] == [each.tensors for each in other.works]
            and [each.places for each in self.gradients] == [e.places for e in other.gradients]
        )


def recorded(codes: Codes) -> DramCodes:
    """The same, of a step from DRAM; TypeError for other tensors."""
    if not isinstance(codes, DramCodes):
        raise TypeError(f"a step from DRAM must have tensors in DRAM, not {codes!r}")
    return codes


def recorded_tensor(codes: Codes) -> DramTensor:
    """Returns where it lies; TypeError for other tensors."""
    return recorded(codes).tensor


def shape_of(tensor: DramTensor) -> tuple[int, int, int]:
    """Height, width and channels."""
    return tensor.height, tensor.width, tensor.channels


def both(name: str, errors: Sequence[Codes]) -> tuple[Codes, Codes]:
    """The two errors that meet at a tensor; UnsupportedError if there are more."""
    if len(errors) != 2:
        raise UnsupportedError(
            f"tensor {name!r}: a network that is trained from DRAM must read each tensor at"
            f" most twice, not {len(errors)} times"
        )
    return errors[0], errors[1]


def common_mask(a: Codes, b: Codes) -> DramTensor | None:
    """A mask that waits at one of two tensors, and is behind the other one too."""
    first, second = recorded(a), recorded(b)
    if (first.pending or second.pending) and first.mask == second.mask:
        return first.mask
    return None


def reshaped(source: DramTensor, shape: tuple[int, ...]) -> DramTensor:
    """The same bytes of DRAM as a tensor of another shape.

    Raises
    ------
    UnsupportedError
        If pixels of one of the two are filled up with bytes of no use.
    """
    height, width, channels = shape[-3:]
    whole = channels % WORD_BYTES == 0 and source.channels % WORD_BYTES == 0
    if not whole and (source.height, source.width) != (height, width):
        raise UnsupportedError(
            "a tensor that is flattened in DRAM must have channels in multiples of"
            f" {WORD_BYTES}, not {source.channels} and {channels}"
        )
    return DramTensor(source.place, height, width, channels, source.dense)


def nothing_in(tensor: DramTensor, batch: int) -> np.ndarray:
    """Zeros in the place of a batch's codes."""
    return np.broadcast_to(np.int8(0), (batch, *shape_of(tensor)))
