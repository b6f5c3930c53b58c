"""Modules of this folder that tests share."""

import sys
from pathlib import Path

# tests are imported without their folder being on the path
sys.path.insert(0, str(Path(__file__).parent))
