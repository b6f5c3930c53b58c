"""Measures bulk transfers on wires: ``python -m slipstick.benchmarks.wire [uart|spi]...``.

The board is the simulated one of ``serve-sim``, whose clock goes on while the host thinks: pauses
of the host count, and the wire's time is the board's. If the shared networks are there, ResNet-8
runs over the wire as well and is held to the golden model.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space

from .. import console, reports
from ..data.inputs import load_inputs
from ..devices import open_device
from ..devices.simulated_boards import Physical, SimulatedBoard, open_board
from ..errors import InputError
from ..failures import exit_status
from ..loading import compile_file
from ..session import InferenceSession
from ..targets import find_target
from .suite import shared_folder

TARGET = "sim-small"
COMMAND = "python -m slipstick.benchmarks.wire"
BULK_BYTES = 1 << 16
NETWORK = Path("models", "ic01_resnet8_int8.tflite")
IMAGES = Path("data", "cifar10", "ic01_cifar10_200.npz")
IMAGE_COUNT = 5
REPORTS = {Physical.UART: "bench_serial", Physical.SPI: "bench_spi"}
"""Ethernet's frames are measured by ``benchmarks.end_to_end``."""


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
    with _served(Physical(physical), configuration) as board:
        with closing(open_device(board.device, configuration)) as device:
            start, cycles = time.perf_counter(), [(board.cycles, board.busy_cycles)]
            device.write(Space.ACTIVATIONS, 0, data)
            cycles.append((board.cycles, board.busy_cycles))
            same = device.read(0, count) == data
            cycles.append((board.cycles, board.busy_cycles))
            seconds = time.perf_counter() - start
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


def network_benchmark(
    physical: Physical | str, model: Path, inputs: Path, target: str = TARGET
) -> dict[str, Any]:
    """Runs a network through the pins of a target's simulation, and on the golden model.

    Returns
    -------
    dict
        ``equal_images`` of ``images``; clock cycles of the board: ``load_cycles`` until the program
        is there, ``cycles_per_image`` with all transfers, ``run_cycles`` of it the network's own.
    """
    program = compile_file(model, target)
    x = load_inputs([inputs], program.tensors[program.inputs[0]].shape).x[:IMAGE_COUNT]
    feeds = {program.inputs[0]: x}
    with InferenceSession(program, "model") as golden:
        expected = golden.run_batch(None, feeds)[0]
    with _served(Physical(physical), program.hardware) as board:
        begun = board.cycles
        with InferenceSession(program, board.device) as session:
            loaded = board.cycles
            outputs = session.run_batch(None, feeds)[0]
            ended, run_cycles = board.cycles, session.last_cycles
    same = (outputs == expected).reshape(len(x), -1).all(axis=1)
    return {
        "network": model.stem,
        "images": len(x),
        "equal_images": int(same.sum()),
        "load_cycles": loaded - begun,
        "cycles_per_image": round((ended - loaded) / len(x)),
        "run_cycles": run_cycles,
    }


@contextmanager
def _served(physical: Physical, configuration: Configuration) -> Iterator[SimulatedBoard]:
    """A simulated board that works for whoever opens it."""
    stop = threading.Event()
    with closing(open_board(physical, configuration)) as board:
        thread = threading.Thread(target=board.serve, args=(stop.is_set,))
        thread.start()
        try:
            yield board
        finally:
            stop.set()
            thread.join()


def main() -> int:
    """Measures, prints and keeps the figures; 1 if the bytes that came back were wrong."""
    wanted = sys.argv[1:] or list(REPORTS)
    if not set(wanted) <= set(REPORTS):
        raise InputError(f"wires must be of {', '.join(REPORTS)}, not {' '.join(wanted)}")
    return max(_measure(Physical(name)) for name in wanted)


def _measure(physical: Physical) -> int:
    with console.step(f"transfers to {TARGET} through its {physical.upper()}"):
        figures = wire_benchmark(physical)
    percent = console.percent
    rows = [
        ["bytes each way", figures["bytes"]],
        ["clock cycles of a byte on the wire", figures["cycles_per_byte"]],
        ["share of the raw rate, writes", percent(figures["write_share"])],
        ["share of the raw rate, reads", percent(figures["read_share"])],
        *_selected(physical, figures),
        ["pace of the wire here, bytes a second", figures["bytes_per_second"]],
        ["what was read is what was written", str(figures["read_equals_written"])],
    ]
    model, images = (shared_folder() / path for path in (NETWORK, IMAGES))
    sound = figures["read_equals_written"]
    if model.exists() and images.exists():
        with console.step(f"{model.stem} through the {physical.upper()}"):
            figures |= network_benchmark(physical, model, images)
        sound = sound and figures["equal_images"] == figures["images"]
        rows += [
            [f"{model.stem}: right images", _of(figures)],
            ["clock cycles to load it", figures["load_cycles"]],
            ["clock cycles an image, with transfers", figures["cycles_per_image"]],
            ["of which the network runs for", figures["run_cycles"]],
        ]
    title = f"{physical.upper()} of {figures['target']}"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)
    console.print_line(f"written to {reports.write(REPORTS[physical], COMMAND, figures)}")
    return 0 if sound else 1


def _selected(physical: Physical, figures: dict[str, Any]) -> list[list[object]]:
    """Rows of what only SPI has."""
    if physical is Physical.UART:
        return []
    return [
        [
            f"the same while the chip is selected, {way}s",
            console.percent(figures[f"{way}_share_busy"]),
        ]
        for way in ("write", "read")
    ]


def _of(figures: dict[str, Any]) -> str:
    return f"{figures['equal_images']} of {figures['images']}"


if __name__ == "__main__":
    sys.exit(exit_status(main))
