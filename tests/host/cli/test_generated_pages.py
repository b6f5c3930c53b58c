"""Pages of the instruction set, the targets and the operators say what the code says."""

from pathlib import Path

import generate_pages
import pytest
from slipstick.operators import OPERATORS
from slipstick.targets import TARGETS
from slipstick_rtl import isa

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("place", generate_pages.PAGES)
def test_page_is_that_of_the_code(place: str) -> None:
    page = (ROOT / place).read_text()
    assert page == generate_pages.PAGES[place](), "run python tools/generate_pages.py"


def test_pages_hold_everything() -> None:
    opcodes = list(generate_pages.member_docs("Opcode"))
    assert [(name, value) for name, value, _ in opcodes] == [(o.name, o.value) for o in isa.Opcode]
    page = generate_pages.isa_page()
    for name in {**isa.MATRIX_FIELDS, **isa.POST_FIELDS}:
        assert f"| `{name}` |" in page
    for name in OPERATORS:
        assert f"| `{name}` |" in generate_pages.operators_page()
    for name in TARGETS:
        assert f"| `{name}` |" in generate_pages.targets_page()
