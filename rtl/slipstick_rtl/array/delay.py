"""Moved: use :mod:`slipstick_rtl.primitives.delay`."""

from ..primitives.delay import delay as delay
