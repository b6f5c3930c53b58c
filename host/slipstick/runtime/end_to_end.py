"""Predicts images per second over a wire, from predicted cycles and counted bytes."""

from slipstick_rtl.phy.uart_rates import DEFAULT_BAUD

from ..devices.link.request import FRAME_BYTES
from ..devices.wire_models import WireModel, find_wire_model
from ..program import Program
from ..program.steps import RunStep

_RUN_BYTES = 6
"""Bytes in the frames of PUT and RUN_GET beside data: their regions, and a word per stream."""
_GET_CYCLES = 60
"""Cycles from the end of a run to the beginning of the next: the outputs are read between."""
_NAMES = {"usb": "usb-fs"}
"""The model of a wire whose name is another; a UART has a rate as well."""


def wires_of(board: str) -> list[WireModel]:
    """The models of a board's wires; a UART's is at the rate that its bitstream is built for."""
    # boards' pins are not needed to run a network
    from slipstick_rtl.toplevel.registry import all_boards

    wires = []
    for pins in all_boards()[board].wires:
        if pins.wire == "uart":
            wires.append(find_wire_model(f"uart@{pins.options.get('baud', DEFAULT_BAUD)}"))
        else:
            wires.append(find_wire_model(_NAMES.get(pins.wire, pins.wire)))
    return wires


def predicted_per_second(program: Program, wire: WireModel) -> float:
    """Images per second of a long batch, at the clock of the program's hardware.

    With two places for inputs and outputs, or a program of several runs, the slowest of core and
    wire decides. With one place, the input waits for the run before, or for its releases: what the
    board's queue holds has crossed the wire by then, and goes on to the memory at a byte per cycle.
    """
    hardware = program.hardware
    traffic = program.transferred()
    up = _framed(traffic.loaded + traffic.uploaded, hardware.payload_bytes) + _RUN_BYTES
    down = _framed(traffic.downloaded, hardware.payload_bytes)
    both = wire.seconds(up) + wire.seconds(down)
    busiest = both if wire.is_shared else max(wire.seconds(up), wire.seconds(down))
    core = program.predicted_cycles / hardware.clock_hz
    runs = sum(isinstance(step, RunStep) for step in program.steps)
    if runs == 1 and program.releases:
        core = max(core, _released(program, wire)) + _GET_CYCLES / hardware.clock_hz
    elif runs == 1 and program.alternate is None:
        late = wire.seconds(max(0, up - wire.queue_bytes))
        core += max(late, min(up, wire.queue_bytes) / hardware.clock_hz)
    return 1 / max(core, busiest)


def _released(program: Program, wire: WireModel) -> float:
    """Seconds from the beginning of a run until the next input has come."""
    hertz, now, queued = program.hardware.clock_hz, 0.0, wire.queue_bytes
    for release in program.releases:
        place = program.tensors[release.tensor].placement
        assert place is not None
        first, end = release.rows
        count = (end - first) * place.width * place.channels
        now = max(now, release.cycle / hertz)
        near = min(count, queued)
        queued -= near
        now += near / hertz + max((count - near) / hertz, wire.seconds(count - near))
    return now


def _framed(count: int, payload_bytes: int) -> int:
    """Bytes with their frames, and one more frame that asks or answers."""
    return count + (1 + -(-count // payload_bytes)) * FRAME_BYTES
