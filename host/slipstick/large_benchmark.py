"""The old name of :mod:`slipstick.benchmarks.large`, for ``python -m``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("slipstick.benchmarks.large", run_name="__main__", alter_sys=True)
