"""Disturbed wires: hosts at work on the compiled RTL behind the pins of its UART, bit by bit."""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE, RATE_TOLERANCE

from ...devices.link.patience import Patience
from ...devices.link.transport import Transport
from ...errors import DeviceError
from .boards import TIMEOUT_CYCLES, CompiledBoard
from .network import Work
from .suite import FaultSuite, Tally
from .transport import RandomPlan

DIVISOR = 8
"""Clock cycles of a bit: enough for a glitch to be shorter than half of one."""

_MEAN_BYTES = (100, 300, 1000, 3000)
"""Bytes from one disturbance to the next."""

_CALM_RATES = (0.0, -RATE_TOLERANCE, RATE_TOLERANCE)
_RATES = (*_CALM_RATES, -0.01, 0.01, -0.03, 0.03, -0.05, 0.05, -0.1, 0.1)
"""By how much the bits of the host's end are longer than those of the board's."""

_ANSWER_BYTES = 1000
"""On the wire, from a window of requests to the end of their answers."""


class WiredBoard(CompiledBoard):
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

    forget_cycles = 2 * TIMEOUT_CYCLES

    def __init__(self, configuration: Configuration, seed: int) -> None:
        try:
            from slipstick_sim.toolchain import ToolError
            from slipstick_sim.verilated import serial_library
            from slipstick_sim.verilated.device import CompiledCore, CompiledTransport
        except ImportError as error:
            raise DeviceError(f"disturbed wires need slipstick[sim]: {error}") from error
        try:
            self.library = serial_library(configuration, DIVISOR, timeout_cycles=TIMEOUT_CYCLES)
            core = CompiledCore(self.library)
        except (ToolError, OSError) as error:
            raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
        byte_cycles = BITS_PER_BYTE * DIVISOR
        # a second of a host's patience is worth so much of the board's time
        cycles_per_second = 10 * _ANSWER_BYTES * byte_cycles
        super().__init__(configuration, core, cycles_per_second)
        self.rates: Counter[float] = Counter()
        self._random = random.Random(seed)
        self._byte_cycles = byte_cycles
        self.transport: Transport = CompiledTransport(
            core, cycles_per_second=cycles_per_second, byte_cycles=2 * byte_cycles
        )
        # few enough retries for the link's timeout to be relied on: zeros for a longest frame would
        # take most of the simulation's time
        self.patience = Patience(
            timeout_seconds=0.1,
            retries=4,
            silence_seconds=2 * TIMEOUT_CYCLES / cycles_per_second,
        )

    @property
    def disturbances(self) -> dict[str, int]:
        """Counts the disturbances of each kind."""
        return self._core.disturbances

    def calm(self, calm: bool) -> None:
        """Ends the disturbances, or begins new ones at another rate of bits."""
        rate = self._random.choice(_CALM_RATES if calm else _RATES)
        self.rates[rate] += 1
        self._core.set_bit_cycles(DIVISOR * (1 + rate))
        mean_bytes = self._random.choice(_MEAN_BYTES)
        mean_cycles = 0 if calm else mean_bytes * self._byte_cycles
        self._core.disturb(self._random.getrandbits(32), mean_cycles)


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
        Told before every operation how many of the rarest kind there are by now.

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
            suite.episode(beat=partial(tick, rarest))
        return _figures(board, suite.tally) | {"seconds": time.monotonic() - start}


def _figures(board: WiredBoard, tally: Tally) -> dict[str, Any]:
    return {
        "disturbances": board.disturbances,
        "episodes_by_rate_error": {f"{rate:+.0%}": n for rate, n in sorted(board.rates.items())},
        **tally.figures(),
        "device_cycles": board.cycles,
    }
