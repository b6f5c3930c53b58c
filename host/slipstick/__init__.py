"""Slipstick's host side: front-ends, compiler, devices, sessions and the command line.

``slipstick.InferenceSession("model.tflite").run(None, {"input": images})``
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .devices import open_device
    from .errors import (
        CapacityError,
        DeviceError,
        InputError,
        ModelError,
        ProgramError,
        SlipstickError,
        StateLostError,
        TargetError,
        UnsupportedError,
    )
    from .loading import compile_file as compile
    from .program import Program
    from .session import InferenceSession

__version__ = "0.1.0"

__all__ = [
    "CapacityError",
    "DeviceError",
    "InferenceSession",
    "InputError",
    "ModelError",
    "Program",
    "ProgramError",
    "SlipstickError",
    "StateLostError",
    "TargetError",
    "UnsupportedError",
    "__version__",
    "compile",
    "open_device",
]

_PLACES = {
    "InferenceSession": ("session", "InferenceSession"),
    "Program": ("program", "Program"),
    "compile": ("loading", "compile_file"),
    "open_device": ("devices", "open_device"),
}
"""Module and attribute of each name; a name that is not here is an error's."""


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that ``import slipstick`` is quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES.get(name, ("errors", name))
    value = getattr(import_module(f".{module}", __name__), attribute)
    globals()[name] = value
    return value
