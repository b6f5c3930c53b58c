"""Checks many random networks in several processes, and tells what came of them."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

from slipstick_rtl.config import Configuration

from ...devices import open_device
from ...errors import DeviceError, SlipstickError, UnsupportedError
from .decisions import DECISIONS, possible
from .formats import FORMATS, logarithmic
from .network_check import FileFormat, Outcome, check, plain_reason
from .recipes import Recipe
from .shrinking import shrink

CHUNK = 20
"""Networks that a process checks before it tells what came of them."""

REFERENCE_ENDS = "the reference runtime ends its process"
"""tflite-micro stops at a softmax whose exponentials add up to 512 or more: its assertions say that
a shift must be at most 31 bits."""

SECONDS = 180
"""A network that takes longer is a finding."""

SECONDS_VARIABLE = "SLIPSTICK_RANDOM_SECONDS"
"""Environment variable with another limit."""

MOST_SHRUNK = 5
"""Findings of which a minimal file is made."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Random networks of one kind of file for one configuration.

    Parameters
    ----------
    networks : int
    seed : int
        Network k is drawn from seed + k.
    configuration : Configuration
    form : str or None
        "tflite" or "onnx"; None: both by turns. Logarithmic hardware takes its own files only.
    rtl : int
        So many of the first networks run on the compiled RTL as well.
    processes : int
    """

    networks: int
    seed: int
    configuration: Configuration
    form: str | None = None
    rtl: int = 0
    processes: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        number_format = self.configuration.number_format
        if self.form is not None and self.configuration.logarithmic is not None:
            raise UnsupportedError(
                f"random networks for number_format {number_format!r} are .onnx files of that"
                f" format; a format must not be named, but is {self.form!r}"
            )

    def file_format(self, seed: int) -> FileFormat:
        """Returns the kind of file that a seed's network is written as."""
        if self.configuration.logarithmic is not None:
            return logarithmic(self.configuration.number_format)
        names = sorted(FORMATS)
        return FORMATS[self.form or names[seed % len(names)]]

    def recipe(self, seed: int) -> Recipe:
        """Returns the recipe of a seed."""
        return self.file_format(seed).draw(seed, self.configuration.weight_bytes)

    def check(self, seed: int) -> Outcome:
        """Checks the network of a seed."""
        rtl = seed - self.seed < self.rtl
        return check(self.recipe(seed), self.file_format(seed), self.configuration, rtl=rtl)

    def run_reference(self, seed: int) -> None:
        """Runs nothing but the reference on the network of a seed."""
        form, recipe = self.file_format(seed), self.recipe(seed)
        data = form.write(recipe)
        form.compare(data, form.load(data), form.inputs(recipe))


@dataclass
class Tally:
    """The outcomes of a campaign so far.

    Parameters
    ----------
    networks, mismatches, elements, tolerated : int
    rtl_networks, rtl_mismatches : int
    refused : counter of networks by reason
    coverage : counter of networks by decision of the compiler
    findings : list of Outcome
    """

    networks: int = 0
    mismatches: int = 0
    elements: int = 0
    tolerated: int = 0
    rtl_networks: int = 0
    rtl_mismatches: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    findings: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Counts one more network."""
        self.networks += 1
        self.mismatches += outcome.mismatches
        self.elements += outcome.elements
        self.tolerated += outcome.tolerated
        if outcome.rtl_mismatches is not None:
            self.rtl_networks += 1
            self.rtl_mismatches += outcome.rtl_mismatches
        if outcome.status == "refused":
            self.refused[outcome.reason] += 1
        self.coverage.update(outcome.taken)
        if outcome.is_finding:
            self.findings.append(outcome)

    def join(self, other: "Tally") -> None:
        """Adds the outcomes of another one."""
        self.networks += other.networks
        self.mismatches += other.mismatches
        self.elements += other.elements
        self.tolerated += other.tolerated
        self.rtl_networks += other.rtl_networks
        self.rtl_mismatches += other.rtl_mismatches
        self.refused.update(other.refused)
        self.coverage.update(other.coverage)
        self.findings += other.findings


def run(campaign: Campaign, advance: Callable[[int], object]) -> Tally:
    """Checks all networks of a campaign.

    Parameters
    ----------
    campaign : Campaign
    advance : callable
        Told how many more networks are done.
    """
    if campaign.rtl:
        # compiled once, before several processes ask for it
        with closing(open_device("sim", campaign.configuration)):
            pass
    tally = Tally()
    for outcomes in _chunks(campaign):
        for outcome in outcomes:
            tally.add(outcome)
        advance(len(outcomes))
    tally.findings.sort(key=lambda outcome: outcome.seed)
    return tally


def _chunks(campaign: Campaign) -> Iterator[list[Outcome]]:
    """The outcomes of some networks at a time, as processes tell them."""
    end = campaign.seed + campaign.networks
    waiting = [range(first, min(first + CHUNK, end)) for first in range(campaign.seed, end, CHUNK)][
        ::-1
    ]
    while waiting:
        lost: list[range] = []
        with _pool(campaign.processes) as pool:
            running: dict[Future[list[Outcome]], range] = {}
            while waiting or running:
                while waiting and len(running) < campaign.processes and not lost:
                    seeds = waiting.pop()
                    running[pool.submit(_check_all, campaign, seeds)] = seeds
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    seeds = running.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        lost.append(seeds)
                if lost and not running:
                    break
        for seeds in lost:
            yield [_check_alone(campaign, seed) for seed in seeds]


def _pool(processes: int) -> ProcessPoolExecutor:
    # a forked process would share the threads' locks of what was imported
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_prepare)


def _prepare() -> None:
    """One thread per process: as many processes as processors run already."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    signal.signal(signal.SIGALRM, _out_of_time)


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTimeError(f"a network must take at most {_limit()} s")


class _OutOfTimeError(Exception):
    pass


def _limit() -> int:
    return int(os.environ.get(SECONDS_VARIABLE, SECONDS))


def _check_all(campaign: Campaign, seeds: range) -> list[Outcome]:
    outcomes = []
    for seed in seeds:
        signal.alarm(_limit())
        try:
            outcome = campaign.check(seed)
        except _OutOfTimeError as error:
            outcome = Outcome(seed, "failed", plain_reason(error))
        finally:
            signal.alarm(0)
        outcomes.append(outcome)
    return outcomes


def _check_alone(campaign: Campaign, seed: int) -> Outcome:
    """A network in a process of its own, which may end."""
    with _pool(1) as pool:
        try:
            return pool.submit(_check_all, campaign, range(seed, seed + 1)).result()[0]
        except BrokenProcessPool:
            if _reference_ends(campaign, seed):
                return Outcome(seed, "refused", REFERENCE_ENDS)
            return Outcome(seed, "failed", "the process ended")


def _reference_ends(campaign: Campaign, seed: int) -> bool:
    """Tells whether the reference alone ends its process: then it has no result to compare."""
    with _pool(1) as pool:
        try:
            pool.submit(campaign.run_reference, seed).result()
        except BrokenProcessPool:
            return True
        except SlipstickError:
            return False
    return False


@dataclass(frozen=True)
class Finding:
    """A network that something is wrong with, as small as it could be made.

    Parameters
    ----------
    outcome : Outcome
    form : str
    layers : tuple of str
        Of the smallest network.
    file : Path
        The smallest network that is still wrong.
    """

    outcome: Outcome
    form: str
    layers: tuple[str, ...]
    file: Path


def minimal(campaign: Campaign, outcome: Outcome, folder: Path) -> Finding:
    """Shrinks a finding and writes its file.

    Parameters
    ----------
    campaign : Campaign
    outcome : Outcome
    folder : Path
        Made if it is not there.

    Raises
    ------
    DeviceError
        If the file cannot be written.
    """
    form, recipe = campaign.file_format(outcome.seed), campaign.recipe(outcome.seed)
    rtl = bool(outcome.rtl_mismatches)

    def fails(smaller: Recipe) -> bool:
        found = check(smaller, form, campaign.configuration, rtl=rtl)
        return (found.status, found.reason) == (outcome.status, outcome.reason)

    if outcome.reason != "the process ended":
        recipe = shrink(recipe, fails)
    ending = "tflite" if form.name == "tflite" else "onnx"
    path = folder / f"random-{form.name}-{outcome.seed}.{ending}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(form.write(recipe))
    except OSError as error:
        raise DeviceError(f"file {path} cannot be written: {error.strerror}") from None
    return Finding(outcome, form.name, tuple(layer.kind for layer in recipe.layers), path)


def figures(tally: Tally, configuration: Configuration) -> dict[str, Any]:
    """Returns what ``--json`` and reports say of a campaign."""
    able = possible(configuration)
    return {
        "networks": tally.networks,
        "total_mismatches": tally.mismatches + tally.rtl_mismatches,
        "codes_compared": tally.elements,
        "tolerated": tally.tolerated,
        "rtl": {"networks": tally.rtl_networks, "mismatches": tally.rtl_mismatches},
        "refused": dict(tally.refused.most_common()),
        "coverage": {name: tally.coverage[name] for name in DECISIONS if name in able},
    }
