"""The core on a board: clock, reset, wire and lights around it."""

from collections.abc import Mapping
from typing import Any

from amaranth.build import Attrs, Pins, Resource, Subsignal
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import connect

from ..accelerator import Accelerator
from ..config import Configuration
from ..dram.chips import SdrChip
from ..dram.ddr3 import Ddr3Settings
from ..dram.ddr3_memory import DDR3_DOMAIN
from ..dram.sdr_pins import LATE_DOMAIN, SdrPins
from ..fpga.clock import Clocking, find_clocking
from ..phy.interface import make_phy
from ..phy.phy_on_board import PhyOnBoard
from ..phy.registry import find_wire
from ..phy.wire import OUTPUT
from ..primitives.stream_queue import StreamQueue
from .adjustable_supplies import SupplyControl
from .bare_top import QUEUE_DEPTH
from .board import Board, WirePins
from .lights import StateLights


class BoardTop(wiring.Component):
    """The core on a board; it has no ports. ``board_top`` makes it.

    Parameters
    ----------
    board : Board
    accelerator : Accelerator
    clocking : Clocking
        Of the board's FPGA.
    pll : object
        Settings that ``clocking`` found for the configuration's clock.
    phy : PhyOnBoard
    asked_mhz : float
        The clock that place and route is asked for: more than the configuration's.
    """

    def __init__(
        self,
        *,
        board: Board,
        accelerator: Accelerator,
        clocking: Clocking,
        pll: object,
        phy: PhyOnBoard,
        asked_mhz: float,
    ) -> None:
        self.accelerator = accelerator
        self._board = board
        self._clocking = clocking
        self._pll = pll
        self._phy = phy
        self._asked_hz = round(asked_mhz * 1e6)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        clock = self._clock(m, platform)
        m.submodules.core = core = self.accelerator
        m.submodules.line = line = self._phy
        # the block RAM of a layer's queue is too slow for what the link does with a byte at once
        m.submodules.received = received = StreamQueue(shape=8, depth=QUEUE_DEPTH)
        m.submodules.sent = sent = StreamQueue(shape=8, depth=QUEUE_DEPTH)
        # what the host says before the clock is steady would be garbled: drop it
        m.d.comb += [
            received.i.payload.eq(line.o.payload),
            received.i.valid.eq(line.o.valid & clock.ready),
            line.o.ready.eq(received.i.ready),
            line.oscillator.eq(clock.oscillator),
        ]
        connect(m, received.o, core.i)
        connect(m, core.o, sent.i)
        connect(m, sent.o, line.i)
        m.submodules.states = states = StateLights(clock_hz=core.configuration.clock_hz)
        m.d.comb += [
            states.busy.eq(core.running),
            states.received.eq(_moved(core.i)),
            states.sent.eq(_moved(core.o)),
            states.fault.eq(line.fault),
        ]
        self._lights(m, platform, states)
        self._supplies(m, platform)
        self._dram(m, clock)
        for name in self._board.high:
            _drive(m, name, platform.request(name, 0, dir="-"), Const(1))
        return m

    def _lights(self, m: Module, platform: Any, states: StateLights) -> None:
        ports: dict[tuple[str, int], Any] = {}  # the colours of a light are one resource
        for light in self._board.lights:
            resource = (light.resource, light.number)
            if resource not in ports:
                ports[resource] = platform.request(*resource, dir="-")
            port, name = ports[resource], f"{light.resource}_{light.number}"
            if light.signal is not None:
                port, name = getattr(port, light.signal), f"{name}_{light.signal}"
            lit = [getattr(states, state) for state in light.states]
            _drive(m, name, port, Cat(lit).any())

    def _dram(self, m: Module, clock: Any) -> None:
        chip = self.accelerator.configuration.dram_chip
        if chip is None:
            return
        if not isinstance(chip, SdrChip):
            self._ddr3(m, clock)
            return
        m.domains += ClockDomain(LATE_DOMAIN, reset_less=True)
        m.d.comb += ClockSignal(LATE_DOMAIN).eq(clock.late)
        m.submodules.dram = pins = SdrPins(chip=chip)
        connect(m, self.accelerator.chip, pins.chip)

    def _ddr3(self, m: Module, clock: Any) -> None:
        """The pins have clocks of their own; only an ECP5 has them, so far."""
        from ..fpga.ecp5.ddr3_pins import Ecp5Ddr3Pins

        core = self.accelerator
        assert core.dma is not None and isinstance(core.dma.settings, Ddr3Settings)
        m.domains += ClockDomain(DDR3_DOMAIN)
        m.submodules.dram = pins = Ecp5Ddr3Pins(
            oscillator_hz=self._board.oscillator_hz, settings=core.dma.settings
        )
        m.d.comb += pins.oscillator.eq(clock.oscillator)
        connect(m, core.chip, pins.chip)

    def _supplies(self, m: Module, platform: Any) -> None:
        supplies = self._board.supplies
        if supplies is None:
            return
        clock_hz = self.accelerator.configuration.clock_hz
        m.submodules.supplies = control = SupplyControl(supplies=supplies, clock_hz=clock_hz)
        port = platform.request(supplies.resource, 0, dir="-")
        _drive(m, "supply_pins", port.pdm, control.pdm)
        _drive(m, "supply_enable", port.en, control.enable)

    def _clock(self, m: Module, platform: Any) -> Any:
        board = self._board
        m.submodules.clocking = clock = self._clocking.component(
            port=platform.request(platform.default_clk, 0, dir="-"), pll=self._pll
        )
        # initial values, or a network of the chip's own, take the place of a reset
        m.domains.sync = ClockDomain("sync", reset_less=True)
        m.d.comb += ClockSignal().eq(clock.clock)
        platform.add_clock_constraint(clock.clock, self._asked_hz)
        if board.button is not None:
            port = platform.request(board.button, 0, dir="-")
            m.submodules.button = button = io.Buffer(io.Direction.Input, port)
            m.d.comb += clock.restart.eq(button.i)
        return clock


def board_top(
    *,
    board: Board,
    platform: Any,
    configuration: Configuration,
    link: str,
    asked_mhz: float,
    options: Mapping[str, Any] | None = None,
) -> BoardTop:
    """Makes the core on a board.

    Parameters
    ----------
    board : Board
    platform : amaranth.build.Platform
        Of ``make_platform``.
    configuration : Configuration
        Its ``clock_hz`` is what the PLL makes.
    link : str
        One of the board's wires.
    asked_mhz : float
        The clock that place and route is asked for: more than the configuration's.
    options : mapping, optional
        For the wire's PHY, in place of the board's own, such as the ``baud`` of a UART.

    Raises
    ------
    ValueError
        If the board does not have the wire or the DRAM, PLL or wire cannot do with the clock, or
        the platform's oscillator is another than the board's.
    """
    pins = board.find_pins(link)
    board.check_dram(configuration)
    # all checks come before the first component: Amaranth complains of those that are not used
    if round(platform.default_clk_frequency) != board.oscillator_hz:
        raise ValueError(
            f"oscillator_hz must be {platform.default_clk_frequency:.0f}, as the platform of"
            f" {board.name} says, not {board.oscillator_hz}"
        )
    clocking = find_clocking(board.part)
    pll = clocking.find_pll(board.oscillator_hz, configuration.clock_hz)
    if isinstance(configuration.dram_chip, SdrChip):
        if clocking.with_late is None:
            raise ValueError(f"dram must be empty on the {board.part.family}: it has no clock yet")
        pll = clocking.with_late(pll)
    wire = find_wire(link)
    clocks = wire.make_clocks(board.part.family, board.oscillator_hz, pins.driven)
    phy = make_phy(wire, configuration, **{**pins.options, **(options or {})})
    accelerator = Accelerator(configuration=configuration)
    return BoardTop(
        board=board,
        accelerator=accelerator,
        clocking=clocking,
        pll=pll,
        phy=PhyOnBoard(
            wire=wire, phy=phy, resource=pins.resource_name, clocks=clocks, driven=pins.driven
        ),
        asked_mhz=asked_mhz,
    )


def make_platform(board: Board) -> Any:
    """Makes a board's platform, with the resources of its wires that have pins of their own.

    Raises
    ------
    ImportError
        If the package ``amaranth-boards`` is missing.
    """
    platform = board.platform()
    resources = [_resource(pins) for pins in board.wires if pins.pins]
    platform.add_resources(resources)
    return platform


def _resource(given: WirePins) -> Resource:
    wire = find_wire(given.wire)
    subsignals = [
        Subsignal(
            pin.name,
            Pins(
                given.pins[pin.name],
                dir=OUTPUT if pin.name in given.driven else pin.direction,
                conn=given.connector,
                assert_width=pin.width,
            ),
        )
        for pin in wire.pins
    ]
    return Resource(given.resource_name, 0, *subsignals, Attrs(**given.attributes))


def _drive(m: Module, name: str, port: Any, value: Any) -> None:
    m.submodules[name] = buffer = io.Buffer(io.Direction.Output, port)
    m.d.comb += buffer.o.eq(value)


def _moved(pipe: stream.Interface) -> Any:
    return pipe.valid & pipe.ready
