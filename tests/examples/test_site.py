"""The site: every page is in its navigation, and its theme loads no font from the network."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"^ +- .+: (\S+\.md)$", SETTINGS, re.MULTILINE))
    docs = ROOT / "docs"
    assert {str(path.relative_to(docs)) for path in docs.rglob("*.md")} <= named


def test_pages_load_nothing_from_the_network() -> None:
    assert "font: false" in SETTINGS
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text()
        # the theme's script fetches Mermaid where a page has such a diagram
        assert "```mermaid" not in text, page
        assert not re.search(r"!\[[^]]*\]\(https?:|<img[^>]+https?:", text), page
