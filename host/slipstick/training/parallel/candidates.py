"""Evaluates candidates of an evolution: one after the other on anything that infers, or the whole
population in one matrix product."""

from collections.abc import Callable

import numpy as np

from ..golden import golden
from ..int8 import IMAGE_EXPONENT, Codes
from ..network import INPUT, Kind, Layer, TrainingNetwork
from ..trainer import Trainer
from .evolution import EvolutionStrategy, encode_candidate
from .fitness import fitness_of
from .jobs import Snapshot, take_snapshot

Infer = Callable[[Snapshot, np.ndarray], Codes]
"""Given a candidate's model and images, gives logits (images, classes) as codes: a board's session,
for instance. The ranges, so the exponents of all tensors, are the same for all candidates."""

_EXACT = 1 << 24
"""float32 products are exact below."""


def infer_with(trainer: Trainer) -> Infer:
    """Inference by a trainer that nobody else uses: golden, or on a device."""

    def infer(snapshot: Snapshot, images: np.ndarray) -> Codes:
        trainer.restore(snapshot)
        logits = trainer.forward(images)[trainer.network.layers[-1].name]
        return Codes(logits.codes.reshape(len(images), -1), logits.exponent)

    return infer


def find_ranges(trainer: Trainer, images: np.ndarray) -> None:
    """Gives a trainer the ranges of a forward pass; candidates keep them."""
    do = trainer.arithmetic
    do.ranges, do.reports = {}, {}
    trainer.forward(images)
    do.ranges = dict(do.reports)


def evaluate_each(
    strategy: EvolutionStrategy,
    base: Snapshot,
    infer: Infer,
    images: np.ndarray,
    labels: np.ndarray,
) -> list[bytes]:
    """The messages of a generation, candidate by candidate.

    Parameters
    ----------
    base : mapping of arrays
        The model: exponents and ranges are taken from it.
    """
    seeds, messages = strategy.seeds(), []
    for seed in seeds:
        row = strategy.rows([seed])[0]
        logits = infer({**base, **strategy.genome.write(row)}, images)
        fitness = int(fitness_of(logits.codes, logits.exponent, labels))
        messages.append(encode_candidate(seed, fitness))
    return messages


def is_dense(network: TrainingNetwork) -> bool:
    """Tells whether ``evaluate_together`` takes a network: a chain of fully connected layers."""
    last = INPUT
    for layer in network.layers:
        if layer.inputs != (last,) or layer.kind not in (Kind.FLATTEN, Kind.CONVOLUTION):
            return False
        if layer.learns and network.shapes[last][:2] != (1, 1):
            return False
        last = layer.name
    return True


def evaluate_together(
    strategy: EvolutionStrategy, trainer: Trainer, images: np.ndarray, labels: np.ndarray
) -> list[bytes]:
    """The messages of a generation of a dense network: the bits of ``evaluate_each``.

    Parameters
    ----------
    trainer : Trainer
        The strategy's, with ranges; all of its layers learn.
    """
    if not is_dense(trainer.network):
        raise ValueError(f"{trainer.network.name} must have fully connected layers alone")
    seeds = strategy.seeds()
    arrays = strategy.genome.write(strategy.rows(seeds))
    base = take_snapshot(trainer)
    x = Codes(images.reshape(1, len(images), -1), IMAGE_EXPONENT)
    for layer in trainer.network.layers:
        if layer.learns:
            x = _product(layer, x, arrays, base, trainer.arithmetic.ranges[layer.name])
    fitnesses = fitness_of(x.codes, x.exponent, labels)
    return [
        encode_candidate(seed, int(fitness)) for seed, fitness in zip(seeds, fitnesses, strict=True)
    ]


def _product(layer: Layer, x: Codes, arrays: Snapshot, base: Snapshot, target: int) -> Codes:
    """A layer of all candidates: (candidates or 1, images, inputs) to (..., outputs)."""
    g = golden()
    own = int(base[f"{layer.name}/exponent"])
    weights = g.weights_of(arrays[f"{layer.name}/masters"])
    candidates, outputs = weights.shape[:2]
    factors = weights.reshape(candidates, outputs, -1)
    exact = np.float32 if factors.shape[2] * g.LARGEST_CODE**2 < _EXACT else np.float64
    images = x.codes.astype(exact)
    if len(images) == 1:
        # images are the same for all candidates: one matrix product
        flat = images[0] @ factors.reshape(candidates * outputs, -1).T.astype(exact)
        sums = flat.reshape(-1, candidates, outputs).transpose(1, 0, 2)
    else:
        sums = images @ factors.transpose(0, 2, 1).astype(exact)
    exponent = x.exponent + own
    bias = g.bias_of(arrays[f"{layer.name}/bias"], exponent - own + g.BIAS_PLACES)
    sums = g.add_bias(np.ascontiguousarray(sums, np.int32), bias[:, None])
    shift = g.shift_between(exponent, target)
    return Codes(g.finish_forward(sums, shift, layer.relu), exponent + shift)
