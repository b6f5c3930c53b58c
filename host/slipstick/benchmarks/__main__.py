"""Runs the suite: ``python -m slipstick.benchmarks``."""

import sys

from ..failures import exit_status
from .suite import benchmarks

if __name__ == "__main__":
    sys.exit(exit_status(benchmarks))
