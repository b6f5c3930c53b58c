"""Opening a session from the command line."""

from pathlib import Path

from .. import console
from ..session import InferenceSession


def open_session(
    model: Path, device: str, target: str | None, semantics: str | None = None
) -> InferenceSession:
    """Opens a session; a simulation that has to be compiled first tells so."""
    with console.waiting(f"opening {device}"):
        return InferenceSession(model, device, target, semantics=semantics)
