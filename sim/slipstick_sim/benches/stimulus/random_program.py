"""Programs of random instructions for the whole core, and what they work on."""

import numpy as np
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration

from ...golden.arithmetic import operand_range
from ...golden.convolve import weight_range
from ...golden.repeats import turn, turns
from ...golden.weights import weight_units
from ...golden.windows import window_vectors
from .random_convolve import prepare_weights, random_convolve
from .random_post import (
    PARAMETER_BLOCKS,
    place_parameters,
    random_parameters,
    random_post,
    random_table,
)

INSTRUCTIONS = 8
"""Instructions of each stream, HALT left out."""


def random_program(
    generator: np.random.Generator,
    configuration: Configuration,
    weights: np.ndarray,
    *,
    first_weight: int = 0,
    first_parameter: int = 0,
) -> tuple[bytes, int, int]:
    """Both streams, one instruction waiting for the other; the word where the second starts; and
    the turns of each.

    Weights and parameters are those of the configuration, and lie from these words on.
    """
    matrix, post, count = b"", b"", 0
    for index in range(INSTRUCTIONS):
        convolve = random_convolve(generator, configuration, weights)
        convolve |= {"wait": count, "bank": index % configuration.accumulator_banks}
        # a compact engine notes where its table lies, and knows of none before
        draw = random_post if index or configuration.traits.copies_tables else random_table
        step = draw(generator, configuration) | {"wait": count + 1}
        if configuration.traits.overlaps_streams:
            _part(generator, configuration, convolve, step)
        if step["opcode"] == isa.Opcode.DRAIN and _may_repeat(step, configuration):
            _repeat(generator, configuration, convolve, step)
            if _reads_results(convolve, step, configuration):
                convolve["repeats"] = step["repeats"] = 0
        count += turns(step)
        convolve["weight_address"] += first_weight
        step["table_address"] += first_weight
        step["parameter_address"] += first_parameter
        matrix += isa.pack(isa.MATRIX_FIELDS, convolve)
        post += isa.pack(isa.POST_FIELDS, step)
    matrix += isa.pack(isa.MATRIX_FIELDS, {})
    post += isa.pack(isa.POST_FIELDS, {})
    return matrix + post, len(matrix) // 4, count


def _may_repeat(drain: dict[str, int], configuration: Configuration) -> bool:
    return configuration.traits.overlaps_streams and not drain["table_words"] & isa.READING_FLAGS


def _part(
    generator: np.random.Generator,
    configuration: Configuration,
    convolve: dict[str, int],
    step: dict[str, int],
) -> None:
    """Banks of any size that holds what both work on."""
    words = [convolve["rows"] * convolve["groups"]]
    if step["opcode"] == isa.Opcode.DRAIN:
        words.append(step["rows"] * -(-step["columns"] // configuration.pixels))
    depth, most = configuration.accumulator_depth, configuration.largest_parts
    fitting = [p for p in range(most + 1) if max(words) <= depth >> p]
    convolve["parts"] = step["parts"] = int(generator.choice(fitting))
    banks = 2 << convolve["parts"]
    convolve["bank"] = int(generator.integers(0, banks))
    if step["opcode"] == isa.Opcode.DRAIN:
        step["bank"] = int(generator.integers(0, banks))


def _repeat(
    generator: np.random.Generator,
    configuration: Configuration,
    convolve: dict[str, int],
    drain: dict[str, int],
) -> None:
    """Both take some turns, each turn a little further on where that stays in the memories."""
    repeats = int(generator.integers(0, 4))
    drain["bank"] = convolve["bank"]
    words = len(weight_range(convolve, configuration))
    convolve["repeats"] = drain["repeats"] = repeats
    convolve["waits_each"] = int(generator.integers(0, 2))
    if not convolve["pairs"] and not convolve["depthwise"]:
        room = configuration.weight_words - convolve["weight_address"] - words
        convolve["weight_step"] = room // max(repeats, 1)
    last_block = (PARAMETER_BLOCKS - 1) * configuration.parameter_block_words
    if drain["parameter_address"] + repeats * configuration.parameter_block_words <= last_block:
        drain["parameter_step"] = configuration.parameter_block_words
    end = drain["destination"] + sum(
        (drain[count] - 1) * drain[f"destination_{step}_step"]
        for count, step in (("rows", "row"), ("columns", "column"))
    )
    end += (drain["slices"] + repeats) * configuration.lanes
    if end <= configuration.activation_bytes:
        drain["destination_step"] = configuration.lanes


def _reads_results(
    convolve: dict[str, int], drain: dict[str, int], configuration: Configuration
) -> bool:
    """Tells whether any turn of ``convolve`` may read what any turn of ``drain`` writes."""
    plain = np.zeros(configuration.activation_bytes, np.int8)
    marked = plain.copy()
    rows, columns, channels = np.ogrid[
        : drain["rows"], : drain["columns"], : drain["slices"] * configuration.lanes
    ]
    places = rows * drain["destination_row_step"] + columns * drain["destination_column_step"]
    for number in range(turns(drain)):
        first = turn(drain, number)["destination"]
        marked[(first + places + channels) % configuration.activation_bytes] = 1
    # all turns read the same: random instructions have no origin_step
    seen = (window_vectors(convolve, memory, configuration)[0] for memory in (plain, marked))
    return any((a != b).any() for a, b in zip(*seen, strict=True))


def random_weights(
    generator: np.random.Generator, configuration: Configuration
) -> tuple[np.ndarray, bytes]:
    """A full weight memory, int8 (words, W, C), and what the link carries of it.

    Parameters of a pipelined engine are in it where random instructions expect them.
    """
    c = configuration
    shape = c.weight_words, c.weight_rows, c.columns
    weights = generator.integers(*operand_range(c), shape, np.int8, endpoint=True)
    ninth = generator.integers(0, 2 if c.ninth_bits else 1, shape, np.uint8)
    if not c.traits.has_parameter_memory:
        place_parameters(c, random_parameters(generator, c), weights, ninth)
    prepare_weights(weights, c)
    units = weights.view(np.uint8).reshape(c.weight_words, -1)
    if c.ninth_bits:
        units = weight_units(units, ninth.reshape(units.shape))
    return weights, units.tobytes()


def random_parameter_words(generator: np.random.Generator, configuration: Configuration) -> bytes:
    """A compact engine's full parameter memory; nothing of another."""
    if not configuration.traits.has_parameter_memory:
        return b""
    bias, multiplier, shift = random_parameters(generator, configuration)
    lanes = zip(bias.ravel(), multiplier.ravel(), shift.ravel(), strict=True)
    return b"".join(b.tobytes() + int(f).to_bytes(4, "little") + bytes([s]) for b, f, s in lanes)
