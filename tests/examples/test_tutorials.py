"""The tutorials: their Python blocks run in the order of each page."""

import re
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = {
    "first-network": ("252672 multiply-accumulates", "5142 cycles predicted", "530 of 539"),
    "own-board": ("ulx3s-25f        streamed: False", "of 50"),
    "own-number-format": ("lns1+3+4: 8 bits, steps of 4.4%", "1x8x8, "),
}
"""Fragments of what each page prints."""

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs the blocks of a page in one namespace, in a folder of their own."""
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = (TUTORIALS / f"{name}.md").read_text()
    for match in _BLOCK.finditer(text):
        before = text[: match.start(1)].count("\n")
        # a traceback has the page's own line
        exec(compile("\n" * before + match[1], f"{name}.md", "exec"), namespace)
    return namespace


def test_every_page_is_tested() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    namespace = _run(name, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    for fragment in PAGES[name]:
        assert fragment in printed
    if name == "own-number-format":
        accuracy = namespace["accuracy"]
        assert accuracy["float32"] > 0.9
        assert accuracy["lns1+3+4"] > accuracy["float32"] - 0.02
