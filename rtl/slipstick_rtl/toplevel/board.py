"""The descriptor of a board: every fact about it, for the gateware, the build and the host.

Needs no Amaranth: a board's host imports it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..config import Configuration
from ..fpga.parts import Part
from ..phy.registry import find_wire
from .supplies import AdjustableSupplies

STATES = ("running", "receiving", "sending", "line_error", "alive")
"""The states of the core that a light can show: the outputs of ``lights.StateLights``."""


@dataclass(frozen=True, kw_only=True)
class Light:
    """A light and the states that turn it on.

    Parameters
    ----------
    resource, number : str, int
        The platform's.
    signal : str or None
        Of the resource, such as a colour; None if it has but one.
    states : tuple of str
        Of ``STATES``; any of them turns it on.
    """

    resource: str = "led"
    number: int = 0
    signal: str | None = None
    states: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.states or not set(self.states) <= set(STATES):
            raise ValueError(f"states must be some of {', '.join(STATES)}, not {self.states}")


@dataclass(frozen=True, kw_only=True)
class WirePins:
    """A wire that a board offers, and the pins that it is on.

    Parameters
    ----------
    wire : str
        Of :mod:`slipstick_rtl.phy.wires`.
    pins : mapping of str by the names of the wire's pins
        Pins of the connector, or of the FPGA without one. Empty: the platform has a resource for
        it already.
    resource : str
        The platform's name of that; by default the wire's.
    connector : tuple of (str, int), optional
        The platform's.
    attributes : mapping
        Of the pins, in the words of the FPGA's family, such as their voltage.
    options : mapping
        For the wire's PHY, such as the ``baud`` of a UART.
    driven : tuple of str
        Clock pins of the wire that the FPGA drives on this board, though the other end gives the
        clock elsewhere.
    note : str
        The pins as the board's silk screen names them, for the reader.
    """

    wire: str
    pins: Mapping[str, str] = field(default_factory=dict)
    resource: str = ""
    connector: tuple[str, int] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    driven: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        wire = find_wire(self.wire)
        names = [pin.name for pin in wire.pins]
        clocks = [domain.pin for domain in wire.domains if domain.pin]
        if not set(self.driven) <= set(clocks):
            raise ValueError(
                f"driven must be clock pins of {self.wire} ({', '.join(clocks) or 'it has none'}),"
                f" not {', '.join(self.driven)}"
            )
        if self.pins and list(self.pins) != names:
            raise ValueError(f"pins must be {', '.join(names)}, not {', '.join(self.pins)}")

    @property
    def resource_name(self) -> str:
        """The platform's name of the pins."""
        return self.resource or find_wire(self.wire).resource_name


@dataclass(frozen=True, kw_only=True)
class Programmer:
    """The way of a bitstream onto a board, through openFPGALoader.

    Parameters
    ----------
    board : str
        openFPGALoader's name of it.
    volatile : bool
        Whether a bitstream can go straight into the FPGA, until the power goes.
    connect : str
        Instruction to a person, before the board can be reached.
    """

    board: str
    volatile: bool = True
    connect: str = "connect its USB port to this computer"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Another configuration of a board's core: the target ``BOARD-SUFFIX``.

    Parameters
    ----------
    suffix, description : str
    configuration : Configuration
        Its ``clock_hz`` is what the PLL makes.
    part : Part or None
        The board's FPGA, where this may take more of it than the others; None: as the board's.
    """

    suffix: str
    description: str
    configuration: Configuration
    part: Part | None = None


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board; the names of resources are those of its platform.

    Parameters
    ----------
    name : str
        Also of its target.
    description : str
        One line for people.
    part : Part
        Its FPGA. The part's family has the PLL.
    platform : callable
        Makes the Amaranth platform; imports Amaranth only when it is called.
    oscillator_hz : int
        Of the platform's default clock, from which the PLL makes the core's.
    configuration : Configuration
        The core by default; its ``clock_hz`` is what the PLL makes.
    variants : tuple of Variant
        Further configurations.
    wires : tuple of WirePins
        The first is the default.
    lights : tuple of Light
    button : str or None
        Restarts the core.
    dram : str
        The chips on the board, by their name in :mod:`..dram.chips`; empty: there are none that a
        build can use. The platform's resource ``sdram`` or ``ddr3`` has their pins.
    supplies : AdjustableSupplies or None
        That the FPGA sets.
    high : tuple of str
        Outputs of one bit that must be high, such as enables of other chips on the board.
    programmer : Programmer or None
        None: only the vendor's tool reaches it.
    bare_clock_site : str
        A pin from which a global clock can be driven, for builds of the bare core; nextpnr does not
        look for one. Empty: the board is not used for that.
    notes : str
        For the reader of the table of boards.

    Raises
    ------
    ValueError
        If there is no wire, or a name is there twice.
    """

    name: str
    description: str
    part: Part
    platform: Callable[[], Any]
    oscillator_hz: int
    configuration: Configuration
    variants: tuple[Variant, ...] = ()
    wires: tuple[WirePins, ...]
    lights: tuple[Light, ...] = ()
    button: str | None = None
    high: tuple[str, ...] = ()
    dram: str = ""
    supplies: AdjustableSupplies | None = None
    programmer: Programmer | None = None
    bare_clock_site: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.wires:
            raise ValueError(f"board {self.name} must have a wire")
        for names in (self.links, [variant.suffix for variant in self.variants]):
            if len(set(names)) < len(names):
                raise ValueError(f"board {self.name} must have each name once, not {names}")

    @property
    def links(self) -> list[str]:
        """The names of its wires, the default first."""
        return [pins.wire for pins in self.wires]

    def find_pins(self, link: str) -> WirePins:
        """Returns the wire of a name.

        Raises
        ------
        ValueError
            If the board does not have it.
        """
        for pins in self.wires:
            if pins.wire == link:
                return pins
        raise ValueError(f"link must be one of {', '.join(self.links)} here, not {link}")

    def check_dram(self, configuration: Configuration) -> None:
        """ValueError if a configuration wants other DRAM than the board has."""
        if configuration.dram not in ("", self.dram):
            has = f"be {self.dram} or empty" if self.dram else "be empty"
            raise ValueError(f"dram must {has} on {self.name}, not {configuration.dram}")

    def configurations(self) -> Iterator[tuple[str, str, Configuration, Part]]:
        """Yields name, description, configuration and FPGA of each target."""
        yield self.name, self.description, self.configuration, self.part
        for variant in self.variants:
            name, part = f"{self.name}-{variant.suffix}", variant.part or self.part
            yield name, variant.description, variant.configuration, part


def clocked(configuration: Configuration, clock_hz: int) -> Configuration:
    """Returns a configuration with the clock of a board."""
    return replace(configuration, clock_hz=clock_hz)
