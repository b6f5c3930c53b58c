"""Compresses workers' results, and keeps what each has not sent yet (error feedback)."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...errors import InputError
from ..arithmetic import StepResult
from .counter import seed_of
from .messages import WHOLE, Layout, encode_result
from .quantise import check_bits, quantise, saturated

_FAR = 62
_PREFIX = "unsent"

Unsent = Mapping[int, tuple[np.ndarray, int]]
"""Numbers that a part has not sent yet, by the tensor's number in the layout.

They are integers, in the smallest type that holds them, and the exponent of their unit.
"""


class Kept(Protocol):
    """Stands for the unsent numbers of a part that a worker keeps."""

    def fetch(self) -> "Future[Unsent]":
        """Brings it to the host."""
        ...


@dataclass(frozen=True)
class Coding:
    """Makes messages of results: a pure function, whoever computes it.

    What a message leaves out of a part's gradients is added to the part's next ones, exactly: the
    rest is kept in integers, in units of the gradient that it was left out of, and rounded only
    where those units become larger.

    Parameters
    ----------
    layout : Layout
    bits : int
        Per number: 32 (nothing is left out), 8, 4, 2 or 1.
    feedback : bool
        Whether what is left out is sent later; with one bit it must be.
    seed : int
        Of the rounding.

    Raises
    ------
    ValueError
        If the bits are others, or one bit has no feedback.
    """

    layout: Layout
    bits: int
    feedback: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.bits != WHOLE:
            check_bits(self.bits)
        if self.bits == 1 and not self.feedback:
            raise ValueError("one bit per number must have error feedback")

    def encode(
        self, part: int, step: int, result: StepResult, unsent: Unsent
    ) -> tuple[bytes, dict[int, tuple[np.ndarray, int]]]:
        """The message of a part's result in a step, and what the part has not sent after it.

        Parameters
        ----------
        part, step : int
        result : StepResult
        unsent : Unsent
            Before this step.
        """
        left: dict[int, tuple[np.ndarray, int]] = {}
        if self.bits == WHOLE:
            return encode_result(result, self.layout), left
        levels = {}
        for number, tensor in enumerate(self.layout.tensors):
            values, exponent = tensor.of(result.gradients[tensor.layer])
            wanted = values.reshape(-1).astype(np.int64)
            if number in unsent:
                rest, unit = unsent[number]
                wanted = saturated(wanted + rescaled(rest.astype(np.int64), unit, exponent))
            seed = seed_of(self.seed, step, part, number)
            levels[tensor] = quantise(wanted, self.bits, seed)
            if self.feedback:
                left[number] = _narrow(wanted - levels[tensor].values()), exponent
        return encode_result(result, self.layout, levels, self.bits), left


def _narrow(values: np.ndarray) -> np.ndarray:
    """Integers in the smallest type of 16, 32 or 64 bits that holds them."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in (np.int16, np.int32):
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return values.astype(kind)
    return values


class Compression:
    """Keeps, for each part, what its messages have left out.

    It belongs to the part and not to the worker, so whoever computes a part sends the same bytes.

    Parameters
    ----------
    coding : Coding

    Members
    -------
    sent : int
        Bytes of all messages.
    messages : int
    """

    def __init__(self, coding: Coding) -> None:
        self.coding, self.sent, self.messages = coding, 0, 0
        self._unsent: dict[int, Unsent | Kept] = {}

    def unsent(self, part: int) -> Unsent | Kept:
        """Returns a part's unsent numbers: from the host, or as the worker's ``Kept``."""
        return self._unsent.get(part, {})

    def note(self, part: int, message: bytes, unsent: Unsent | Kept) -> None:
        """A part has sent a message, and has this left; a part's steps come in order."""
        if self.coding.feedback:
            self._unsent[part] = unsent
        self.sent += len(message)
        self.messages += 1

    def compress(self, part: int, step: int, result: StepResult) -> bytes:
        """The message of a part's result in a step, made here; each pair is given once."""
        before = self._home().get(part, {})
        message, left = self.coding.encode(part, step, result, before)
        self.note(part, message, left)
        return message

    def fetch(self) -> None:
        """Brings to the host what workers keep."""
        coming = {
            part: unsent.fetch()
            for part, unsent in self._unsent.items()
            if not isinstance(unsent, Mapping)
        }
        self._unsent.update({part: future.result() for part, future in coming.items()})

    def _home(self) -> dict[int, Unsent]:
        self.fetch()
        return {
            part: unsent for part, unsent in self._unsent.items() if isinstance(unsent, Mapping)
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays that a checkpoint needs; what workers keep is fetched."""
        return {
            f"{_PREFIX}/{part}/{number}/{exponent}": left.astype(np.int64)
            for part, unsent in self._home().items()
            for number, (left, exponent) in unsent.items()
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave.

        Raises
        ------
        InputError
            If it is of another network.
        """
        found: dict[int, dict[int, tuple[np.ndarray, int]]] = {}
        for name, left in arrays.items():
            if not name.startswith(f"{_PREFIX}/"):
                continue
            try:
                part, number, exponent = map(int, name.split("/")[1:])
                tensor = self.coding.layout.tensors[number]
            except (ValueError, IndexError):
                raise InputError(f"checkpoint: {name!r} is of another network") from None
            if left.shape != (tensor.count,):
                raise InputError(f"checkpoint: {name!r} must be {tensor.count} numbers")
            found.setdefault(part, {})[number] = _narrow(left.astype(np.int64)), exponent
        self._unsent = dict(found)


def rescaled(values: np.ndarray, exponent: int, target: int) -> np.ndarray:
    """Numbers of one exponent as those of another, to nearest even or saturated; int64.

    Parameters
    ----------
    values : array of int64, within 33 bits
    exponent, target : int
    """
    shift = target - exponent
    if shift <= 0:
        near = np.clip(values, -(1 << 31), 1 << 31)
        return saturated(near << np.int64(min(-shift, 31)))
    if shift > _FAR:
        return np.zeros_like(values)
    low = values & np.int64((1 << shift) - 1)
    half = np.int64(1 << (shift - 1))
    whole = values >> np.int64(shift)
    return whole + ((low > half) | ((low == half) & (whole & 1 == 1)))
