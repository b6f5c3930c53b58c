"""Place and route from several starting points at once; the best result is kept.

Routing takes two thirds of the time on a large chip, and nextpnr's estimate of a placement's clock
tells roughly which of them are worth it: it lies below the routed clock, nearly in the same order.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from slipstick_rtl.fpga.parts import Part

from .. import toolchain as tools
from ..errors import TargetError
from ..targets import Target
from .budget import check_usage
from .place_and_route import Estimate, Layout, does_not_fit, read_estimate, read_report
from .toolchains import TIMING, Toolchain, threaded_arguments


@dataclass(frozen=True)
class Attempt:
    """Result of place and route with one seed.

    Parameters
    ----------
    seed : int
    folder : str
        Of its files, below the build's.
    layout : Layout or None
        None: it failed, or was not routed.
    problem : str
        Why it failed.
    estimate : Estimate or None
        The clocks before routing, where they were asked for.
    threads : tuple of str
        The arguments with which place and route used threads; none if it has none.
    """

    seed: int
    folder: str
    layout: Layout | None = None
    problem: str = ""
    estimate: Estimate | None = None
    threads: tuple[str, ...] = ()

    def figures(self) -> dict[str, Any]:
        """As the reports have it."""
        figures: dict[str, Any] = {"seed": self.seed}
        if self.estimate is not None:
            figures["estimate_mhz"] = round(self.estimate.fmax_mhz, 2)
        if self.problem:
            figures["problem"] = self.problem
        if self.layout is not None:
            figures["fmax_mhz"] = round(self.layout.fmax_mhz, 2)
            if self.layout.missed:
                figures["missed_clocks"] = list(self.layout.missed)
            figures |= {name: entry.used for name, entry in self.layout.usage.items()}
        return figures


@dataclass(frozen=True)
class Placer:
    """Runs place and route; its arguments are the same whatever the seed.

    Parameters
    ----------
    toolchain : Toolchain
    program : str
        Of place and route.
    target : Target
    part : Part
    asked_mhz : float
    folder : Path
        The build's.
    placer : str
        One of the toolchain's; "" if it has no choice.
    """

    toolchain: Toolchain
    program: str
    target: Target
    part: Part
    asked_mhz: float
    folder: Path
    placer: str = ""

    def place_all(
        self, seeds: Sequence[int], routed: int | None = None, spread: "Spread | None" = None
    ) -> list[Attempt]:
        """Places and routes with every seed, a process each, as many at once as there are cores.

        Parameters
        ----------
        seeds : sequence of int
        routed : int
            Places with every seed, but routes only so many: those of the best estimates.
        spread : callable, optional
            Runs attempts elsewhere.
        """
        run = _spread_here if spread is None else spread
        attempts = [Attempt(seed, f"seed_{seed}") for seed in seeds]
        if routed is None or routed >= len(attempts):
            return list(run(self, Placer.route, attempts))
        attempts = list(run(self, Placer.estimate, attempts))
        placed = [attempt for attempt in attempts if attempt.estimate is not None]
        # the clock that lacks most decides, whichever it is
        placed.sort(key=lambda each: each.estimate.share if each.estimate else 0.0)
        chosen = placed[-routed:]
        done = {attempt.seed: attempt for attempt in run(self, Placer.route, chosen)}
        return [done.get(attempt.seed, attempt) for attempt in attempts]

    def estimate(self, attempt: Attempt) -> Attempt:
        """Places without routing."""
        try:
            log = self._run(attempt, "place.log", "--no-route")
            return replace(attempt, estimate=read_estimate(log))
        except TargetError as error:
            return replace(attempt, problem=str(error))

    def route(self, attempt: Attempt) -> Attempt:
        """Places and routes; places once more where it was estimated, and alike."""
        if attempt.problem:
            return attempt
        try:
            self._run(attempt, "place_and_route.log")
            report = self.folder / attempt.folder / TIMING
            layout = read_report(report, self.toolchain.resources)
            check_usage(layout, self.target, self.part, self.toolchain)
        except TargetError as error:
            return replace(attempt, problem=str(error))
        return replace(attempt, layout=layout, threads=self._threads)

    @cached_property
    def _threads(self) -> tuple[str, ...]:
        """Asks the program once for all seeds: it takes seconds to start."""
        return threaded_arguments(self.program)

    def _run(self, attempt: Attempt, log_name: str, *further: str) -> Path:
        """Calls the program; returns its log."""
        (self.folder / attempt.folder).mkdir(exist_ok=True)
        arguments = self.toolchain.placing(
            self.part, asked_mhz=self.asked_mhz, seed=attempt.seed, folder=attempt.folder
        )
        log = self.folder / attempt.folder / log_name
        placer = ["--placer", self.placer] if self.placer else []
        command = [self.program, *arguments, *placer, *self._threads, *further]
        try:
            tools.run("place and route", command, folder=self.folder, log=log)
        except TargetError:
            said = log.read_text("utf-8", errors="replace") if log.exists() else ""
            overfull = does_not_fit(said)
            if overfull is None:
                raise
            raise TargetError(
                f"target {self.target.name} does not fit on {self.part.device}: it needs {overfull}"
                f" (the whole log: {log})"
            ) from None
        return log


Way = Callable[[Placer, Attempt], Attempt]
"""``Placer.estimate`` or ``Placer.route``."""

Spread = Callable[[Placer, Way, Sequence[Attempt]], Iterable[Attempt]]
"""Goes one way with several attempts, and returns what became of them, in their order."""


def _spread_here(placer: Placer, way: Way, attempts: Sequence[Attempt]) -> list[Attempt]:
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(lambda attempt: way(placer, attempt), attempts))


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The fastest one of those whose other clocks are fast enough; if none are, the nearest.

    Raises
    ------
    TargetError
        If all failed: what the first of them said.
    """
    placed = [attempt for attempt in attempts if attempt.layout is not None]
    if not placed:
        raise TargetError(next(attempt.problem for attempt in attempts if attempt.problem))
    return max(placed, key=_merit)


def _merit(attempt: Attempt) -> tuple[float, float]:
    layout = attempt.layout
    return (min(1.0, layout.share_of_others), layout.fmax_mhz) if layout else (0.0, 0.0)
