"""Random programs for the whole core have one result, whatever the order of the two streams."""

from typing import Any

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space
from slipstick_sim.benches.stimulus.random_program import (
    random_program,
    random_weights,
)
from slipstick_sim.golden.arithmetic import operand_range
from slipstick_sim.golden.core import GoldenCore

SHAPES: tuple[dict[str, Any], ...] = (
    {"rows": 8, "columns": 8, "lanes": 4},
    {"rows": 16, "columns": 8, "lanes": 8, "weight_rows": 4, "products": 1},
    {"rows": 8, "columns": 4, "lanes": 4, "number_format": "lns1+3+2"},
    {"rows": 8, "columns": 8, "lanes": 4, "ninth_bits": 1, "training": 1, "drain_tables": 1},
)


@pytest.mark.parametrize("shape", SHAPES, ids=["int8", "wide", "lns", "training"])
def test_no_program_hangs_on_the_order_of_its_streams(shape: dict[str, Any]) -> None:
    """Turns of an instruction write nothing that later turns of the other stream read."""
    configuration = Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 13,
        accumulator_depth=64,
        instruction_words=1 << 10,
        **shape,
    )
    for seed in range(60):
        generator = np.random.default_rng(seed)
        core = GoldenCore(configuration, check_hazards=True)
        size = configuration.activation_bytes
        codes = generator.integers(*operand_range(configuration), size, np.int8, endpoint=True)
        weights, units = random_weights(generator, configuration)
        program, post_pc, _ = random_program(generator, configuration, weights)
        for space, data in (
            (Space.ACTIVATIONS, codes.tobytes()),
            (Space.WEIGHTS, units),
            (Space.INSTRUCTIONS, program),
        ):
            core.write(space, 0, data)
        core.run((0, post_pc), clear=True)
