"""A PHY on the pins of a board: buffers, and the clocks that its wire needs. Any wire."""

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import connect, flipped

from .interface import BOARD_PHY
from .wire import BOTH, INPUT, Pin, Wire

_DIRECTIONS = {INPUT: io.Direction.Input, BOTH: io.Direction.Bidir}


class PhyOnBoard(wiring.Component):
    """Asks the platform for the pins of a wire, and connects its PHY to them.

    Parameters
    ----------
    wire : Wire
    phy : Component
        Of the wire.
    resource : str
        The platform's name of the pins.
    clocks : Component or None
        Drives the wire's domains that have no clock (``Wire.make_clocks``).
    driven : collection of str
        Clock pins that go out: the other end takes its clock from the FPGA.

    Members
    -------
    i, o, fault, oscillator
        As of ``BOARD_PHY``.
    """

    i: stream.Interface
    o: stream.Interface
    fault: Signal
    oscillator: Signal

    def __init__(
        self,
        *,
        wire: Wire,
        phy: Any,
        resource: str,
        clocks: Any = None,
        driven: Collection[str] = (),
    ) -> None:
        self._wire, self._phy, self._resource = wire, phy, resource
        self._clocks, self._driven = clocks, driven
        super().__init__(BOARD_PHY)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        wire, phy = self._wire, self._phy
        m.domains += [ClockDomain(domain.name) for domain in wire.domains]
        if self._clocks is not None:
            m.submodules.clocks = self._clocks
            m.d.comb += self._clocks.oscillator.eq(self.oscillator)
        m.submodules[wire.submodule] = phy
        if not wire.streams_last:
            self._connect_streams(m)
        self._connect_pins(m, platform)
        if wire.faults:
            m.d.comb += self.fault.eq(reduce(or_, (getattr(phy, name) for name in wire.faults)))
        if wire.streams_last:
            self._connect_streams(m)
        return m

    def _connect_streams(self, m: Module) -> None:
        connect(m, flipped(self.i), self._phy.i)
        connect(m, self._phy.o, flipped(self.o))

    def _connect_pins(self, m: Module, platform: Any) -> None:
        wire = self._wire
        resource = platform.request(self._resource, 0, dir="-")
        ports = {pin.name: getattr(resource, pin.name) for pin in wire.pins}
        outgoing = {
            domain.pin: domain.name for domain in wire.domains if domain.pin in self._driven
        }
        buffers = {
            pin.name: self._connect(m, pin, ports[pin.name])
            for pin in wire.pins
            if pin.name not in outgoing
        }
        for pin, domain_name in outgoing.items():
            # high in the first half of each cycle: the edges come as late as those of the data
            clock_buffer: Any = io.DDRBuffer(io.Direction.Output, ports[pin], o_domain=domain_name)
            m.submodules[pin] = clock_buffer
            m.d.comb += [
                clock_buffer.o[0].eq(1),
                clock_buffer.o[1].eq(0),
                getattr(self._phy, pin).eq(ClockSignal(domain_name)),
            ]
        for domain in wire.domains:
            if domain.pin and domain.pin not in outgoing:
                # without the attribute, Yosys forgets the name that the constraint goes by
                clock = Signal(name=f"{domain.name}_clock", attrs={"keep": "true"})
                m.d.comb += [
                    clock.eq(buffers[domain.pin].i),
                    ClockSignal(domain.name).eq(clock),
                ]
                platform.add_clock_constraint(clock, domain.hertz)

    def _connect(self, m: Module, pin: Pin, port: Any) -> Any:
        direction = _DIRECTIONS.get(pin.direction, io.Direction.Output)
        m.submodules[pin.name] = buffer = io.Buffer(direction, port)
        signal = getattr(self._phy, pin.name)
        if pin.direction == BOTH:
            connect(m, signal, buffer)
        elif pin.direction == INPUT:
            m.d.comb += signal.eq(buffer.i)
        else:
            m.d.comb += buffer.o.eq(signal)
        if pin.enable:
            m.d.comb += buffer.oe.eq(getattr(self._phy, pin.enable))
        return buffer
