"""Measures how fast the DMA reads and writes a DRAM: by lists in it, in cycles of the device."""

from dataclasses import dataclass
from typing import Any

from slipstick_rtl.dma.transfer import TRANSFER_WORDS, Operation, Transfer

from ..dram_port import DramPort
from .cells import check_executed

_MEASURED_BYTES = 1 << 20
_FEWEST, _MOST = 16, 64
"""Instructions of a list that move something."""
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """Bytes that a list moved, and the cycles from its beginning to its end.

    Parameters
    ----------
    bytes : int
    read_cycles, write_cycles : int
    clock_hz : int
    peak : int
        Bytes per second that the chip's pins can carry.
    """

    bytes: int
    read_cycles: int
    write_cycles: int
    clock_hz: int
    peak: int

    @property
    def read(self) -> float:
        """Bytes per second."""
        return self.bytes * self.clock_hz / self.read_cycles

    @property
    def write(self) -> float:
        """Bytes per second."""
        return self.bytes * self.clock_hz / self.write_cycles

    def entry(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        return {
            "read_mb_per_s": self.read / 1e6,
            "write_mb_per_s": self.write / 1e6,
            "peak_mb_per_s": self.peak / 1e6,
            "read_share_of_peak": self.read / self.peak,
            "write_share_of_peak": self.write / self.peak,
        }


def measure_bandwidth(port: DramPort) -> Bandwidth | None:
    """Runs a list of LOADs, then one of STOREs; None on a device without cycles.

    The memory must be sound: the DMA would execute whatever the list has become.

    Raises
    ------
    LinkError
        If a list did not come to its end.
    """
    size = port.stage_bytes
    count = min(max(_MEASURED_BYTES // size, _FEWEST), _MOST)
    read_cycles = _run(port, Operation.LOAD, size, count)
    write_cycles = _run(port, Operation.STORE, size, count)
    if not read_cycles or not write_cycles:
        return None
    return Bandwidth(
        bytes=size * count,
        read_cycles=read_cycles,
        write_cycles=write_cycles,
        clock_hz=port.device.configuration.clock_hz,
        peak=port.device.configuration.dram_peak,
    )


def _run(port: DramPort, operation: Operation, size: int, count: int) -> int:
    """Cycles of a list at the beginning of DRAM that moves what is behind it."""
    first = TRANSFER_WORDS * (count + 1)
    words = Transfer(operation=operation, run_bytes=size).words
    moves = [
        Transfer(operation=operation, dram=first + words * k, run_bytes=size) for k in range(count)
    ]
    listed = [*moves, Transfer(operation=Operation.END)]
    port.submit_write(0, b"".join(transfer.pack() for transfer in listed))
    status = port.run_list(0, _TIMEOUT_SECONDS)
    check_executed(status)
    return status.cycles
