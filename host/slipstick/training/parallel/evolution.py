"""Evolution strategies: for boards that only infer. A seed and a fitness travel, nothing else.

After T. Salimans et al., "Evolution strategies as a scalable alternative to reinforcement
learning", 2017: mirrored sampling, ranks instead of fitnesses; here in integers, with momentum.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ..golden import golden
from ..trainer import Trainer
from .counter import SEEDS, counter_bits, seed_of
from .jobs import Snapshot, take_snapshot

CANDIDATE_BYTES = 12
"""A seed of 8, a fitness of 4."""

_CANDIDATE = struct.Struct("<Qi")
_LARGEST = (1 << 31) - 1
_BIAS_PLACES = 8
"""A bias has so many more binary places than a master weight."""
_UPDATE_BITS = 16
_MOST_SHIFT = 31


@dataclass(frozen=True, kw_only=True)
class EvolutionRecipe:
    """Describes how candidates are made, and how the model learns from them.

    Parameters
    ----------
    pairs : int
        Of mirrored candidates in a generation.
    noise_shift : int
        Master weights of a candidate differ by 148 x 2^noise_shift, the standard deviation.
    rates : tuple of (int, int)
        From which generation on masters move by the sum of ranks x noise, x 2^-shift; the first
        from 0.
    momentum : int
        A velocity loses 2^-momentum of itself per generation; 0: there is none.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    pairs: int
    noise_shift: int
    rates: tuple[tuple[int, int], ...]
    momentum: int = 3

    def __post_init__(self) -> None:
        for name, least, most in (
            ("pairs", 1, 4096),
            ("noise_shift", 0, 6),
            ("momentum", 0, 15),
        ):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be {least} to {most}, not {getattr(self, name)}")
        starts = [start for start, _ in self.rates]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError(f"rates must begin at generation 0 and rise, not {starts}")
        for _, shift in self.rates:
            if not 0 <= shift <= _MOST_SHIFT:
                raise ValueError(f"shifts of rates must be 0 to {_MOST_SHIFT}, not {shift}")

    def shift(self, generation: int) -> int:
        """Returns the shift of a generation's rate, 2^-shift."""
        return [shift for start, shift in self.rates if start <= generation][-1]


def perturbation(seed: int, count: int) -> np.ndarray:
    """Whole numbers of mean 0, about normal: sums of four bytes of the seed's bits, less 510.

    Parameters
    ----------
    seed : int
        Its lowest bit is not looked at: it is the sign of a candidate.
    count : int

    Returns
    -------
    array of int64, (count,), -510..510
    """
    bits = counter_bits(seed & ~1, -(-count // 2)).astype("<u8")
    quads = bits.view(np.uint8).reshape(-1, 4)
    return quads.sum(axis=1, dtype=np.int64)[:count] - 510


class Genome:
    """A network's numbers in one row: all masters and biases of the layers that learn.

    Parameters
    ----------
    trainer : Trainer
        Of an :class:`Int8Arithmetic` with master weights of 16 bits.
    """

    def __init__(self, trainer: Trainer) -> None:
        snapshot = take_snapshot(trainer)
        self._places: dict[str, tuple[slice, tuple[int, ...]]] = {}
        self.count, biases = 0, []
        for name in sorted(trainer.learning):
            for kind in ("masters", "bias"):
                shape = snapshot[f"{name}/{kind}"].shape
                size = int(np.prod(shape, dtype=np.int64))
                place = slice(self.count, self.count + size)
                self._places[f"{name}/{kind}"] = place, shape
                self.count += size
                if kind == "bias":
                    biases.append(place)
        self.scales = np.zeros(self.count, np.int64)
        """Binary places that noise is moved left by."""
        self.largest = np.full(self.count, golden().LARGEST_MASTER, np.int64)
        for place in biases:
            self.scales[place], self.largest[place] = _BIAS_PLACES, _LARGEST

    def read(self, snapshot: Snapshot) -> np.ndarray:
        """The row of a model, int64."""
        return np.concatenate(
            [snapshot[name].reshape(-1).astype(np.int64) for name in self._places]
        )

    def write(self, row: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of a row; of several rows, with them in the leading axis."""
        before = row.shape[:-1]
        return {
            name: row[..., place].reshape(*before, *shape).astype(np.int32)
            for name, (place, shape) in self._places.items()
        }


Evaluate = Callable[[Sequence[int]], Sequence[int]]
"""Given candidates' seeds, gives their fitnesses: all on the same images."""


class EvolutionStrategy:
    """A population around a model.

    Whoever has the model and the messages of a generation has the next model: hosts and boards need
    exchange nothing else.

    Parameters
    ----------
    trainer : Trainer
        Whose model is changed; of an :class:`Int8Arithmetic` with master weights of 16 bits.
    recipe : EvolutionRecipe
    seed : int

    Members
    -------
    generation : int
    sent : int
        Bytes of all candidates' messages.
    """

    def __init__(self, trainer: Trainer, recipe: EvolutionRecipe, seed: int) -> None:
        self.generation, self.sent = 0, 0
        self.genome = Genome(trainer)
        self._trainer, self._recipe, self._seed = trainer, recipe, seed
        self._row = self.genome.read(take_snapshot(trainer))
        self._velocity = np.zeros_like(self._row)

    def seeds(self) -> list[int]:
        """Lists the seeds of this generation's candidates.

        The two of a pair differ in the lowest bit, the sign.
        """
        pairs = [
            seed_of(self._seed, self.generation, pair) & ~1 for pair in range(self._recipe.pairs)
        ]
        return [seed | sign for seed in pairs for sign in (0, 1)]

    def rows(self, seeds: Sequence[int]) -> np.ndarray:
        """The numbers of candidates, int64 (candidates, count)."""
        found = np.empty((len(seeds), self.genome.count), np.int64)
        places = self.genome.scales + self._recipe.noise_shift
        for number, seed in enumerate(seeds):
            noise = perturbation(seed, self.genome.count) << places
            found[number] = self._row - noise if seed & 1 else self._row + noise
        return np.clip(found, -self.genome.largest, self.genome.largest)

    def tell(self, messages: Sequence[bytes]) -> None:
        """Ends a generation.

        Parameters
        ----------
        messages : sequence of bytes
            ``encode_candidate`` of each candidate, in any order.

        Raises
        ------
        InputError
            If one is damaged, missing, there twice, or of another generation.
        """
        fitnesses = dict(decode_candidate(message) for message in messages)
        seeds = self.seeds()
        if len(messages) != len(seeds) or set(fitnesses) != set(seeds):
            raise InputError(
                f"generation {self.generation} must have the messages of its {len(seeds)}"
                " candidates, once each"
            )
        self.sent += sum(map(len, messages))
        total = np.zeros(self.genome.count, np.int64)
        for seed, weight in weights_of_pairs([fitnesses[seed] for seed in seeds], seeds):
            total += weight * perturbation(seed, self.genome.count)
        self._move(total)
        self.generation += 1

    def _move(self, total: np.ndarray) -> None:
        g, recipe = golden(), self._recipe
        if recipe.momentum:
            lost = g.round_pseudo_stochastic(self._velocity, recipe.momentum, _UPDATE_BITS)
            total = np.clip(self._velocity - lost + total, -_LARGEST, _LARGEST)
            self._velocity = total
        total = np.clip(total, -_LARGEST, _LARGEST)
        step = g.round_pseudo_stochastic(total, recipe.shift(self.generation), _UPDATE_BITS).astype(
            np.int64
        )
        moved = self._row + (step << self.genome.scales)
        self._row = np.clip(moved, -self.genome.largest, self.genome.largest)
        self._trainer.restore({**take_snapshot(self._trainer), **self.genome.write(self._row)})

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays that a checkpoint needs besides the model's."""
        return {
            "evolution/velocity": self._velocity,
            "evolution/generation": np.array(self.generation),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` and the trainer's gave; KeyError if something is missing."""
        self._trainer.restore(arrays)
        self._row = self.genome.read(take_snapshot(self._trainer))
        self._velocity = arrays["evolution/velocity"].astype(np.int64)
        self.generation = int(arrays["evolution/generation"])


def weights_of_pairs(fitnesses: Sequence[int], seeds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Seeds of pairs, and the difference of the two ranks; equal fitnesses rank by their seeds."""
    order = sorted(range(len(seeds)), key=lambda place: (fitnesses[place], seeds[place]))
    ranks = [0] * len(seeds)
    for rank, place in enumerate(order):
        ranks[place] = rank
    for place in range(0, len(seeds), 2):
        yield seeds[place], ranks[place] - ranks[place + 1]


def encode_candidate(seed: int, fitness: int) -> bytes:
    """Encodes a candidate as it is sent: 12 bytes."""
    if not 0 <= seed < SEEDS:
        raise ValueError(f"a seed must have 64 bits, not {seed}")
    return _CANDIDATE.pack(seed, max(-_LARGEST, min(_LARGEST, fitness)))


def decode_candidate(data: bytes) -> tuple[int, int]:
    """Seed and fitness; InputError if it is no candidate."""
    if len(data) != CANDIDATE_BYTES:
        raise InputError(f"a candidate must have {CANDIDATE_BYTES} bytes, not {len(data)}")
    seed, fitness = _CANDIDATE.unpack(data)
    return seed, fitness
