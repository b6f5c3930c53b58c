"""The old name of :mod:`slipstick.benchmarks.speed`, for ``python -m``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("slipstick.benchmarks.speed", run_name="__main__", alter_sys=True)
