"""Docstrings of modules: the first line is a sentence that says what the module does or is."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLAUSE = re.compile(r"(What|Where|Which|Whether|When|Why|How|From|Of)\b")
"""A first line that begins so is a clause, and has no verb of its own."""


def test_first_lines_of_modules() -> None:
    found = []
    for layer in ("host", "rtl", "sim"):
        for path in (ROOT / layer).rglob("*.py"):
            text = ast.get_docstring(ast.parse(path.read_text()))
            if text is None:
                assert path.name == "__init__.py" and not path.read_text().strip(), path
            elif CLAUSE.match(text):
                found.append(str(path.relative_to(ROOT)))
    assert not found
