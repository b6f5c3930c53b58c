"""The old name of :mod:`slipstick.benchmarks.scaling`, for ``python -m``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("slipstick.benchmarks.scaling", run_name="__main__", alter_sys=True)
