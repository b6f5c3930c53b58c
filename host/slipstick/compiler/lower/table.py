"""The table of lowerings: what makes an operation of the device of a node, per arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ...graph import Graph, Node
from ...kernels.lns.codes import arithmetic_of
from ...operators import Family, entry
from ..ir.operations import Operation
from ..ir.views import Views

Maker = Callable[[Node, Graph, Views], Operation]
"""It raises HostReason if the device cannot run the node."""

NO_OPERATOR = "the device has no such operator"

Lowering = TypeVar("Lowering", bound=Maker)

TFLM, ONNX, LNS = "tflm", "onnx", "lns"

ALL = (TFLM, ONNX, LNS)

MAKERS: Mapping[str, dict[str | Family, Maker]] = {arithmetic: {} for arithmetic in ALL}
"""By arithmetic, then by operator or family."""


def lowers(
    *operators: str | Family, arithmetics: Sequence[str] = ALL
) -> Callable[[Lowering], Lowering]:
    """Makes a function the lowering of operators, or of a family, in some arithmetics."""

    def register(maker: Lowering) -> Lowering:
        for arithmetic in arithmetics:
            MAKERS[arithmetic].update(dict.fromkeys(operators, maker))
        return maker

    return register


def maker_of(operator: str, semantics: str) -> Maker | None:
    """Returns the lowering of an operator in a graph's ``semantics``, None if there is none."""
    arithmetic = semantics if arithmetic_of(semantics) is None else LNS
    return entry(MAKERS[arithmetic], operator)
