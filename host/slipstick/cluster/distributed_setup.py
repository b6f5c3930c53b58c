"""Imports Dask with settings that suit boards, and with nothing of its log on the screen."""

import logging
import os
from typing import Any

from ..errors import InputError

_DEAF = logging.CRITICAL + 1
_LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "bokeh")
_ALLOWED_FAILURES = 10
"""Workers that may end while they have a task, before the task is given up."""
_SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES,
    # programs and images are what is sent
    "distributed.admin.large-graph-warning-threshold": "10GB",
    # a task may start processes: the random networks of `verify`
    "distributed.worker.daemon": False,
}


def load_distributed() -> None:
    """Imports Dask's scheduler.

    Raises
    ------
    InputError
        If it is not installed.
    """
    # what worker processes print
    os.environ.setdefault("DASK_LOGGING", repr(dict.fromkeys(_LOGGERS, "critical")))
    try:
        import distributed as distributed
        from dask import config
    except ImportError as error:
        raise InputError(
            f"clusters need the Python package {error.name}: pip install 'slipstick[cluster]'"
        ) from None
    config.set(_SETTINGS)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(_DEAF)
