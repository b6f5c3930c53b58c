"""Real networks and data that are not part of the project: ``SLIPSTICK_DATA``, or ``../shared``."""

import os
from pathlib import Path

DATA = Path(os.environ.get("SLIPSTICK_DATA", Path(__file__).parents[2].parent / "shared"))
