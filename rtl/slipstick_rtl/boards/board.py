"""A board: what is on it, and the core in its midst."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import connect

from ..accelerator import Accelerator
from ..config import Configuration
from ..phy.board_phy import BoardLink, LinkMaker
from ..primitives.stream_queue import StreamQueue
from .bare import QUEUE_DEPTH
from .lights import STATES, StateLights


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
class Board:
    """What a board has, by the names of its platform.

    Parameters
    ----------
    platform : callable
        Makes the Amaranth platform.
    find_pll : callable
        The settings of the FPGA's PLL, from oscillator and clock in Hz.
    clock : callable
        Makes the component between oscillator and clock, from ``port`` and ``pll``.
    lights : tuple of Light
    links : mapping
        Physical layers by name, the default first.
    button : str or None
        Restarts the core.
    high : tuple of str
        Outputs of one bit that must be high, such as enables of other chips on the board.
    """

    platform: Callable[[], Any]
    find_pll: Callable[[int, int], Any]
    clock: Callable[..., Any]
    lights: tuple[Light, ...]
    links: Mapping[str, LinkMaker]
    button: str | None = None
    high: tuple[str, ...] = ()


class BoardTop(wiring.Component):
    """The core on a board: clock, reset, physical layer and lights around it; no ports.

    ``board_top`` makes it.

    Parameters
    ----------
    board : Board
    accelerator : Accelerator
    pll : object
        What ``board.find_pll`` found for the configuration's clock.
    link : BoardLink
    asked_mhz : float
        The clock that place and route is asked for: more than the configuration's.
    """

    def __init__(
        self,
        *,
        board: Board,
        accelerator: Accelerator,
        pll: object,
        link: BoardLink,
        asked_mhz: float,
    ) -> None:
        self.accelerator = accelerator
        self._board = board
        self._pll = pll
        self._link = link
        self._asked_hz = round(asked_mhz * 1e6)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        clock = self._clock(m, platform)
        m.submodules.core = core = self.accelerator
        m.submodules.line = line = self._link
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

    def _clock(self, m: Module, platform: Any) -> Any:
        board = self._board
        m.submodules.clocking = clock = board.clock(
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
    *, board: Board, platform: Any, configuration: Configuration, link: str, asked_mhz: float
) -> BoardTop:
    """The core on a board.

    Parameters
    ----------
    board : Board
    platform : amaranth.build.Platform
        What ``board.platform`` made.
    configuration : Configuration
        Its ``clock_hz`` is what the PLL makes.
    link : str
        One of the board's links.
    asked_mhz : float
        The clock that place and route is asked for: more than the configuration's.

    Raises
    ------
    ValueError
        If the board does not have the link, or PLL or link cannot do with the clock.
    """
    if link not in board.links:
        raise ValueError(f"link must be one of {', '.join(board.links)} here, not {link}")
    # all checks come before the first component: Amaranth complains of those that are not used
    oscillator_hz = round(platform.default_clk_frequency)
    pll = board.find_pll(oscillator_hz, configuration.clock_hz)
    layer = board.links[link](configuration, oscillator_hz)
    accelerator = Accelerator(configuration=configuration)
    return BoardTop(board=board, accelerator=accelerator, pll=pll, link=layer, asked_mhz=asked_mhz)


def _drive(m: Module, name: str, port: Any, value: Any) -> None:
    m.submodules[name] = buffer = io.Buffer(io.Direction.Output, port)
    m.d.comb += buffer.o.eq(value)


def _moved(pipe: stream.Interface) -> Any:
    return pipe.valid & pipe.ready
