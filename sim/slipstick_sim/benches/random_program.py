"""Programs of random instructions for the whole core, and what they work on."""

import numpy as np
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration

from .random_convolve import random_convolve
from .random_post import random_parameters, random_post, random_table

INSTRUCTIONS = 8
"""Of each stream, HALT left out."""


def random_program(
    generator: np.random.Generator,
    configuration: Configuration,
    weights: np.ndarray,
    *,
    first_weight: int = 0,
    first_parameter: int = 0,
) -> tuple[bytes, int]:
    """Both streams, one instruction waiting for the other; the word where the second starts.

    Weights and parameters are those of the configuration, and lie from these words on.
    """
    matrix, post = b"", b""
    for index in range(INSTRUCTIONS):
        convolve = random_convolve(generator, configuration, weights)
        convolve |= {"wait": index, "bank": index % configuration.accumulator_banks}
        # a compact engine notes where its table lies, and knows of none before
        draw = random_post if index or not configuration.is_compact else random_table
        step = draw(generator, configuration) | {"wait": index + 1}
        convolve["weight_address"] += first_weight
        step["table_address"] += first_weight
        step["parameter_address"] += first_parameter
        matrix += isa.pack(isa.MATRIX_FIELDS, convolve)
        post += isa.pack(isa.POST_FIELDS, step)
    matrix += isa.pack(isa.MATRIX_FIELDS, {})
    post += isa.pack(isa.POST_FIELDS, {})
    return matrix + post, len(matrix) // 4


def random_weights(generator: np.random.Generator, configuration: Configuration) -> np.ndarray:
    """A full weight memory, int8 (words, C)."""
    shape = configuration.weight_words, configuration.columns
    return generator.integers(-128, 128, shape, np.int8)


def random_parameter_words(generator: np.random.Generator, configuration: Configuration) -> bytes:
    """A full parameter memory."""
    bias, multiplier, shift = random_parameters(generator, configuration)
    lanes = zip(bias.ravel(), multiplier.ravel(), shift.ravel(), strict=True)
    return b"".join(b.tobytes() + int(f).to_bytes(4, "little") + bytes([s]) for b, f, s in lanes)
