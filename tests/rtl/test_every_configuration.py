"""Whatever ``Configuration`` takes can be elaborated: fields are drawn, ends of ranges among them.

``rows=64`` was taken and could not be built, and neither were frames that hold no weight word.
"""

import random
from typing import Any

import pytest
from amaranth.hdl import Fragment
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import MULTIPLIERS, Configuration

_ELEMENTS = 256
"""Of an array, at most: a larger one takes half a minute."""


def _powers(low: int, high: int) -> list[int]:
    return [1 << n for n in range(low.bit_length() - 1, high.bit_length())]


def draw_configuration(generator: random.Random) -> Configuration:
    """Draws fields until they break no rule."""
    while True:
        compact = generator.random() < 0.2
        rows = generator.choice((*_powers(2, 64), 6, 12, 24, 48))
        columns = generator.choice(_powers(4, 64))
        fields: dict[str, Any] = {
            "rows": rows,
            "columns": columns,
            "activation_bytes": generator.choice(_powers(1 << 10, 1 << 17)),
            "weight_bytes": generator.choice(_powers(1 << 10, 1 << 18)),
            "instruction_words": generator.choice(_powers(64, 1 << 14)),
            "payload_bytes": generator.choice(_powers(64, 4096)),
            "accumulator_depth": generator.choice(_powers(16, 4096)),
        }
        if compact:
            words = generator.choice(_powers(16, 1024))
            fields |= {"engine": "compact", "lanes": 1, "parameter_words": words}
        else:
            fields |= {
                "pixels": generator.choice((1, 1, 2, 4)),
                "lanes": generator.choice(_powers(4, 16)),
                "number_format": generator.choice(("int8", "int8", "lns1+2+2", "lns1+3+4")),
                "multiplier": generator.choice(MULTIPLIERS),
                "packed_rows": generator.choice((0, 0, rows // 2 - 1, rows)),
                "weight_rows": generator.choice(_powers(1, max(1, rows // 4))),
                "dram": generator.choice(("", "", "MT48LC16M16", "MT41K256M16")),
                "silicon": int(generator.random() < 0.1),
            }
            for name in ("ninth_bits", "halved_tables", "drain_tables", "products", "training"):
                fields[name] = int(generator.random() < 0.3)
        if rows * columns * fields.get("pixels", 1) > _ELEMENTS:
            continue
        try:
            return Configuration(**fields)
        except ValueError:
            continue


def _elaborate(thing: Any) -> None:
    for part, *_ in Fragment.get(thing, None).subfragments:
        _elaborate(part)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(4, 60))]
)
def test_a_configuration_that_is_taken_can_be_elaborated(seed: int) -> None:
    configuration = draw_configuration(random.Random(seed))
    _elaborate(Accelerator(configuration=configuration))
