"""Training on the accelerator's arithmetic: networks, data, and the loop.

``docs/explanation/training.md`` defines the arithmetic; ``slipstick_sim.golden.training`` computes
it. Everything here is deterministic: the same seed gives the same bits.

``TrainingSession`` trains a network in a loop of the user's own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import LabelledSet
    from .session import Loader, Score, TrainingSession

__all__ = ["LabelledSet", "Loader", "Score", "TrainingSession"]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: a part of the package needs little."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "data" if name == "LabelledSet" else "session"
    value = getattr(import_module(f".{place}", __name__), name)
    globals()[name] = value
    return value
