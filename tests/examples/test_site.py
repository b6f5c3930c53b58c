"""The site: it builds without a warning, has every page, and loads nothing from the network."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs: mkdocs-material"
)
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """As ``make docs`` does: a broken link, anchor or docstring ends the build."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = {str(path.relative_to(ROOT / "docs"))[:-3] for path in (ROOT / "docs").rglob("*.md")}
    built = {str(path.relative_to(tmp_path / "site"))[:-5] for path in tmp_path.rglob("*.html")}
    assert pages <= built
