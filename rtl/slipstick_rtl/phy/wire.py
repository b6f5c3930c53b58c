"""The record of a wire: its pins, its clocks, its PHY, and how the host names a device on it.

Needs no Amaranth: a board's host imports it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

INPUT, OUTPUT, BOTH = "i", "o", "io"


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin of a PHY, and of the board's resource; both have it by the same name.

    Parameters
    ----------
    name : str
    direction : str
        ``INPUT`` or ``OUTPUT``: the PHY has a signal. ``BOTH``: it has the members of an
        ``amaranth.lib.io.Buffer``.
    width : int
    enable : str
        Of an ``OUTPUT``: the PHY's signal that turns the driver on; empty: it is always on.
    """

    name: str
    direction: str
    width: int = 1
    enable: str = ""

    def __post_init__(self) -> None:
        if self.direction not in (INPUT, OUTPUT, BOTH):
            raise ValueError(f"direction must be {INPUT}, {OUTPUT} or {BOTH}, not {self.direction}")
        if self.enable and self.direction != OUTPUT:
            raise ValueError(f"only an output has an enable, not {self.name}")


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A clock domain that a PHY needs beside ``sync``.

    Parameters
    ----------
    name : str
    hertz : int
    pin : str
        The input pin that is its clock, such as that of a ULPI or RGMII chip. Empty: a component of
        ``Wire.clocks`` drives the domain.
    """

    name: str
    hertz: int
    pin: str = ""


def _none(options: Mapping[str, Any]) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A wire to the host.

    Parameters
    ----------
    name : str
        As ``slipstick build --link`` has it, and the platform's resource.
    device : str
        The host's kind of device, before the colon of ``--device``.
    pins : tuple of Pin
    phy : callable
        Makes the PHY from the configuration, and from options that it names. A PHY is a component
        with the members of :data:`slipstick_rtl.phy.interface.STREAMS` and the pins.
    submodule : str
        The name of the PHY in a design.
    resource : str
        The platform's; by default the wire's name.
    faults : tuple of str
        Strobes of the PHY: a byte was lost, or something was refused.
    status : tuple of str
        Outputs of the PHY, one bit each, that a core behind it shows as well.
    domains : tuple of Domain
    clocks : mapping of callables by FPGA family
        From the oscillator in Hz to a component with an input ``oscillator``; it drives the domains
        that have no pin, or one that the board's FPGA drives. Only families listed here can have
        the wire, if such domains exist.
    options : tuple of str
        Of ``phy``, those that a user may set for a build.
    block_rams : callable
        Block RAMs of an ECP5 that the PHY takes, from the options of ``phy``.
    block_rams_or_luts : int
        Those of them that may be made of look-up tables.
    streams_last : bool
        On a board the streams are connected after the pins. It changes no logic, only the names
        that Amaranth gives to wires: SPI's keep the RTLIL that they had before PHYs were generic.
    """

    name: str
    device: str
    pins: tuple[Pin, ...]
    phy: Callable[..., Any]
    submodule: str
    resource: str = ""
    faults: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    domains: tuple[Domain, ...] = ()
    clocks: Mapping[str, Callable[[int], Any]] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    block_rams: Callable[[Mapping[str, Any]], int] = _none
    block_rams_or_luts: int = 0
    streams_last: bool = False

    def __post_init__(self) -> None:
        inputs = {pin.name for pin in self.pins if pin.direction == INPUT}
        for domain in self.domains:
            if domain.pin and domain.pin not in inputs:
                raise ValueError(f"the clock of {domain.name} must be an input, not {domain.pin}")

    @property
    def resource_name(self) -> str:
        """The platform's name of the pins."""
        return self.resource or self.name

    def make_clocks(self, family: str, oscillator_hz: int, driven: Collection[str] = ()) -> Any:
        """Makes the component that drives the domains without a clock; None if there are none.

        Parameters
        ----------
        family : str
            Of the FPGA.
        oscillator_hz : int
        driven : collection of str
            Clock pins that the FPGA drives: their domains have no clock of the other end.

        Raises
        ------
        ValueError
            If the family has no clocks for this wire, or cannot make them of the oscillator.
        """
        if all(domain.pin and domain.pin not in driven for domain in self.domains):
            return None
        if family not in self.clocks:
            raise ValueError(
                f"wire {self.name} must be on an FPGA of {', '.join(self.clocks)}, which have"
                f" clocks for it, not {family}"
            )
        return self.clocks[family](oscillator_hz)
