"""Configurations against networks: cycles from the compiler's model, area, and the Pareto front."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import active_children, get_context, resource_tracker

from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.parts import Part

from ..errors import CapacityError, SlipstickError, TargetError
from ..fpga.area import Area, estimate
from ..fpga.budget import check_capacity, check_needs
from ..fpga.toolchains import find_toolchain
from ..graph import Graph
from ..targets import Target


@dataclass(frozen=True)
class Cost:
    """Predicted cost of one inference of a network.

    Parameters
    ----------
    cycles : int
    macs : int
    """

    cycles: int
    macs: int


@dataclass(frozen=True)
class Point:
    """A configuration with its area and what the networks cost on it.

    Parameters
    ----------
    configuration : Configuration
        Its clock is the one that rates are computed with.
    area : Area
        Estimated.
    costs : tuple of Cost
        A network each; empty if there is a problem.
    problem : str
        Why it cannot be had on the part, or not with all networks on the chip.
    """

    configuration: Configuration
    area: Area
    costs: tuple[Cost, ...]
    problem: str = ""

    @property
    def rates(self) -> tuple[float, ...]:
        """Inferences a second, a network each."""
        return tuple(self.configuration.clock_hz / cost.cycles for cost in self.costs)

    @property
    def rate(self) -> float:
        """The geometric mean of ``rates``, 0 if there are none."""
        return math.exp(sum(map(math.log, self.rates)) / len(self.costs)) if self.costs else 0.0


def dominates(one: Point, other: Point) -> bool:
    """Tells whether one is at least as fast and as small as the other, and better in one of them.

    Of those that are equal in rate and LUTs the one with fewer block RAMs is better, then the one
    with fewer DSP blocks.
    """
    if (one.rate, one.area.lut) == (other.rate, other.area.lut):
        return _blocks(one) < _blocks(other)
    return one.rate >= other.rate and one.area.lut <= other.area.lut


def split_front(points: Sequence[Point]) -> tuple[list[Point], list[Point]]:
    """The points that no other one dominates, and the others; each from the smallest area up."""
    front: list[Point] = []
    dominated: list[Point] = []
    for point in sorted(points, key=lambda point: (point.area.lut, -point.rate, _blocks(point))):
        # nothing that follows is better, and nothing before is faster than the front's last one
        on_front = not front or not dominates(front[-1], point)
        (front if on_front else dominated).append(point)
    return front, dominated


def _blocks(point: Point) -> tuple[int, int]:
    return point.area.bram, point.area.dsp


def explore(
    models: Sequence[str],
    configurations: Sequence[Configuration],
    part: Part,
    *,
    jobs: int,
    done: Callable[[int], None] = lambda count: None,
    pool: Executor | None = None,
) -> list[Point]:
    """Compiles every network for every configuration that the part has room for.

    Parameters
    ----------
    models : sequence of str
        Files of networks that can be read.
    configurations : sequence of Configuration
    part : Part
    jobs : int
        Processes.
    done : callable
        Told how many more configurations are done.
    pool : Executor, optional
        Compiles in place of processes of this machine; a path among the arguments must be good
        where it does.

    Returns
    -------
    list of Point
        In the order of ``configurations``.

    Raises
    ------
    SlipstickError
        If a process was ended from outside.
    """
    points: dict[int, Point] = {}
    with _processes(jobs) if pool is None else nullcontext(pool) as pool:
        waiting: dict[Future[tuple[tuple[Cost, ...], str]], tuple[int, Area]] = {}
        for number, configuration in enumerate(configurations):
            area = estimate(configuration)
            problem = _over_budget(configuration, area, part)
            if problem:
                points[number] = Point(configuration, area, (), problem)
                done(1)
                continue
            waiting[_submit(pool, tuple(models), configuration)] = number, area
        try:
            for future in as_completed(waiting):
                number, area = waiting[future]
                points[number] = Point(configurations[number], area, *future.result())
                done(1)
        except BrokenProcessPool:
            raise SlipstickError(
                f"one of {jobs} processes of the sweep was ended from outside, perhaps for want of"
                " memory: --jobs must be fewer"
            ) from None
    return [points[number] for number in range(len(configurations))]


def _submit(
    pool: Executor, models: tuple[str, ...], configuration: Configuration
) -> "Future[tuple[tuple[Cost, ...], str]]":
    with interrupts_later():
        return pool.submit(_costs, models, configuration)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Lets processes be started: they have all that they read, and are never interrupted.

    An interrupt is for this process, which ends the others.
    """
    # what multiprocessing starts first of all would let the signals through again
    resource_tracker.ensure_running()
    # a process, or thread, begins with the signals blocked that are blocked now
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _noted_interrupts():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _noted_interrupts() -> Iterator[None]:
    """Holds interrupts back until the body ends; then it raises KeyboardInterrupt if there was one.

    An interrupt that another thread of this process is sent reaches the main one, whatever that
    blocks.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the body, whatever they are at."""
    others = set(active_children())
    # threads run here, of the progress bar, so that this process must not be forked
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown()


def _over_budget(configuration: Configuration, area: Area, part: Part) -> str:
    """Says which resources the part lacks; empty if it has enough."""
    target = Target(configuration.shape, "", configuration, None, part)
    try:
        check_needs(asdict(area), target, part)
        check_capacity(target, part, find_toolchain(part))
    except TargetError as error:
        # without the name of a target that nobody gave one
        return str(error).partition(": ")[2]
    return ""


def _costs(models: tuple[str, ...], configuration: Configuration) -> tuple[tuple[Cost, ...], str]:
    """In a process of the sweep: the costs of all networks, or why there are none."""
    costs = []
    for model in models:
        try:
            costs.append(_cost(model, configuration))
        except SlipstickError as error:
            return (), f"{os.path.basename(model)}: {error}"
    return tuple(costs), ""


def _cost(model: str, configuration: Configuration) -> Cost:
    from ..compiler import compile_graph

    program = compile_graph(_graph(model), configuration, cut=False)
    if not program.predicted_cycles:
        raise CapacityError("nothing of it runs on the device")
    return Cost(program.predicted_cycles, program.macs)


@lru_cache(maxsize=16)
def _graph(model: str) -> Graph:
    from ..frontends import load

    return load(model)
