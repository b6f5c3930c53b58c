"""Opens a device with DRAM for a training, where hardware and network allow it."""

from slipstick_rtl.config import Configuration

from ...devices import open_device
from ...devices.link import LinkDevice
from ...errors import UnsupportedError
from ..network import Initial
from ..parallel.jobs import WorkerSetup
from .trainer import DramTrainer


class OpenedLink:
    """A device that counts the bytes of its wire.

    Parameters
    ----------
    device : LinkDevice

    Members
    -------
    bytes_moved : int
        Both ways, with the frames.
    """

    def __init__(self, device: LinkDevice) -> None:
        self._device = device

    @property
    def bytes_moved(self) -> int:
        return self._device.bytes_up + self._device.bytes_down

    def close(self) -> None:
        """Closes the device."""
        self._device.close()


def open_dram_trainer(
    setup: WorkerSetup, initial: Initial, name: str, hardware: Configuration
) -> tuple[DramTrainer, OpenedLink] | None:
    """Opens a device, and a trainer whose steps run from its DRAM.

    Parameters
    ----------
    setup : WorkerSetup
    initial : mapping of FloatParameters
    name : str
        Of the device, as for ``open_device``.
    hardware : Configuration

    Returns
    -------
    (DramTrainer, OpenedLink) or None
        The second one is to be closed. None, and no device is opened, if the hardware has no DRAM
        or cannot train, or if the network has a layer that does not run from DRAM.

    Raises
    ------
    DeviceError
        If the device cannot be opened.
    CapacityError
        If a step of one image does not fit the memories.
    """
    if hardware.dram_chip is None or not hardware.training:
        return None
    device = open_device(name, hardware)
    if not isinstance(device, LinkDevice):
        device.close()
        return None
    try:
        trainer = DramTrainer(
            setup.network,
            device,
            initial,
            setup.learning,
            master_bits=setup.master_bits,
            momentum=setup.momentum,
        )
        trainer.check()
    except UnsupportedError:
        device.close()
        return None
    except BaseException:
        device.close()
        raise
    return trainer, OpenedLink(device)
