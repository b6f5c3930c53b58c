"""The old name of :mod:`slipstick.benchmarks.wire`, for ``python -m``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("slipstick.benchmarks.wire", run_name="__main__", alter_sys=True)
