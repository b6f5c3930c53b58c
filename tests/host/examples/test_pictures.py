"""The demonstration's picture: it is drawn for what networks give, and bad input is refused."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from slipstick.errors import InputError
from slipstick.plots.figures import DOTS_PER_INCH, FIGURE_SIZE, RIGHT, WRONG, Span, draw_demo

SPANS = [
    Span(name="conv", unit="matrix", start=0, end=90),
    Span(name="conv", unit="post", start=20, end=99),
    Span(name="a_very_long_name_of_a_layer_for_a_row", unit="post", start=99, end=99),
]


def colours(path: Path) -> set[str]:
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    return {f"#{bytes(pixel).hex()}" for pixel in np.unique(pixels, axis=0).tolist()}


def test_draws_codes_with_numbers(tmp_path: Path) -> None:
    path = tmp_path / "new" / "demo.png"
    images = np.random.default_rng(0).integers(-128, 113, (7, 8, 8, 1), dtype=np.int8)
    truths = np.arange(7)
    draw_demo(path, images, truths, truths, SPANS, utilisation={"conv": 0.9}, facts={"a": "1"})
    size = tuple(round(inches * DOTS_PER_INCH) for inches in FIGURE_SIZE)
    with Image.open(path) as image:
        assert image.size == size
    assert RIGHT in colours(path)
    assert WRONG not in colours(path)


def test_draws_colours_with_names(tmp_path: Path) -> None:
    path = tmp_path / "demo.png"
    draw_demo(path, np.zeros((1, 4, 6, 3), np.uint8), ["cat"], ["dog"], SPANS)
    assert WRONG in colours(path)
    assert RIGHT not in colours(path)


@pytest.mark.parametrize(
    ("images", "guesses", "spans", "message"),
    [
        (np.zeros((2, 4, 4)), [1], SPANS, "2 images need as many guesses and truths, not 1 and 1"),
        (np.zeros((0, 4, 4)), [], SPANS, r"images must have the shape .* not \(0, 4, 4\)"),
        (np.zeros((1, 4, 4, 2)), [1], SPANS, r"images must have the shape .* not \(1, 4, 4, 2\)"),
        (np.full((1, 4, 4), np.nan), [1], SPANS, "images must be finite numbers"),
        (np.zeros((1, 4, 4)), [1], [], "a timeline needs at least one span"),
    ],
)
def test_refuses(
    tmp_path: Path, images: np.ndarray, guesses: list[int], spans: list[Span], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        draw_demo(tmp_path / "demo.png", images, guesses, guesses, spans)


def test_spans_are_checked() -> None:
    with pytest.raises(InputError, match="layer a: unit must be one of .* not 'link'"):
        Span(name="a", unit="link", start=0, end=1)
    with pytest.raises(InputError, match=r"layer a: cycles must run from 0 upwards, not 5\.\.4"):
        Span(name="a", unit="post", start=5, end=4)
