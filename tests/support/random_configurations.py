"""Small hardware of any shape, for networks on the golden model."""

from typing import Any

from hypothesis import strategies as st
from slipstick_rtl.config import Configuration

SIZES = (4, 8, 16)
ROWS = (*SIZES, 12, 24, 32)


@st.composite
def configurations(draw, pixels: tuple[int, ...], **memories: Any) -> Configuration:
    """A pipelined engine; ``memories`` are its sizes, or strategies that draw them."""
    rows, columns = draw(st.sampled_from(ROWS)), draw(st.sampled_from(SIZES))
    weight_rows = draw(st.sampled_from([n for n in (1, 2, 4) if n <= rows // 4]))
    cells = weight_rows * columns % 8 == 0
    return Configuration(
        pixels=draw(st.sampled_from(pixels)),
        rows=rows,
        columns=columns,
        lanes=draw(st.sampled_from([n for n in (4, 8, 16) if n <= min(rows, columns)])),
        weight_rows=weight_rows,
        ninth_bits=draw(st.integers(0, 1)) if cells else 0,
        drain_tables=draw(st.integers(0, 1)),
        products=draw(st.integers(0, 1)),
        accumulator_depth=draw(st.sampled_from([16, 64])),
        **{
            name: draw(size) if isinstance(size, st.SearchStrategy) else size
            for name, size in memories.items()
        },
    )
