"""Opening a session from the command line."""

from pathlib import Path

from .. import console
from ..session import InferenceSession


def open_session(
    model: Path, device: str, target: str | None, semantics: str | None = None
) -> InferenceSession:
    """A session; a terminal shows that the simulation may have to be built first."""
    with console.waiting(f"opening {device} (a new simulation takes a minute to build)"):
        return InferenceSession(model, device, target, semantics=semantics)
