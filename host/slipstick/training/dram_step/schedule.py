"""Puts a list's steps in an order in which the DMA moves data while the core works.

Steps come in the order of the program: one after the other they give the right results. A step may
pass others that it does not meet (:meth:`.effects.Access.meets`). RUNs keep their order. What meets
a run that is under way waits for its end.
"""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
from slipstick_rtl.dma.transfer import Operation, Transfer

from .effects import Memory, Step
from .timeline import predict_list

WAIT = Transfer(operation=Operation.WAIT)
_WINDOW = 160
"""Steps that one may pass, at most."""
_OVERLONG = 2, 1.5, 1


def schedule(steps: Sequence[Step], overlong: float = 2) -> list[int | None]:
    """Orders steps.

    Parameters
    ----------
    steps : sequence of Step
        In the order of the program.
    overlong : float
        A LOAD or STORE may take so many times what is left of the run. More lets the DMA rest less,
        less lets the core rest less.

    Returns
    -------
    list of int or None
        Numbers of steps; None: a WAIT.
    """
    return list(_Scheduler(steps, overlong).order())


def best_schedule(steps: Sequence[Step]) -> list[int | None]:
    """The order that takes the fewest cycles, predicted, whichever of core and DMA waits more."""
    orders = [schedule(steps, overlong) for overlong in _OVERLONG]
    return min(orders, key=lambda order: predict_list(steps, order))


def waits_for(steps: Sequence[Step]) -> list[set[int]]:
    """For each step, those before it that must have been executed; no more than a window of them.

    Parameters
    ----------
    steps : sequence of Step
    """
    recent = {memory: _Recent() for memory in Memory}
    last_run, found = -1, list[set[int]]()
    for number, step in enumerate(steps):
        needed = set[int]()
        for memory, begin, end, writes in step.accesses:
            needed.update(recent[memory].meeting(begin, end, writes, number - _WINDOW))
        for memory, begin, end, writes in step.accesses:
            recent[memory].add(number, begin, end, writes)
        if step.runs:
            if last_run >= 0:
                needed.add(last_run)
            last_run = number
        needed.discard(number)
        found.append(needed)
    return found


class _Recent:
    """Accesses of a memory, the last ones."""

    def __init__(self) -> None:
        self._rows = np.zeros((4 * _WINDOW, 4), np.int64)
        self._count = 0

    def add(self, number: int, begin: int, end: int, writes: bool) -> None:
        if self._count == len(self._rows):
            kept = self._rows[len(self._rows) // 2 :].copy()
            if kept[0, 0] > number - _WINDOW:
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            else:
                self._rows[: len(kept)] = kept
                self._count = len(kept)
        self._rows[self._count] = number, begin, end, writes
        self._count += 1

    def meeting(self, begin: int, end: int, writes: bool, first: int) -> list[int]:
        rows = self._rows[: self._count]
        meets = (rows[:, 0] >= first) & (rows[:, 1] < end) & (begin < rows[:, 2])
        if not writes:
            meets &= rows[:, 3] != 0
        return rows[meets, 0].tolist()


class _Scheduler:
    """Takes what the next run needs first, then what comes first in the program.

    The first step that is not taken stays within a window of those that are.
    """

    def __init__(self, steps: Sequence[Step], overlong: float) -> None:
        self._steps, self._overlong = steps, overlong
        self._needs = waits_for(steps)
        self._missing = [len(needed) for needed in self._needs]
        self._followers: list[list[int]] = [[] for _ in steps]
        for number, needed in enumerate(self._needs):
            for other in needed:
                self._followers[other].append(number)
        self._taken = [False] * len(steps)
        self._ready = [n for n, missing in enumerate(self._missing) if not missing]
        self._runs = [n for n, step in enumerate(steps) if step.runs]
        self._next_run = 0
        self._running: int | None = None
        self._left = 0
        self._first = 0

    def order(self) -> Iterator[int | None]:
        """All steps, and WAITs."""
        taken = 0
        while taken < len(self._steps):
            number = self._choose()
            if number is None:
                assert self._running is not None
                self._end(self._running)
                self._running = None
                yield None
                continue
            taken += 1
            self._take(number)
            yield number
        if self._running is not None:
            yield None

    def _choose(self) -> int | None:
        """The next step; None: the run that is under way must end."""
        run = self._runs[self._next_run] if self._next_run < len(self._runs) else None
        needed = self._needed_now(run)
        if needed is not None:
            return needed
        if self._running is None:
            if run is not None and not self._missing[run]:
                return run
            return self._first_ready(None)
        if self._left > 0 or run is None:
            found = self._first_ready(self._left if run is not None else None)
            if found is not None:
                return found
        return None

    def _needed_now(self, run: int | None) -> int | None:
        """A step that can be taken and that the next run waits for, or that is the oldest."""
        while self._first < len(self._steps) and self._taken[self._first]:
            self._first += 1
        if run is None:
            return None
        reached, stack, best = {run}, [run], None
        if run >= self._first + _WINDOW:
            # what lies further behind than the window was not compared with the run
            reached.add(self._first)
            stack.append(self._first)
            best = None if self._missing[self._first] else self._first
        while stack:
            for other in self._needs[stack.pop()]:
                if self._taken[other] or other in reached:
                    continue
                reached.add(other)
                stack.append(other)
                if not self._missing[other] and (best is None or other < best):
                    best = other
        return best

    def _first_ready(self, most: int | None) -> int | None:
        """The first step that can be taken, RUNs apart, if it takes not much more than so long.

        Beside a run whose post-processor is busy a LOAD, and otherwise a STORE.
        """
        limit = self._first + _WINDOW
        self._ready = sorted(number for number in set(self._ready) if not self._taken[number])
        found = None
        for number in self._ready:
            step = self._steps[number]
            if number >= limit:
                break
            if step.runs or (most is not None and step.cycles > self._overlong * most):
                continue
            if self._running is None or step.stores != self._busy:
                return number
            if found is None:
                found = number
        return found

    @property
    def _busy(self) -> bool:
        """The post-processor is at work for most of the run that is under way."""
        if self._running is None:
            return False
        return self._steps[self._running].is_busy

    def _take(self, number: int) -> None:
        step = self._steps[number]
        self._taken[number] = True
        if step.runs:
            self._running, self._left = number, step.cycles
            self._next_run += 1
            return
        self._left -= step.cycles
        self._end(number)

    def _end(self, number: int) -> None:
        for follower in self._followers[number]:
            self._missing[follower] -= 1
            if not self._missing[follower]:
                heapq.heappush(self._ready, follower)
