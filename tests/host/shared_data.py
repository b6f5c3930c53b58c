"""Real networks and data that are not part of the project: ``SLIPSTICK_DATA``, or ``../shared``.

``docs/data.md`` lists them with their sources. A test that needs a file of them asks ``shared``,
which skips it where the file is not there.
"""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("SLIPSTICK_DATA", Path(__file__).parents[2].parent / "shared"))


def shared(name: str) -> Path:
    """A file or folder of it, such as ``models/mnist-8.onnx``; skips the test that lacks it."""
    path = DATA / name
    if not path.exists():
        pytest.skip(
            f"needs {name} in the folder that SLIPSTICK_DATA names, or in ../shared:"
            " docs/data.md says where to get it"
        )
    return path
