"""A golden model whose DRAM has faults: in its lines, or in its cells."""

from collections.abc import Callable

import numpy as np
from slipstick.devices.model import ModelDevice
from slipstick_rtl.config import Configuration

Change = Callable[[np.ndarray], np.ndarray]


class FaultyDram:
    """Stands for the golden DMA's array of bytes; behind it are words of the chip.

    Parameters
    ----------
    cells : array
        Words of the chip.
    address : callable
        Where words really lie.
    data : callable
        What becomes of words on the data lines, each time.
    begin, end : int
        Of the bytes that this is a part of.
    """

    def __init__(
        self, cells: np.ndarray, address: Change, data: Change, begin: int, end: int
    ) -> None:
        self.cells, self._address, self._data = cells, address, data
        self._begin, self._end = begin, end

    def __getitem__(self, part: slice) -> "FaultyDram":
        begin, end, _ = part.indices(self._end - self._begin)
        whole = self.cells, self._address, self._data
        return FaultyDram(*whole, self._begin + begin, self._begin + end)

    def __setitem__(self, part: slice, values: np.ndarray) -> None:
        words = np.ascontiguousarray(values).view(self.cells.dtype)
        self.cells[self[part]._places] = self._data(words)

    @property
    def _places(self) -> np.ndarray:
        size = self.cells.itemsize
        return self._address(np.arange(self._begin // size, self._end // size))

    def copy(self) -> np.ndarray:
        """Its bytes, as they are read."""
        return self._data(self.cells[self._places]).view(np.uint8)

    def tobytes(self) -> bytes:
        """The same."""
        return self.copy().tobytes()


def same(words: np.ndarray) -> np.ndarray:
    """Changes nothing."""
    return words


def faulty_device(
    configuration: Configuration, *, address: Change = same, data: Change = same
) -> tuple[ModelDevice, np.ndarray]:
    """Returns a golden model with faults, and the words of its DRAM."""
    device = ModelDevice(configuration)
    dma = device._core.dma
    chip = configuration.dram_chip
    assert dma is not None and chip is not None
    cells = np.zeros(chip.bytes, np.uint8).view(f"<u{chip.data_bits // 8}")
    dma.dram = FaultyDram(cells, address, data, 0, chip.bytes)  # pyright: ignore
    return device, cells
