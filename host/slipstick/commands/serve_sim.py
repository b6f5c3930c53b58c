"""``slipstick serve-sim``: the simulated board on a pseudo-terminal."""

import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.line import MINIMUM_DIVISOR, uart_divisor

from .. import console
from ..errors import DeviceError, InputError
from ..targets import DEFAULT_TARGET, find_target
from .options import Json, TargetName

if TYPE_CHECKING:
    from slipstick_sim.compiled.endpoint import SerialEndpoint

STANDARD_RATES = (
    300, 1200, 2400, 4800, 9600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800,
)  # fmt: skip
_TRIAL_SECONDS = 0.2


def serve_sim_command(
    target: TargetName = None,
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
    json: Json = False,
) -> None:
    """Simulate a board, UART included, behind a pseudo-terminal; Ctrl-C ends it."""
    name = target or DEFAULT_TARGET
    configuration = find_target(name).configuration
    divisor = MINIMUM_DIVISOR
    if baud is not None:
        try:
            divisor = uart_divisor(configuration.clock_hz, baud)
        except ValueError as error:
            raise InputError(f"--baud: {error}") from None
    with console.waiting(f"opening {name} (a new simulation takes a minute to build)"):
        endpoint = open_endpoint(configuration, divisor)
    with closing(endpoint):
        _serve(endpoint, name, configuration, json)


def open_endpoint(configuration: Configuration, divisor: int = MINIMUM_DIVISOR) -> "SerialEndpoint":
    """A board's simulation, by its pins, built the first time.

    Raises
    ------
    DeviceError
        If packages or tools are missing, or fail.
    """
    try:
        from slipstick_sim.compiled import serial_library
        from slipstick_sim.compiled.endpoint import SerialEndpoint
        from slipstick_sim.toolchain import ToolError
    except ImportError as error:
        raise DeviceError(
            f"serve-sim needs the simulation's packages: pip install slipstick[sim] ({error})"
        ) from error
    try:
        return SerialEndpoint(serial_library(configuration, divisor), divisor)
    except (ToolError, OSError) as error:
        raise DeviceError(f"the simulation of {configuration.shape}: {error}") from error


def usable_rate(endpoint: "SerialEndpoint") -> int:
    """The highest standard rate, bits a second of this machine's time, that the simulation surely
    keeps up with: clients take it for their timeouts."""
    first, start = endpoint.cycles, time.perf_counter()
    while (seconds := time.perf_counter() - start) < _TRIAL_SECONDS:
        endpoint.feed(b"")
    bits = 10 * (endpoint.cycles - first) / endpoint.byte_cycles / seconds
    # programs that run switch more of the chip than one that rests
    return max([rate for rate in STANDARD_RATES if rate <= bits / 2], default=STANDARD_RATES[0])


def _serve(endpoint: "SerialEndpoint", name: str, configuration: Configuration, json: bool) -> None:
    try:
        from ..serving import PseudoTerminal, serve
    except ImportError as error:
        raise DeviceError(f"serve-sim needs pseudo-terminals, as on Linux: {error}") from error
    with PseudoTerminal() as terminal:
        rate = usable_rate(endpoint)
        result = {
            "target": name,
            "port": terminal.path,
            "device": f"serial:{terminal.path}@{rate}",
            "baud": rate,
            "cycles_per_byte": endpoint.byte_cycles,
            "fingerprint": configuration.fingerprint,
        }
        if json:
            console.print_json(result)
        else:
            console.print_line(
                f"{name} is at {terminal.path}: --target {name} --device {result['device']}"
                " (Ctrl-C ends it)"
            )
        try:
            # even if whoever started this ignores them, as shells do for background processes
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler)
            # whoever started this waits for the port's name
            typer.get_text_stream("stdout").flush()
            serve(terminal, endpoint)
        except KeyboardInterrupt:
            return
