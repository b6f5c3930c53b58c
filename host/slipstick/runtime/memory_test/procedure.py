"""The memory test from its beginning to its end."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slipstick_rtl.dma.transfer import WORD_BYTES
from slipstick_rtl.dram.chips import DramChip

from ...devices.link import LinkDevice
from ...errors import InputError
from ..dram_port import DramPort
from .address_lines import check_address_lines
from .bandwidth import Bandwidth, measure_bandwidth
from .cells import CellTest, Progress
from .data_lines import check_data_lines
from .verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """All that the memory test found.

    Parameters
    ----------
    verdicts : tuple of Verdict
    bandwidth : Bandwidth or None
        None: the device has no cycles, or something was faulty.
    """

    verdicts: tuple[Verdict, ...]
    bandwidth: Bandwidth | None

    @property
    def passed(self) -> bool:
        """Every part passed."""
        return all(verdict.passed for verdict in self.verdicts)


class MemoryTest:
    """Tests the DRAM of a device; all that DRAM and activation memory hold is lost.

    Parameters
    ----------
    device : LinkDevice
    covered_bytes : int, optional
        That the cells' tests cover, half of them at either end of the memory; by default all.
    wait_seconds : float
        That the memory has to keep its contents, each time.
    pause : callable
        Lets so many seconds pass.

    Raises
    ------
    InputError
        If the hardware has no DRAM, or ``covered_bytes`` is no multiple of 8 within it.
    """

    def __init__(
        self,
        device: LinkDevice,
        *,
        covered_bytes: int | None = None,
        wait_seconds: float = 1.0,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        chip = device.configuration.dram_chip
        if chip is None:
            raise InputError(
                f"hardware {device.configuration.fingerprint} ({device.configuration.shape}) has no"
                " DRAM"
            )
        if covered_bytes is None:
            covered_bytes = chip.bytes
        check_covered("covered_bytes", covered_bytes, chip)
        self._chip, self._port = chip, DramPort(device)
        self._cells = CellTest(self._port, chip, covered_bytes, wait_seconds, pause)

    def run(self, progress: Progress) -> MemoryReport:
        """Runs every part.

        Parameters
        ----------
        progress : callable
            Told what begins and how many bytes it has; returns what is to be told how many more
            are done.

        Raises
        ------
        LinkError
            If the device does not answer.
        """
        verdicts = tuple(self._verdicts(progress))
        sound = all(verdict.passed for verdict in verdicts)
        bandwidth = measure_bandwidth(self._port) if sound else None
        return MemoryReport(verdicts=verdicts, bandwidth=bandwidth)

    def _verdicts(self, progress: Progress) -> Iterator[Verdict]:
        lines, sound_bits = check_data_lines(self._port, self._chip)
        yield lines
        yield check_address_lines(self._port, self._chip, sound_bits)
        yield self._cells.check("random pattern", progress, inverted=False)
        yield self._cells.check("its inverse", progress, inverted=True)


def check_covered(name: str, covered_bytes: int, chip: DramChip) -> None:
    """InputError unless so many bytes of a chip can be covered."""
    if not 0 < covered_bytes <= chip.bytes or covered_bytes % WORD_BYTES:
        raise InputError(
            f"{name} must be a multiple of {WORD_BYTES} within {WORD_BYTES}..{chip.bytes} (the size"
            f" of the DRAM), not {covered_bytes}"
        )
