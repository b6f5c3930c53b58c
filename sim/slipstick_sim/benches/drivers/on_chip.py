"""A component as it is elaborated for a device, under a bench."""

from typing import Any

from amaranth.hdl import Fragment, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from slipstick_rtl.fpga.ecp5.netlist import Chip

DEVICE = "device"
"""The parameter of a bench that names the device."""

ECP5 = "LFE5U-85F"


class OnChip(wiring.Component):
    """Has the component's ports; within it are cells of the device where it knows them.

    Parameters
    ----------
    component : wiring.Component
        Not elaborated elsewhere.
    device : str
        Such as ``ECP5``.
    """

    def __init__(self, component: wiring.Component, device: str) -> None:
        self._component: Any = component
        self._chip = Chip(device)
        super().__init__(component.signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.component = Fragment.get(self._component, self._chip)
        connect(m, flipped(self), self._component)
        return m
