"""Makes a trainer whose steps run from a device's DRAM, where the hardware has one."""

from ...devices import Device
from ...devices.link import LinkDevice
from ..network import Initial
from ..parallel.jobs import WorkerSetup
from .trainer import DramTrainer


class CountedLink:
    """A device, and the bytes of its wire from now on.

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
        self._before = device.bytes_up + device.bytes_down

    @property
    def bytes_moved(self) -> int:
        return self._device.bytes_up + self._device.bytes_down - self._before


def make_dram_trainer(
    setup: WorkerSetup, initial: Initial, device: Device, *, on_device: bool = True
) -> tuple[DramTrainer, CountedLink] | None:
    """Makes a trainer whose steps run from the device's DRAM.

    Parameters
    ----------
    setup : WorkerSetup
    initial : mapping of FloatParameters
    device : Device
        It stays open.
    on_device : bool
        The device updates the weights, if it can.

    Returns
    -------
    (DramTrainer, CountedLink) or None
        None if the hardware has no DRAM.

    Raises
    ------
    UnsupportedError
        If the network has a layer that does not run from there.
    CapacityError
        If the hardware cannot train, or a step of one image does not fit the memories.
    """
    if not isinstance(device, LinkDevice) or device.configuration.dram_chip is None:
        return None
    counted = CountedLink(device)
    trainer = DramTrainer(
        setup.network,
        device,
        initial,
        setup.learning,
        master_bits=setup.master_bits,
        momentum=setup.momentum,
        on_device=on_device,
    )
    trainer.check()
    return trainer, counted
