"""Place and route from several starting points at once; the best result is kept."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import build_tools as tools
from .budget import check_usage
from .errors import TargetError
from .parts import Part
from .place_and_route import Layout, does_not_fit, read_report
from .targets import Target
from .toolchains import TIMING, Toolchain


@dataclass(frozen=True)
class Attempt:
    """What place and route made of a seed.

    Parameters
    ----------
    seed : int
    folder : str
        Of its files, below the build's.
    layout : Layout or None
        None: it failed.
    problem : str
        Why it failed.
    """

    seed: int
    folder: str
    layout: Layout | None
    problem: str = ""

    def figures(self) -> dict[str, Any]:
        """As the reports have it."""
        if self.layout is None:
            return {"seed": self.seed, "problem": self.problem}
        used = {name: entry.used for name, entry in self.layout.usage.items()}
        return {"seed": self.seed, "fmax_mhz": round(self.layout.fmax_mhz, 2), **used}


def place_all(
    toolchain: Toolchain,
    program: str,
    target: Target,
    part: Part,
    asked_mhz: float,
    seeds: Sequence[int],
    folder: Path,
) -> list[Attempt]:
    """Places and routes with every seed, a process each, as many at once as there are cores."""

    def attempt(seed: int) -> Attempt:
        name = f"seed_{seed}"
        (folder / name).mkdir(exist_ok=True)
        arguments = toolchain.placing(part, asked_mhz=asked_mhz, seed=seed, folder=name)
        log = folder / name / "place_and_route.log"
        try:
            _run([program, *arguments], folder, log, target, part)
            layout = read_report(folder / name / TIMING, toolchain.resources)
            check_usage(layout, target, part, toolchain)
        except TargetError as error:
            return Attempt(seed, name, None, str(error))
        return Attempt(seed, name, layout)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(attempt, seeds))


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The fastest one.

    Raises
    ------
    TargetError
        If all failed: what the first of them said.
    """
    placed = [attempt for attempt in attempts if attempt.layout is not None]
    if not placed:
        raise TargetError(attempts[0].problem)
    return max(placed, key=lambda attempt: attempt.layout.fmax_mhz if attempt.layout else 0.0)


def _run(command: list[str], folder: Path, log: Path, target: Target, part: Part) -> None:
    try:
        tools.run("place and route", command, folder=folder, log=log)
    except TargetError:
        overfull = does_not_fit(log.read_text("utf-8", errors="replace")) if log.exists() else None
        if overfull is None:
            raise
        raise TargetError(
            f"target {target.name} does not fit on {part.device}: it needs {overfull}"
            f" (the whole log: {log})"
        ) from None
