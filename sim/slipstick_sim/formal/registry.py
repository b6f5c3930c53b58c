"""Defines a proof, and lists all of them: every ``proof_*`` module that has ``PROOFS``."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from amaranth.lib import wiring


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A component with ``Assert`` and ``Assume`` in it, and how its assertions are shown to hold.

    All inputs of the component are free in every cycle, as far as its assumptions allow; registers
    start with their initial values and are never reset.

    Parameters
    ----------
    name : str
        What is proved, as an identifier; the name of the counterexample's folder.
    component : callable
        Makes the component.
    depth : int
        Cycles of the induction: the assertions hold in the first ``depth`` cycles, and after any
        ``depth`` cycles in which they held they hold in the next.
    bounded : bool
        Only the first ``depth`` cycles are looked at, with every possible input. For a pipeline
        without feedback that is as much as a proof, if ``depth`` is more than its latency.
    probes : mapping
        Inputs of the component that are signals within it instead of being free: port to path,
        such as ``{"owed": "queue.owed"}``. For inductions that ports alone cannot carry.
    timeout_seconds : int
        Of processor time, after which the solver gives up; on a busy machine more time passes.

    Raises
    ------
    ValueError
        If the name is not an identifier, or ``depth`` or ``timeout_seconds`` is less than 1.
    """

    name: str
    component: Callable[[], wiring.Component]
    depth: int
    bounded: bool = False
    probes: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: int = 300

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"a proof's name must be an identifier, not {self.name!r}")
        for name in ("depth", "timeout_seconds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def all_proofs() -> list[Proof]:
    """The proofs of all ``proof_*`` modules of this package, in the order of the modules.

    Raises
    ------
    ValueError
        If two proofs have the same name.
    """
    package = importlib.import_module(__package__ or "slipstick_sim.formal")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    proofs: list[Proof] = []
    for name in names:
        if name.startswith("proof_"):
            proofs.extend(importlib.import_module(f"{package.__name__}.{name}").PROOFS)
    for index, proof in enumerate(proofs):
        if any(proof.name == other.name for other in proofs[:index]):
            raise ValueError(f"two proofs must not have the same name, {proof.name!r}")
    return proofs
