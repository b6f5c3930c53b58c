"""Measures how much of their time the boards of Dask's workers compute."""

import time
from pathlib import Path
from typing import Any

from ...cluster.opening import open_cluster_session
from ...loading import load_program
from ...targets import find_target
from .emulation import EmulatedBoards

_DISTINCT = 64
_SECONDS = 5.0
"""Seconds of every board's time in a measurement."""
_WARMED = 512
"""Images of each board before the time begins: by then it has the results of all that differ."""


def worker_efficiency(
    network: Path, target: str, boards: int, wire: str, slower: float
) -> dict[str, Any]:
    """Images per second of workers with an emulated board each, against what the boards can do.

    Parameters
    ----------
    network : Path
    target : str
        The emulated hardware.
    boards : int
        Worker processes.
    wire, slower
        As ``EmulatedBoards`` has them.

    Returns
    -------
    dict
        Figures of ``EmulatedBoards``, and ``busy``: the share of the time in which a board had
        images, by the workers' own clocks.
    """
    program = load_program(network, find_target(target).configuration)
    emulated = EmulatedBoards(program, boards, wire, slower, _DISTINCT)
    with open_cluster_session(network, f"local:{boards}", emulated.device, target) as session:
        session.run_batch(None, emulated.feeds(_WARMED * boards))
        count = emulated.count(_SECONDS)
        before, start = session.busy_seconds, time.perf_counter()
        found = session.run_batch(None, emulated.feeds(count))
        elapsed, busy = time.perf_counter() - start, session.busy_seconds - before
        retried = session.retried
    figures = emulated.figures(count, elapsed, retried, found)
    return {**figures, "busy": busy / elapsed / boards}
