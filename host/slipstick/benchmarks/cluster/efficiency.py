"""Measures how much of their time the boards of a pool compute."""

import time
from typing import Any

from ...program import Program
from ...session import InferenceSession
from .emulation import EmulatedBoards

_DISTINCT = 256
_SECONDS = 2.0
"""Seconds of every board's time in a measurement."""


def pool_efficiency(
    program: Program, boards: int, wire: str, slower: float = 1.0
) -> dict[str, Any]:
    """Images per second of a pool of emulated boards, against what the boards can do.

    Parameters
    ----------
    program, boards, wire, slower
        As ``EmulatedBoards`` has them.

    Returns
    -------
    dict
        Figures of ``EmulatedBoards``, and ``host_cpu_share``.
    """
    emulated = EmulatedBoards(program, boards, wire, slower, _DISTINCT)
    count = emulated.count(_SECONDS)
    feeds = emulated.feeds(count)
    device = "pool:" + ",".join([emulated.device] * boards)
    with InferenceSession(program, device) as session:
        # the boards' rates are known, and all results, when the time begins to count
        session.run_batch(None, emulated.feeds(_DISTINCT))
        session.run_batch(None, {name: value[: 32 * boards] for name, value in feeds.items()})
        busy, start = time.process_time(), time.perf_counter()
        found = session.run_batch(None, feeds)
        busy, seconds = time.process_time() - busy, time.perf_counter() - start
        retried = session.retried
    figures = emulated.figures(count, seconds, retried, found)
    return {**figures, "host_cpu_share": busy / seconds}
