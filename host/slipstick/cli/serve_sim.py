"""``slipstick serve-sim``: the simulated board on a pseudo-terminal, SPI's wires or a UDP port."""

import signal
from contextlib import closing
from typing import Annotated

import typer
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.uart_rates import uart_divisor

from .. import console
from ..devices.simulated_boards import Physical, SimulatedBoard, open_board
from ..errors import InputError
from ..targets import DEFAULT_TARGET, find_target
from .options import Json, TargetName


def serve_sim_command(
    target: TargetName = None,
    physical: Annotated[
        Physical,
        typer.Option(
            "--wire",
            "--physical",
            "-p",
            help="The board's wire: a UART behind a pseudo-terminal, SPI behind a socket, or"
            " Ethernet behind a UDP port of this machine.",
        ),
    ] = Physical.UART,
    baud: Annotated[
        int | None,
        typer.Option(
            "--baud",
            "-b",
            help="Simulate the UART at this rate of the target's clock, as on the board; by default"
            " at the quickest, 4 cycles a bit.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            help="Ethernet's UDP port; 0: a free one. By default that of boards, or a free one.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Simulate a board, pins included, for other programs to open; Ctrl-C ends it."""
    name = target or DEFAULT_TARGET
    configuration = find_target(name).configuration
    divisor = None
    if baud is not None:
        divisor = _divisor(physical, configuration, baud)
    if port is not None and physical is not Physical.ETHERNET:
        raise InputError(f"--port is one of Ethernet: leave it out with --wire {physical}")
    with console.waiting(f"opening {name}"):
        board = open_board(physical, configuration, divisor, port)
    with closing(board):
        _serve(board, name, configuration, json)


def _divisor(physical: Physical, configuration: Configuration, baud: int) -> int:
    if physical is not Physical.UART:
        raise InputError(f"--baud is the rate of a UART: leave it out with --wire {physical}")
    try:
        return uart_divisor(configuration.clock_hz, baud)
    except ValueError as error:
        raise InputError(f"--baud: {error}") from None


def _serve(board: SimulatedBoard, name: str, configuration: Configuration, json: bool) -> None:
    result = {
        "target": name,
        "port": board.port,
        "device": board.device,
        "baud": board.rate,
        "cycles_per_byte": board.byte_cycles,
        "fingerprint": configuration.fingerprint,
    }
    if json:
        console.print_json(result)
    else:
        console.print_line(
            f"{name} is at {board.port}: --target {name} --device {board.device} (Ctrl-C ends it)"
        )
    try:
        # even if whoever started this ignores them, as shells do for background processes
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        # whoever started this waits for the port's name
        typer.get_text_stream("stdout").flush()
        board.serve()
    except KeyboardInterrupt:
        return
