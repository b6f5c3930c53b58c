"""Makes a device's trainer: steps run from its DRAM, or product by product."""

from typing import NamedTuple

from ...devices import Device
from ...devices.link import LinkDevice
from ...errors import UnsupportedError
from ..device.arithmetic import DeviceArithmetic
from ..device.products import DeviceProducts
from ..int8 import Range
from ..network import Initial
from ..opened_device import CountingDevice
from ..parallel.jobs import WorkerSetup
from ..trainer import Trainer
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


class DeviceTrainer(NamedTuple):
    """A trainer that multiplies on a device.

    Parameters
    ----------
    trainer : Trainer
    counted : CountingDevice or CountedLink
        What it moves: with DRAM the frames of the wire count, otherwise contents alone.
    why_not_from_dram : str
        Why steps of a device with DRAM do not run from there; empty: they do, or it has none.
    """

    trainer: Trainer
    counted: CountingDevice | CountedLink
    why_not_from_dram: str = ""


def make_device_trainer(
    setup: WorkerSetup,
    initial: Initial,
    device: Device,
    source: Range = Range.PREVIOUS,
    *,
    on_device: bool = True,
) -> DeviceTrainer:
    """Makes a trainer whose steps run from the device's DRAM, if it has one and they can.

    Parameters
    ----------
    setup : WorkerSetup
    initial : mapping of FloatParameters
    device : Device
        It stays open.
    source : Range
        As ``Int8Arithmetic`` has it.
    on_device : bool
        The device updates the weights of steps from DRAM, if it can.

    Raises
    ------
    CapacityError
        If the hardware cannot train, or a step of one image does not fit the memories.
    """
    reason = ""
    if isinstance(device, LinkDevice) and device.configuration.dram_chip is not None:
        try:
            return _dram_trainer(setup, initial, device, source, on_device)
        except UnsupportedError as error:
            reason = str(error)
    counted = CountingDevice(device)
    products = DeviceProducts(counted)
    arithmetic = DeviceArithmetic(products, setup.master_bits, setup.momentum, source)
    trainer = Trainer(setup.network, arithmetic, initial, setup.learning)
    return DeviceTrainer(trainer, counted, reason)


def _dram_trainer(
    setup: WorkerSetup, initial: Initial, device: LinkDevice, source: Range, on_device: bool
) -> DeviceTrainer:
    """UnsupportedError if the steps cannot run from DRAM: their shifts must be known before."""
    if source is not Range.PREVIOUS:
        raise UnsupportedError(f"the range must be {Range.PREVIOUS}, not {source}")
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
    return DeviceTrainer(trainer, counted)
