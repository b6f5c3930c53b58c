"""Docstrings: the first line is a sentence that says what the thing does or is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLAUSE = re.compile(r"(What|Where|Which|Whether|When|Why|How|Of|From|To|That|Whose)\b")
"""Words that begin a clause without a verb of its own."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and text of each docstring, those of constants and fields included."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value.strip()


def test_first_lines_of_modules() -> None:
    for layer in ("host", "rtl", "sim"):
        for path in (ROOT / layer).rglob("*.py"):
            text = path.read_text()
            found = ast.get_docstring(ast.parse(text))
            assert found or (path.name == "__init__.py" and not text.strip()), path
            assert not CLAUSE.match(found or ""), path


def test_first_lines() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for folder in ("host", "rtl", "sim", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(path)
        if CLAUSE.match(text)
    ]
    assert not found, "\n".join(found)
