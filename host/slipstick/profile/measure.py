"""Measures one inference on the simulated RTL."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from .. import reports
from ..devices.simulation import SimulationDevice
from ..program import Program
from ..runtime.executor import Execution
from ..runtime.feeds import random_feeds
from .profiles import LayerProfile, RunEvents
from .recorded_device import LinkTransfer, LoggedDevice
from .recorder import Recorder


@dataclass(frozen=True)
class Benchmark:
    """Cycles of one inference, from its first instruction to its last result in memory.

    Parameters
    ----------
    program : Program
    cycles : int
    layers : tuple of LayerProfile
    fmax_mhz : float or None
        What place and route reached for this hardware, None if it was not built.
    runs : tuple of RunEvents
    transfers : tuple of LinkTransfer
        What crossed the link meanwhile; the program itself had been loaded before.
    build : mapping or None
        Report of the bitstream that was built for this hardware, None if there is none.
    """

    program: Program
    cycles: int
    layers: tuple[LayerProfile, ...]
    fmax_mhz: float | None
    runs: tuple[RunEvents, ...] = ()
    transfers: tuple[LinkTransfer, ...] = ()
    build: Mapping[str, Any] | None = None

    @property
    def utilisation(self) -> float:
        """Share of the array's peak multiply-accumulates, 0..1."""
        peak = self.cycles * self.program.hardware.macs_per_cycle
        return self.program.macs / peak if peak else 0.0

    @property
    def prediction_error(self) -> float:
        """Computes by how much the prediction is above the measured cycles, as a share of them."""
        if not self.cycles:
            return 0.0
        return self.program.predicted_cycles / self.cycles - 1

    @property
    def clock_mhz(self) -> float:
        """The clock that rates are computed with: that of the bitstream, not what place and route
        would allow; without a bitstream that of the target."""
        return reports.clock_mhz(self.build, self.program.hardware.clock_hz)

    @property
    def inferences_per_second(self) -> float | None:
        """Single stream, without transfers; None if the device does nothing."""
        return self.clock_mhz * 1e6 / self.cycles if self.cycles else None


def measure(program: Program, seed: int = 0, target: str | None = None) -> Benchmark:
    """Simulates one inference on a seeded random input; the cycles do not depend on it.

    Parameters
    ----------
    program : Program
    seed : int
        Of the input.
    target : str, optional
        Whose last build tells the clock; by default any build of the same hardware does.

    Raises
    ------
    DeviceError
        If the simulation cannot be built or does not answer.
    """
    feeds = random_feeds(program, seed)
    with closing(LoggedDevice(SimulationDevice(program.hardware))) as device:
        recorder = Recorder(Execution(program, device))
        device.transfers.clear()
        recorder.infer(feeds)
        layers = recorder.layers()
    build = reports.last_build(program.fingerprint, target)
    return Benchmark(
        program,
        recorder.cycles,
        tuple(layers),
        fmax_mhz=None if build is None else float(build["fmax_mhz"]),
        runs=recorder.runs,
        transfers=tuple(device.transfers),
        build=build,
    )


def benchmark_entry(benchmark: Benchmark) -> dict[str, Any]:
    """A benchmark as ``--json`` and the reports have it."""
    program = benchmark.program
    return {
        "fingerprint": program.fingerprint,
        "shape": program.hardware.shape,
        "cycles": benchmark.cycles,
        "predicted_cycles": program.predicted_cycles,
        "prediction_error": benchmark.prediction_error,
        "macs": program.macs,
        "utilisation": benchmark.utilisation,
        "layers": [
            {
                "layer": line.layer.name,
                "operator": line.layer.operator,
                "where": line.layer.where,
                "macs": line.layer.macs,
                "cycles": line.cycles,
                "predicted_cycles": line.layer.predicted_cycles,
                "utilisation": line.utilisation(program.hardware.macs_per_cycle),
            }
            for line in benchmark.layers
        ],
        "fmax_mhz": benchmark.fmax_mhz,
        "clock_mhz": benchmark.clock_mhz,
        "clock_is": "configured" if benchmark.fmax_mhz is None else "of the bitstream",
        "inferences_per_second": benchmark.inferences_per_second,
    }
