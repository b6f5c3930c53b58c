"""Settings of all tests."""

import os

# A test runs what it compiles for a short time.
os.environ.setdefault("SLIPSTICK_OPTIMISATION", "-O1")
