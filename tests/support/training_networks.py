"""Small networks and pictures for the tests of training."""

import numpy as np
from slipstick.training.data import LabelledSet, Split
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork

CLASSES = 4


def small_network() -> TrainingNetwork:
    """Every kind of layer: strides, a residual block, overlapping pools, depthwise, flattening."""
    same = (1, 1, 1, 1)
    layers = (
        Layer("first", Kind.CONVOLUTION, (INPUT,), 6, (3, 3), (1, 1), same, True),
        Layer("inner", Kind.CONVOLUTION, ("first",), 6, (3, 3), (1, 1), same, True),
        Layer("outer", Kind.CONVOLUTION, ("inner",), 6, (3, 3), (1, 1), same),
        Layer("sum", Kind.ADD, ("first", "outer"), relu=True),
        Layer("most", Kind.MAX_POOL, ("sum",), 0, (3, 3), (2, 2), same),
        Layer("deep", Kind.DEPTHWISE, ("most",), 0, (3, 3), (1, 1), same, True),
        Layer("wide", Kind.CONVOLUTION, ("deep",), 8, relu=True),
        Layer("mean", Kind.AVERAGE_POOL, ("wide",), 0, (3, 2), (2, 2)),
        Layer("flat", Kind.FLATTEN, ("mean",)),
        Layer("logits", Kind.CONVOLUTION, ("flat",), CLASSES),
    )
    return TrainingNetwork("small", (10, 8, 2), layers)


def small_pictures(count: int, seed: int = 1) -> LabelledSet:
    """Noisy prototypes of the classes, as codes."""
    generator = np.random.default_rng(seed)
    prototypes = np.random.default_rng(0).integers(-90, 91, (CLASSES, 10, 8, 2))
    labels = generator.integers(0, CLASSES, count)
    noisy = prototypes[labels] + generator.normal(scale=40, size=(count, 10, 8, 2))
    return LabelledSet(np.clip(np.rint(noisy), -127, 127).astype(np.int8), labels)


def small_split() -> Split:
    """Some to learn from, others to test on."""
    return Split(small_pictures(256), small_pictures(128, seed=2))
