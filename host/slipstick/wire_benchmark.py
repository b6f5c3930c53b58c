"""How much of a serial line bulk transfers fill: ``python -m slipstick.wire_benchmark``.

The board is the simulated one of ``serve-sim``, whose clock goes on while the host thinks: pauses
of the host count, and the line's time is the board's.
"""

import sys
import threading
import time
from contextlib import closing
from typing import Any

import numpy as np
from slipstick_rtl.link.line import BITS_PER_BYTE
from slipstick_rtl.link.protocol import Space

from . import console, reports
from .commands.serve_sim import open_endpoint, usable_rate
from .devices import open_device
from .failures import exit_status
from .serving import PseudoTerminal, serve
from .targets import find_target

TARGET = "sim-small"
COMMAND = "python -m slipstick.wire_benchmark"
BULK_BYTES = 1 << 16


def wire_benchmark(target: str = TARGET, count: int = BULK_BYTES) -> dict[str, Any]:
    """Writes and reads activation memory through the UART of a target's simulation.

    Parameters
    ----------
    target : str
    count : int
        Bytes a direction, at most the target's activation memory.

    Returns
    -------
    dict
        ``write_share`` and ``read_share``: bytes of data over the bytes that the line could have
        carried in the same time. ``line_bits_per_second``: the pace of the simulated line in this
        machine's time, at which the host was measured.

    Raises
    ------
    DeviceError
        If the simulation cannot be built, or what is read is not what was written.
    """
    configuration = find_target(target).configuration
    data = np.random.default_rng(1).bytes(count)
    stop = threading.Event()
    with closing(open_endpoint(configuration)) as endpoint, PseudoTerminal() as terminal:
        rate = usable_rate(endpoint)
        thread = threading.Thread(target=serve, args=(terminal, endpoint, stop.is_set))
        thread.start()
        try:
            name = f"serial:{terminal.path}@{rate}"
            with closing(open_device(name, configuration)) as device:
                start, cycles = time.perf_counter(), [endpoint.cycles]
                device.write(Space.ACTIVATIONS, 0, data)
                cycles.append(endpoint.cycles)
                same = device.read(0, count) == data
                cycles.append(endpoint.cycles)
                seconds = time.perf_counter() - start
        finally:
            stop.set()
            thread.join()
        write_cycles, read_cycles = np.diff(cycles).tolist()
        return {
            "target": target,
            "bytes": count,
            "cycles_per_byte": endpoint.byte_cycles,
            "write_share": count * endpoint.byte_cycles / write_cycles,
            "read_share": count * endpoint.byte_cycles / read_cycles,
            "line_bits_per_second": round(
                BITS_PER_BYTE * (cycles[-1] - cycles[0]) / endpoint.byte_cycles / seconds
            ),
            "read_equals_written": same,
        }


def main() -> int:
    """Measures, prints and keeps the figures; 1 if the bytes that came back were wrong."""
    with console.waiting(f"transfers to {TARGET} through its UART"):
        figures = wire_benchmark()
    rows = [
        ["bytes each way", figures["bytes"]],
        ["share of the raw rate, writes", console.percent(figures["write_share"])],
        ["share of the raw rate, reads", console.percent(figures["read_share"])],
        ["pace of the line here, bits a second", figures["line_bits_per_second"]],
        ["what was read is what was written", str(figures["read_equals_written"])],
    ]
    title = f"serial line of {figures['target']}"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)
    console.print_line(f"written to {reports.write('bench_serial', COMMAND, figures)}")
    return 0 if figures["read_equals_written"] else 1


if __name__ == "__main__":
    sys.exit(exit_status(main))
