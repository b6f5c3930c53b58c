"""How much of a wire bulk transfers fill: ``python -m slipstick.wire_benchmark [uart|spi]...``.

The board is the simulated one of ``serve-sim``, whose clock goes on while the host thinks: pauses
of the host count, and the wire's time is the board's.
"""

import sys
import threading
import time
from contextlib import closing
from typing import Any

import numpy as np
from slipstick_rtl.link.protocol import Space

from . import console, reports
from .devices import open_device
from .errors import InputError
from .failures import exit_status
from .simulated_boards import Physical, open_board
from .targets import find_target

TARGET = "sim-small"
COMMAND = "python -m slipstick.wire_benchmark"
BULK_BYTES = 1 << 16
REPORTS = {Physical.UART: "bench_serial", Physical.SPI: "bench_spi"}


def wire_benchmark(
    physical: Physical | str, target: str = TARGET, count: int = BULK_BYTES
) -> dict[str, Any]:
    """Writes and reads activation memory through the pins of a target's simulation.

    Parameters
    ----------
    physical : Physical or str
        Which pins.
    target : str
    count : int
        Bytes a direction, at most the target's activation memory.

    Returns
    -------
    dict
        ``write_share`` and ``read_share``: bytes of data over the bytes that the wire could have
        carried in the same time; with ``_busy``: without the time between SPI's transfers, in which
        this machine did other things. ``bytes_per_second``: the pace of the simulated wire in this
        machine's time, at which the host was measured.

    Raises
    ------
    DeviceError
        If the simulation cannot be built.
    """
    configuration = find_target(target).configuration
    data = np.random.default_rng(1).bytes(count)
    stop = threading.Event()
    with closing(open_board(Physical(physical), configuration)) as board:
        thread = threading.Thread(target=board.serve, args=(stop.is_set,))
        thread.start()
        try:
            with closing(open_device(board.device, configuration)) as device:
                start, cycles = time.perf_counter(), [(board.cycles, board.busy_cycles)]
                device.write(Space.ACTIVATIONS, 0, data)
                cycles.append((board.cycles, board.busy_cycles))
                same = device.read(0, count) == data
                cycles.append((board.cycles, board.busy_cycles))
                seconds = time.perf_counter() - start
        finally:
            stop.set()
            thread.join()
        shares = count * board.byte_cycles / np.diff(cycles, axis=0)
        total = cycles[-1][0] - cycles[0][0]
        return {
            "physical": str(physical),
            "target": target,
            "bytes": count,
            "cycles_per_byte": board.byte_cycles,
            "write_share": shares[0, 0].item(),
            "read_share": shares[1, 0].item(),
            "write_share_busy": shares[0, 1].item(),
            "read_share_busy": shares[1, 1].item(),
            "bytes_per_second": round(total / board.byte_cycles / seconds),
            "read_equals_written": same,
        }


def main() -> int:
    """Measures, prints and keeps the figures; 1 if the bytes that came back were wrong."""
    wanted = sys.argv[1:] or list(Physical)
    if not set(wanted) <= set(Physical):
        raise InputError(f"wires must be of {', '.join(Physical)}, not {' '.join(wanted)}")
    return max(_measure(Physical(name)) for name in wanted)


def _measure(physical: Physical) -> int:
    with console.waiting(f"transfers to {TARGET} through its {physical.upper()}"):
        figures = wire_benchmark(physical)
    percent = console.percent
    rows = [
        ["bytes each way", figures["bytes"]],
        ["clock cycles of a byte on the wire", figures["cycles_per_byte"]],
        ["share of the raw rate, writes", percent(figures["write_share"])],
        ["share of the raw rate, reads", percent(figures["read_share"])],
        ["the same while the chip is selected, writes", percent(figures["write_share_busy"])],
        ["the same while the chip is selected, reads", percent(figures["read_share_busy"])],
        ["pace of the wire here, bytes a second", figures["bytes_per_second"]],
        ["what was read is what was written", str(figures["read_equals_written"])],
    ]
    title = f"{physical.upper()} of {figures['target']}"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)
    console.print_line(f"written to {reports.write(REPORTS[physical], COMMAND, figures)}")
    return 0 if figures["read_equals_written"] else 1


if __name__ == "__main__":
    sys.exit(exit_status(main))
