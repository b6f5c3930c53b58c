"""Real networks and data that are not part of the project: ``SLIPSTICK_DATA``, or ``../shared``.

``docs/how-to/data.md`` lists them with their sources. A test that needs a file of them has the mark
``borrows`` and asks ``shared``, which skips it where the file is not there.
"""

import os
from pathlib import Path

import pytest

BORROWING = False
"""Whether the test that runs has the mark ``borrows``, by which .ci/run finds it."""

DATA = Path(os.environ.get("SLIPSTICK_DATA", Path(__file__).parents[2].parent / "shared"))


def shared(name: str) -> Path:
    """A file or folder of it, such as ``models/mnist-8.onnx``; skips the test that lacks it."""
    assert BORROWING, "a test that uses shared data must have the mark borrows"
    path = DATA / name
    if not path.exists():
        pytest.skip(
            f"needs {name} in the folder that SLIPSTICK_DATA names, or in ../shared:"
            " docs/how-to/data.md says where to get it"
        )
    return path
