"""Marks of tests that need a program which no package holds; the reason says how to get it."""

import pytest
from slipstick_sim import tools


def _needs(*wanted: tools.Tool) -> pytest.MarkDecorator:
    for tool in wanted:
        try:
            tool.find()
        except tools.ToolError as error:
            return pytest.mark.skipif(True, reason=f"needs {tool.name}: {error}")
    return pytest.mark.skipif(False, reason="nothing is missing")


needs_sta = _needs(tools.OPENSTA)
needs_icarus = _needs(tools.ICARUS, tools.ICARUS_RUNTIME)
