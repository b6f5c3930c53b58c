"""Boards that this machine simulates, pins included, for other processes to open."""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.spi_protocol import DEFAULT_SCK_HZ, MINIMUM_SCK_CYCLES, highest_sck_hz
from slipstick_rtl.phy.uart_rates import BITS_PER_BYTE, MINIMUM_DIVISOR, RATES

from ..errors import DeviceError
from ..targets import describe

if TYPE_CHECKING:
    from slipstick_sim.verilated.endpoint import SerialEndpoint, SpiEndpoint
    from slipstick_sim.verilated.ethernet_endpoint import EthernetEndpoint

    from .udp_server import DatagramBoard

FASTEST = 460_800
"""Highest rate that is of use, of those that pseudo-terminals know; bits a second."""
_TIMEOUT_CYCLES, _TIMEOUT_BYTES = 1 << 14, 64
"""Silence of that long ends a frame: a tenth of a second, or bytes on a line that is slower."""
_TRIAL_SECONDS = 0.2
_BOARD_IP, _BOARD_MAC = "192.168.1.50", "02:00:00:00:00:01"
_HOST_IP, _HOST_MAC = "192.168.1.2", "02:00:00:00:00:02"
"""Addresses in the network of the simulation; this machine's has nothing to do with it."""
_LEASE_CYCLES = 1 << 22
"""About ten seconds of a simulation."""


class Physical(StrEnum):
    """Physical layers between the link's bytes and the pins."""

    UART = "uart"
    SPI = "spi"
    ETHERNET = "ethernet"


class SimulatedBoard(Protocol):
    """A board behind something that other processes can open.

    Members
    -------
    port : str
        What they open.
    rate : int
        Bits a second of this machine's time that the simulation surely keeps up with: clients take
        it for their timeouts.
    device : str
        The name for ``open_device``.
    """

    port: str
    rate: int
    device: str

    @property
    def cycles(self) -> int:
        """Clock cycles of the board that have passed."""
        ...

    @property
    def busy_cycles(self) -> int:
        """Those of them in which the host had the wire: all of a UART, a selected chip's on SPI."""
        ...

    @property
    def byte_cycles(self) -> int:
        """Clock cycles of a byte on the wire."""
        ...

    def serve(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Lets the board work for its clients until it is told to stop, or interrupted."""
        ...

    def close(self) -> None:
        """Pulls the plug."""
        ...


class _Simulated:
    """Counters and pace of any simulated board."""

    def __init__(self, endpoint: "SerialEndpoint | SpiEndpoint | EthernetEndpoint") -> None:
        self._measured = endpoint

    @property
    def cycles(self) -> int:
        return self._measured.cycles

    @property
    def busy_cycles(self) -> int:
        return self._measured.busy_cycles

    @property
    def byte_cycles(self) -> int:
        return self._measured.byte_cycles

    def _pace(self, rest: Callable[[], object], bits_per_byte: int) -> float:
        """Bits a second."""
        first, start = self.cycles, time.perf_counter()
        while (seconds := time.perf_counter() - start) < _TRIAL_SECONDS:
            rest()
        bits = bits_per_byte * (self.cycles - first) / self.byte_cycles / seconds
        # programs that run switch more of the chip than one that rests
        return bits / 2


class _SerialBoard(_Simulated):
    def __init__(self, endpoint: "SerialEndpoint") -> None:
        from .pty_server import PseudoTerminal

        super().__init__(endpoint)
        self._endpoint = endpoint
        self._terminal = PseudoTerminal()
        pace = self._pace(lambda: endpoint.feed(b""), BITS_PER_BYTE)
        self.rate = max([rate for rate in RATES if rate <= min(pace, FASTEST)], default=min(RATES))
        self.port = self._terminal.path
        self.device = f"serial:{self.port}@{self.rate}"

    def serve(self, stopped: Callable[[], bool] = lambda: False) -> None:
        from .pty_server import serve

        serve(self._terminal, self._endpoint, stopped)

    def close(self) -> None:
        self._terminal.close()
        self._endpoint.close()


class _SpiBoard(_Simulated):
    def __init__(self, endpoint: "SpiEndpoint", clock_hz: int) -> None:
        from .pty_server import TransferSocket
        from .spi_bus import LOWEST_HZ

        super().__init__(endpoint)
        self._endpoint = endpoint
        self._wires = TransferSocket()
        highest = min(DEFAULT_SCK_HZ, highest_sck_hz(clock_hz))
        self.rate = max(LOWEST_HZ, min(highest, round(self._pace(endpoint.rest, 8))))
        self.port = self._wires.path
        self.device = f"spi:{self.port}@{self.rate}"

    def serve(self, stopped: Callable[[], bool] = lambda: False) -> None:
        from .pty_server import serve_transfers

        serve_transfers(self._wires, self._endpoint, stopped)

    def close(self) -> None:
        self._wires.close()
        self._endpoint.close()


class _EthernetBoard(_Simulated):
    def __init__(
        self, endpoint: "EthernetEndpoint", board: "DatagramBoard", udp_port: int | None
    ) -> None:
        from .udp_server import open_port

        super().__init__(endpoint)
        self._endpoint, self._board = endpoint, board
        self._socket = open_port(udp_port)
        address, number = self._socket.getsockname()
        self.port = f"{address}:{number}"
        self.rate = round(self._pace(lambda: endpoint.feed(b""), 8))
        self.device = f"udp:{self.port}"

    def serve(self, stopped: Callable[[], bool] = lambda: False) -> None:
        from .udp_server import serve

        serve(self._socket, self._board, stopped)

    def close(self) -> None:
        self._socket.close()
        self._endpoint.close()


def _ethernet_board(
    configuration: Configuration, udp_port: int | None, label: str
) -> SimulatedBoard:
    """LiteEth and all behind it are gateware; the rest of its network is one host."""
    from slipstick_rtl.phy.ethernet.datagrams import PORT
    from slipstick_sim.verilated import ethernet_library
    from slipstick_sim.verilated.ethernet_endpoint import EthernetEndpoint

    from .ethernet_frames import FrameBoard, Station

    library = ethernet_library(
        configuration,
        ip=_BOARD_IP,
        mac=_BOARD_MAC,
        lease_cycles=_LEASE_CYCLES,
        timeout_cycles=_TIMEOUT_CYCLES,
        label=label,
    )
    endpoint = EthernetEndpoint(library, _TIMEOUT_CYCLES)
    board = Station.of(_BOARD_MAC, _BOARD_IP)
    frames = FrameBoard(
        endpoint.feed, lambda: endpoint.idle, board, Station.of(_HOST_MAC, _HOST_IP), PORT
    )
    return _EthernetBoard(endpoint, frames, udp_port)


def _timeout_cycles(divisor: int) -> int:
    """After which a simulated board forgets half a frame: a board's own number takes it seconds,
    in which it takes every request for a part of the frame that garbage began."""
    return max(_TIMEOUT_CYCLES, _TIMEOUT_BYTES * BITS_PER_BYTE * divisor)


def open_board(
    physical: Physical,
    configuration: Configuration,
    divisor: int | None = None,
    udp_port: int | None = None,
) -> SimulatedBoard:
    """A board's simulation, built the first time.

    Parameters
    ----------
    physical : Physical
    configuration : Configuration
    divisor : int, optional
        Clock cycles of a bit; by default as few as the gateware can do. Ethernet has none.
    udp_port : int, optional
        Of Ethernet; by default a board's, or a free one.

    Raises
    ------
    DeviceError
        If packages or tools are missing, or fail, or the port is in use.
    """
    try:
        from slipstick_sim.toolchain import ToolError
        from slipstick_sim.verilated import serial_library, spi_library
        from slipstick_sim.verilated.endpoint import SerialEndpoint, SpiEndpoint
    except ImportError as error:
        raise DeviceError(
            f"serve-sim needs the simulation's packages: pip install slipstick[sim] ({error})"
        ) from error
    label = describe(configuration)
    try:
        if physical is Physical.UART:
            divisor = divisor or MINIMUM_DIVISOR
            timeout = _timeout_cycles(divisor)
            library = serial_library(configuration, divisor, timeout_cycles=timeout, label=label)
            return _SerialBoard(SerialEndpoint(library, divisor, timeout))
        if physical is Physical.ETHERNET:
            return _ethernet_board(configuration, udp_port, label)
        divisor = divisor or MINIMUM_SCK_CYCLES
        endpoint = SpiEndpoint(spi_library(configuration, divisor, label=label), divisor)
        return _SpiBoard(endpoint, configuration.clock_hz)
    except ImportError as error:
        raise DeviceError(
            "serve-sim needs LiteEth for Ethernet (pip install 'slipstick[build]'), and for other"
            f" wires pseudo-terminals and sockets, as on Linux: {error}"
        ) from error
    except (ToolError, OSError) as error:
        raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error
