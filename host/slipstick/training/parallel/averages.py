"""Means of models, in integers: one rounding, and the models' order does not matter."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..trainer import Trainer
from .jobs import Snapshot, take_snapshot

_MEAN = ("masters", "bias", "velocity", "bias_velocity")
"""Arrays of a layer that are averaged."""
_FIXED = "exponent"


def mean_half_even(total: np.ndarray, count: int) -> np.ndarray:
    """Sums divided by a count, to nearest, ties to even; int64."""
    whole, rest = np.divmod(total, count)
    twice = 2 * rest
    return whole + ((twice > count) | ((twice == count) & (whole & 1 == 1)))


def mean_snapshot(snapshots: Sequence[Snapshot]) -> dict[str, np.ndarray]:
    """The mean of models: each number rounded once; ranges are the largest ones.

    Raises
    ------
    ValueError
        If they are no models of :class:`Int8Arithmetic`, or of different networks.
    """
    first = snapshots[0]
    _check_integers(first)
    found: dict[str, np.ndarray] = {}
    for name, array in first.items():
        if name.startswith("ranges/"):
            continue
        others = [snapshot[name] for snapshot in snapshots]
        if name.endswith(f"/{_FIXED}"):
            if any((other != array).any() for other in others):
                raise ValueError(f"models must have equal exponents: {name}")
            found[name] = array
            continue
        total = np.sum([other.astype(np.int64) for other in others], axis=0)
        found[name] = mean_half_even(total, len(snapshots)).astype(array.dtype)
    largest: dict[str, int] = {}
    for snapshot in snapshots:
        pairs = zip(
            snapshot["ranges/names"].tolist(), snapshot["ranges/exponents"].tolist(), strict=True
        )
        for key, exponent in pairs:
            largest[key] = max(exponent, largest.get(key, exponent))
    found["ranges/names"] = np.array(list(largest), np.str_)
    found["ranges/exponents"] = np.array(list(largest.values()), np.int32)
    return found


def _check_integers(snapshot: Snapshot) -> None:
    for name, array in snapshot.items():
        kind = name.rpartition("/")[2]
        if name.startswith("ranges/") or kind == _FIXED:
            continue
        if kind not in _MEAN or array.dtype.kind != "i":
            raise ValueError(f"models must be of linear integers to be averaged: {name}")


class PolyakAverage:
    """The mean of a model over steps, for evaluation (B. Polyak and A. Juditsky, "Acceleration of
    stochastic approximation by averaging", 1992).

    Members
    -------
    count : int
        Models that were added.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, np.ndarray] = {}
        self._last: dict[str, np.ndarray] = {}

    def add(self, trainer: Trainer) -> None:
        """Adds a trainer's model as it is now."""
        snapshot = take_snapshot(trainer)
        _check_integers(snapshot)
        for name, array in snapshot.items():
            if name.rpartition("/")[2] in _MEAN and not name.startswith("ranges/"):
                known = self._sums.get(name)
                wide = array.astype(np.int64)
                self._sums[name] = wide if known is None else known + wide
        self._last, self.count = snapshot, self.count + 1

    def snapshot(self) -> dict[str, np.ndarray]:
        """The mean, with the last model's ranges; ValueError if there is none."""
        if not self.count:
            raise ValueError("a mean must be of at least one model, not 0")
        means = {
            name: mean_half_even(total, self.count).astype(self._last[name].dtype)
            for name, total in self._sums.items()
        }
        return {**self._last, **means}

    def evaluate(
        self, trainer: Trainer, images: np.ndarray, labels: np.ndarray
    ) -> tuple[float, float]:
        """``Trainer.evaluate`` of the mean; the trainer keeps its own model."""
        own = take_snapshot(trainer)
        Trainer.restore(trainer, self.snapshot())
        try:
            return Trainer.evaluate(trainer, images, labels)
        finally:
            Trainer.restore(trainer, own)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays that a checkpoint needs."""
        found = {f"polyak/sum/{name}": total for name, total in self._sums.items()}
        found.update({f"polyak/last/{name}": array for name, array in self._last.items()})
        return {**found, "polyak/count": np.array(self.count)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave; KeyError if something is missing."""
        self.count = int(arrays["polyak/count"])
        self._sums, self._last = (
            {name.removeprefix(start): array for name, array in arrays.items() if _is(name, start)}
            for start in ("polyak/sum/", "polyak/last/")
        )


def _is(name: str, start: str) -> bool:
    return name.startswith(start)
