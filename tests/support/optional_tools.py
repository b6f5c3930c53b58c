"""Marks of tests that need a program which no package holds; the reason says how to get it."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from slipstick_sim import tools

Test = TypeVar("Test", bound=Callable[..., object])


def _needs(*wanted: tools.Tool) -> Callable[[Test], Test]:
    skip = _skip(*wanted)

    def mark(test: Test) -> Test:
        return pytest.mark.borrows(skip(test))

    return mark


def _skip(*wanted: tools.Tool) -> pytest.MarkDecorator:
    for tool in wanted:
        try:
            tool.find()
        except tools.ToolError as error:
            return pytest.mark.skipif(True, reason=f"needs {tool.name}: {error}")
    return pytest.mark.skipif(False, reason="nothing is missing")


needs_sta = _needs(tools.OPENSTA)
needs_icarus = _needs(tools.ICARUS, tools.ICARUS_RUNTIME)
