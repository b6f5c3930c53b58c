"""Defines a bench, and lists all of them: every module of this package that has ``BENCH``."""

import importlib
import json
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.lib import wiring

from ..toolchain import convert_to_verilog

PARAMETERS_VARIABLE = "SLIPSTICK_BENCH_PARAMETERS"

# Compiling costs more than simulating: a bench runs for some ten thousand cycles.
OPTIMISATION = "-O1"


def plain_verilog(rtlil: str, top: str) -> str:
    """The component as Yosys writes it."""
    return convert_to_verilog(rtlil)


def no_others(rtlil: str) -> str:
    """Returns no Verilog, for a component that has all its modules."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A component under test, the cocotb tests that hold it to its model, and what to run it with.

    Parameters
    ----------
    name : str
        The module of this package that defines the bench; also the Verilog top's name.
    component : callable
        Makes the Amaranth component from one set of parameters, given as keywords.
    test_module : str
        The module of the cocotb tests, usually the bench's own ``__name__``.
    parameters : tuple of mappings
        The sets to run with; values that JSON can carry. The tests read theirs by ``parameters()``.
    thorough : tuple of mappings
        More sets, for ``make sim`` and ``make thorough``. ``make test`` leaves them out: they take
        long, and nearly all that they see the others see too.
    timeout_seconds : int
        Of processor time; a simulation that takes more, over all tests of one set, has failed.
    verilog : callable
        Makes the Verilog that is simulated from the component's RTLIL and its top's name.
    others : callable
        Gives Verilog of modules that the component's RTLIL has instances of.
    optimisation : str
        Option of the C++ compiler; ``-O0`` for a large model that runs for a short time.

    Raises
    ------
    ValueError
        If the name is not an identifier, or there is no set of parameters.
    """

    name: str
    component: Callable[..., wiring.Component]
    test_module: str
    parameters: tuple[Mapping[str, Any], ...] = ({},)
    thorough: tuple[Mapping[str, Any], ...] = ()
    timeout_seconds: int = 300
    verilog: Callable[[str, str], str] = plain_verilog
    others: Callable[[str], str] = no_others
    optimisation: str = OPTIMISATION

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"a bench's name must be an identifier, not {self.name!r}")
        if not self.all_parameters:
            raise ValueError(f"bench {self.name} must have at least one set of parameters")

    @property
    def all_parameters(self) -> tuple[Mapping[str, Any], ...]:
        """All sets, the thorough ones last."""
        return self.parameters + self.thorough


def describe(parameters: Mapping[str, Any]) -> str:
    """One set of parameters as people read it: ``depth=4, width=8``."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "-"


def parameters() -> dict[str, Any]:
    """Inside a cocotb test: the set of parameters that the component was made from."""
    return json.loads(os.environ.get(PARAMETERS_VARIABLE, "{}"))


def names() -> list[str]:
    """The names of this package's modules, of which those with ``BENCH`` are benches."""
    package = importlib.import_module(__package__ or "slipstick_sim.benches")
    return sorted(
        module.name for module in pkgutil.iter_modules(package.__path__) if module.name[0] != "_"
    )


def load(name: str) -> Bench:
    """The bench of this name.

    Raises
    ------
    ValueError
        If there is none; the message lists those there are.
    """
    if name in names():
        bench = getattr(importlib.import_module(f"{__package__}.{name}"), "BENCH", None)
        if isinstance(bench, Bench):
            if bench.name != name:
                raise ValueError(f"bench {bench.name!r} must be named after its module, {name!r}")
            return bench
    raise ValueError(
        f"no bench is named {name!r}; there are: {', '.join(map(_name, all_benches()))}"
    )


def _name(bench: Bench) -> str:
    return bench.name


def all_benches() -> list[Bench]:
    """Every bench of this package, sorted by name."""
    modules = [importlib.import_module(f"{__package__}.{name}") for name in names()]
    return [load(_name(module.BENCH)) for module in modules if hasattr(module, "BENCH")]
