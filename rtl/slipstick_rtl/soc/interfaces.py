"""The interfaces that the core is exported with, each as a top with plain ports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow, In, Out

from ..accelerator import Accelerator
from ..config import Configuration
from . import wishbone
from .axi_accelerator import AxiAccelerator
from .stream_accelerator import StreamAccelerator
from .wishbone_accelerator import WishboneAccelerator


class Face(Protocol):
    """A component around the core."""

    @property
    def accelerator(self) -> Accelerator:
        """The core."""
        ...

    @property
    def signature(self) -> wiring.Signature:
        """Its ports."""
        ...


@dataclass(frozen=True, kw_only=True)
class Interface:
    """Describes an interface between the core and its surroundings.

    Parameters
    ----------
    name : str
    description : str
        One line for people.
    component : callable
        Makes the component from a configuration.
    clock, reset : str
        Names of these ports.
    reset_active_low : bool
    port_names : mapping of str
        What a signal's own name becomes, where it does not stay.
    """

    name: str
    description: str
    component: Callable[..., Face]
    clock: str = "clk"
    reset: str = "rst"
    reset_active_low: bool = False
    port_names: Mapping[str, str] = field(default_factory=dict)


INTERFACES = {
    interface.name: interface
    for interface in (
        Interface(
            name="axi",
            description="AXI4-Lite registers, AXI4-Stream of 32 bits, interrupt",
            component=AxiAccelerator,
            clock="aclk",
            reset="aresetn",
            reset_active_low=True,
        ),
        Interface(
            name="wishbone",
            description="Wishbone B4 registers, interrupt",
            component=WishboneAccelerator,
            port_names=wishbone.PORT_NAMES,
        ),
        Interface(
            name="stream",
            description="byte streams with the names of AXI4-Stream",
            component=StreamAccelerator,
        ),
    )
}
"""By name."""


class InterfaceTop(wiring.Component):
    """The core with an interface, its ports named as they are in Verilog: ``s_axis_tdata``.

    Parameters
    ----------
    interface : Interface
    configuration : Configuration

    Members
    -------
    clock and reset, under the names of the interface : In
        The reset is synchronous: it acts at the rising edges of the clock.
    PORT_SIGNAL : In, Out
        Each signal of the component's ports.
    """

    def __init__(self, *, interface: Interface, configuration: Configuration) -> None:
        self._interface = interface
        self.face: Any = interface.component(configuration=configuration)
        self._signals: dict[str, tuple[Value, Flow]] = {}
        for path, member, value in self.face.signature.flatten(self.face):
            *outer, last = map(str, path)
            name = "_".join([*outer, interface.port_names.get(last, last)])
            self._signals[name] = Value.cast(value), member.flow
        members = {interface.clock: In(1), interface.reset: In(1)}
        for name, (value, flow) in self._signals.items():
            members[name] = wiring.Member(flow, value.shape())
        super().__init__(members)

    @property
    def interface(self) -> Interface:
        """Returns the interface that the top was made for."""
        return self._interface

    @property
    def accelerator(self) -> Accelerator:
        """The core."""
        return self.face.accelerator

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain("sync")
        reset: Signal = getattr(self, self._interface.reset)
        m.d.comb += [
            ClockSignal().eq(getattr(self, self._interface.clock)),
            ResetSignal().eq(~reset if self._interface.reset_active_low else reset),
        ]
        m.submodules.face = self.face
        for name, (value, flow) in self._signals.items():
            port = getattr(self, name)
            m.d.comb += port.eq(value) if flow is Out else value.eq(port)
        return m
