"""Keeps what a recorded step left: where its tensors lie, its tasks, and what is read back."""

from dataclasses import dataclass, field

import numpy as np

from ...compiler.codegen.dram_tensors import DramTensor
from ...errors import UnsupportedError
from ..int8 import Codes
from ..network import Layer
from .gradients import GradientProgram
from .places import Arena
from .tasks import Task

NOTE_BYTES = 4
"""Of a lane."""


class UnknownRangeError(LookupError):
    """A range of the step before is not known: the step cannot be written before it begins."""


@dataclass(frozen=True)
class DramCodes(Codes):
    """A tensor that will be in DRAM: its codes here are zeros that take no room.

    Parameters
    ----------
    tensor : DramTensor
    positive : bool
        A ReLU is behind it.
    """

    tensor: DramTensor
    positive: bool = False


@dataclass(frozen=True)
class Note:
    """Where the largest magnitude of a tensor's sums will be.

    Parameters
    ----------
    key : str
        Of the range.
    exponent : int
        Of the sums.
    place : int
        A word of DRAM, for four bytes per lane.
    """

    key: str
    exponent: int
    place: int


@dataclass(frozen=True)
class RecordedGradient:
    """Where a layer's gradients will be.

    Parameters
    ----------
    program : GradientProgram
    place : int
        A word of DRAM.
    weight_exponent, bias_exponent : int
    """

    program: GradientProgram
    place: int
    weight_exponent: int
    bias_exponent: int


@dataclass
class Pass:
    """A list's tasks, and what the host reads behind it.

    Parameters
    ----------
    answers : Arena
        All of it is read.
    """

    answers: Arena
    tasks: list[Task] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def recorded(codes: Codes) -> DramCodes:
    """The same, of a step from DRAM; TypeError for other tensors."""
    if not isinstance(codes, DramCodes):
        raise TypeError(f"a step from DRAM must have tensors in DRAM, not {codes!r}")
    return codes


def recorded_tensor(codes: Codes) -> DramTensor:
    """Where it lies; TypeError for other tensors."""
    return recorded(codes).tensor


def shape_of(tensor: DramTensor) -> tuple[int, int, int]:
    """Height, width and channels."""
    return tensor.height, tensor.width, tensor.channels


def nothing_in(tensor: DramTensor, batch: int) -> np.ndarray:
    """Zeros in the place of a batch's codes."""
    return np.broadcast_to(np.int8(0), (batch, *shape_of(tensor)))


def refusal(layer: Layer) -> UnsupportedError:
    """The error of a layer that has no program."""
    return UnsupportedError(
        f"layer {layer.name!r}: a network that is trained from DRAM must have no {layer.kind} yet"
    )
