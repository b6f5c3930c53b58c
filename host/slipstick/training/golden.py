"""The golden functions of training, imported when they are first used: a board's host has none."""

from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import InputError
from .network import Layer

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window


def golden():
    """The module ``slipstick_sim.golden.training``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        from slipstick_sim.golden import training
    except ImportError as error:
        raise InputError(
            f"training needs the package {error.name}: pip install 'slipstick[sim]'"
        ) from None
    return training


@lru_cache
def window_of(layer: Layer) -> "Window":
    """A layer's window, as the golden functions take it."""
    return golden().Window(layer.kernel, layer.stride, layer.padding)
