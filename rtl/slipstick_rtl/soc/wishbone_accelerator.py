"""The core on Wishbone: registers, through which the link's frames go too."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accelerator import Accelerator
from ..config import Configuration
from .register_map import MAP_BYTES
from .registered_accelerator import RegisteredAccelerator
from .registers import RegisterMap
from .wishbone import Wishbone, WishboneTarget


class WishboneAccelerator(wiring.Component):
    """Registers and an interrupt.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    wb : In(Wishbone)
        The registers.
    irq : Out
        High while there is a reason.
    """

    wb: Any
    irq: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._inner = RegisteredAccelerator(configuration=configuration, streams=False)
        super().__init__({"wb": In(Wishbone((MAP_BYTES - 1).bit_length())), "irq": Out(1)})

    @property
    def accelerator(self) -> Accelerator:
        """The core."""
        return self._inner.accelerator

    @property
    def registers(self) -> RegisterMap:
        """Returns the registers on ``wb``."""
        return self._inner.registers

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = self._inner
        m.submodules.target = target = WishboneTarget(address_bits=self.registers.address_bits)
        connect(m, flipped(self.wb), target.wishbone)
        connect(m, target.bus, inner.bus)
        m.d.comb += [
            inner.requests.valid.eq(0),
            inner.responses.ready.eq(0),
            self.irq.eq(inner.irq),
        ]
        return m
