"""Disturbed wires: hosts at work on the compiled RTL behind the pins of its UART, bit by bit."""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.line import BITS_PER_BYTE, RATE_TOLERANCE

from .devices.exchange import Patience
from .devices.faults import RandomPlan
from .devices.transport import Transport
from .errors import DeviceError
from .fault_boards import TIMEOUT_CYCLES
from .fault_network import Work
from .fault_suite import FaultSuite, Tally

DIVISOR = 8
"""Clock cycles of a bit: enough for a glitch to be shorter than half of one."""

_MEAN_BYTES = (100, 300, 1000, 3000)
"""From one disturbance to the next."""

_CALM_RATES = (0.0, -RATE_TOLERANCE, RATE_TOLERANCE)
_RATES = (*_CALM_RATES, -0.01, 0.01, -0.03, 0.03, -0.05, 0.05, -0.1, 0.1)
"""By how much the bits of the host's end are longer than those of the board's."""

_ANSWER_BYTES = 1000
"""On the wire, from a window of requests to the end of their answers."""

_PAUSE_CYCLES = 50


class WiredBoard:
    """The RTL behind the pins of its UART; while it is not calm, both wires are disturbed.

    Calm wires carry bits whose rate is off by as much as it may be.

    Parameters
    ----------
    configuration : Configuration
    seed : int
        Of all disturbances.

    Members
    -------
    library : Path
        The compiled RTL.
    rates : Counter of float
        How often the host's bits were longer by each share.

    Raises
    ------
    DeviceError
        If the simulation cannot be built.
    """

    stall_seconds = 0.2

    def __init__(self, configuration: Configuration, seed: int) -> None:
        try:
            from slipstick_sim.compiled import serial_library
            from slipstick_sim.compiled.device import CompiledCore, CompiledTransport
            from slipstick_sim.toolchain import ToolError
        except ImportError as error:
            raise DeviceError(f"disturbed wires need slipstick[sim]: {error}") from error
        try:
            self.library = serial_library(configuration, DIVISOR, timeout_cycles=TIMEOUT_CYCLES)
            self._core = CompiledCore(self.library)
        except (ToolError, OSError) as error:
            raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
        self.configuration = configuration
        self.rates: Counter[float] = Counter()
        self._random = random.Random(seed)
        byte_cycles = BITS_PER_BYTE * DIVISOR
        self._byte_cycles = byte_cycles
        # a second of a host's patience is worth so much of the board's time
        self._cycles_per_second = 10 * _ANSWER_BYTES * byte_cycles
        self.transport: Transport = CompiledTransport(
            self._core, cycles_per_second=self._cycles_per_second, byte_cycles=2 * byte_cycles
        )
        # few enough retries for the link's timeout to be relied on: zeros for a longest frame would
        # take most of the simulation's time
        self.patience = Patience(
            timeout_seconds=0.1,
            retries=4,
            silence_seconds=2 * TIMEOUT_CYCLES / self._cycles_per_second,
        )

    @property
    def cycles(self) -> int:
        """Clock cycles that have passed."""
        return self._core.cycles

    @property
    def disturbances(self) -> dict[str, int]:
        """How many there were of each kind."""
        return self._core.disturbances

    def calm(self, calm: bool) -> None:
        """Ends the disturbances, or begins new ones at another rate of bits."""
        rate = self._random.choice(_CALM_RATES if calm else _RATES)
        self.rates[rate] += 1
        self._core.set_bit_cycles(DIVISOR * (1 + rate))
        mean_bytes = self._random.choice(_MEAN_BYTES)
        mean_cycles = 0 if calm else mean_bytes * self._byte_cycles
        self._core.disturb(self._random.getrandbits(32), mean_cycles)

    def idle(self, seconds: float) -> None:
        """Runs for the cycles that the seconds are worth."""
        self._core.run_cycles(round(seconds * self._cycles_per_second))

    def forget(self) -> None:
        """Runs for longer than the link's timeout."""
        self._core.run_cycles(2 * TIMEOUT_CYCLES)

    def pause(self, seconds: float) -> None:
        """Runs for some cycles, or until the run ends."""
        self._core.wait_idle(_PAUSE_CYCLES)

    def power_cycle(self) -> None:
        """A core as after configuration."""
        self._core.reset()

    def close(self) -> None:
        """Frees the core."""
        self._core.close()


def disturb(
    configuration: Configuration,
    work: Work,
    disturbances: int,
    seed: int,
    tick: Callable[[int], object] = int,
) -> dict[str, Any]:
    """Hosts at work until each kind of disturbance came so often.

    Parameters
    ----------
    configuration : Configuration
        As of ``work``.
    work : Work
    disturbances : int
        Of every kind, at least, on both wires together.
    seed : int
    tick : callable
        Told before every episode how many of the rarest kind there are by now.

    Returns
    -------
    dict
        Figures for people and reports.
    """
    start = time.monotonic()
    with closing(WiredBoard(configuration, seed)) as board:
        # nothing but the wires fails
        suite = FaultSuite(board, work, seed, plan=RandomPlan(seed))
        while (rarest := min(board.disturbances.values())) < disturbances:
            tick(rarest)
            suite.episode()
        return _figures(board, suite.tally) | {"seconds": time.monotonic() - start}


def _figures(board: WiredBoard, tally: Tally) -> dict[str, Any]:
    return {
        "disturbances": board.disturbances,
        "episodes_by_rate_error": {f"{rate:+.0%}": n for rate, n in sorted(board.rates.items())},
        "operations": dict(tally.operations),
        "right": dict(tally.right),
        "failed_by_code": dict(tally.failed),
        "wrong": len(tally.wrong),
        "without_recovery": len(tally.unrecovered),
        "without_recovery_because": tally.unrecovered[:20],
        "recoveries": len(tally.result_seconds),
        "longest_operation_seconds": tally.longest_seconds,
        "device_cycles": board.cycles,
    }
