"""The old name of :mod:`slipstick.examples.demo`, for ``python -m``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("slipstick.examples.demo", run_name="__main__", alter_sys=True)
