"""CONTRIBUTING.md names files that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PLACE = re.compile(r"`((?:rtl|sim|host|tests|tools|docs)/[\w./-]+)`")


def test_named_files_are_there() -> None:
    named = set(_PLACE.findall((ROOT / "CONTRIBUTING.md").read_text()))
    assert len(named) > 15
    assert not [place for place in sorted(named) if not (ROOT / place).exists()]
