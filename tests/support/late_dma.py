"""A golden model whose runs end as late as they may: what does not wait for them is seen."""

from slipstick.devices.model import ModelDevice
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import Operation, Transfer
from slipstick_sim.golden.dma import GoldenDma


class LateDma(GoldenDma):
    """A run that ends as late as it may: all that follows it, up to its WAIT, comes before it."""

    pending: tuple[int, int] | None = None

    def _execute(self, transfer: Transfer) -> None:
        if transfer.operation is Operation.RUN:
            assert self.pending is None, "a RUN must wait for the one before"
            self.pending = transfer.pcs
            return
        if transfer.operation is Operation.WAIT and self.pending is not None:
            self._good, self.pending = self.chip.run_streams(self.pending), None
        super()._execute(transfer)


def late_device(configuration: Configuration) -> ModelDevice:
    """A model whose DMA is late."""
    device = ModelDevice(configuration)
    dma = device._core.dma
    assert dma is not None
    device._core.dma = LateDma(dma.dram, dma.chip, dma.ninth_bits, dma.training)
    return device
