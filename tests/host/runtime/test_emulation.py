"""How long an emulated board takes: as long as the model of boards and wires says."""

import math
from functools import cache

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_list import find_dram_program
from slipstick.devices.emulated import EmulatedDevice
from slipstick.devices.wire_models import find_wire_model
from slipstick.program import Program
from slipstick.runtime import emulation as emulation_module
from slipstick.runtime.arrivals import Ready
from slipstick.runtime.emulation import Emulation
from slipstick.runtime.end_to_end import predicted_per_second
from slipstick.runtime.executor import BATCH
from slipstick.runtime.stages.board_time import BoardTime, batch_traffic
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

WIRE = "uart@3000000"
SMALL = find_target("sim-small").configuration
STREAMING = Configuration(rows=8, columns=8, activation_bytes=1 << 14, weight_bytes=1 << 12)
DRAM = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    instruction_words=1 << 9,
    accumulator_depth=64,
    dram="MT48LC16M16",
)


class Clock:
    """In the place of the module ``time``: sleep takes no time, and nothing else does either."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(emulation_module, "time", clock)
    return clock


@cache
def program_of(configuration: Configuration) -> Program:
    builder = NetworkBuilder(3, 8, 8, 16)
    for _ in range(4):
        builder.same_conv2d(3, 16 if configuration is DRAM else 32)
    return compile_graph(builder.graph(), configuration)


def predicted(program: Program, wire: str, images: int) -> float:
    """Seconds of a batch; 16 images share what is loaded."""
    board = BoardTime("board", program.hardware, find_wire_model(wire) if wire else None)
    full, rest = divmod(images, BATCH)
    return full * BATCH * board.seconds(program) + rest * board.seconds(program, max(rest, 1))


def images_of(program: Program, count: int) -> dict[str, np.ndarray]:
    (name,) = program.inputs
    shape = program.tensors[name].shape[1:]
    drawn = np.random.default_rng(1).integers(-128, 128, (count, *shape))
    return {name: drawn.astype(np.int8)}


@pytest.mark.parametrize("wire", ["", WIRE])
@pytest.mark.parametrize(
    "configuration", [SMALL, STREAMING, DRAM], ids=["small", "streaming", "dram"]
)
@pytest.mark.parametrize("count", [1, 20, 32])
@pytest.mark.parametrize("slower", [1.0, 2.5])
def test_a_batch_takes_the_predicted_time(
    configuration: Configuration, wire: str, count: int, slower: float, clock: Clock
) -> None:
    program = program_of(configuration)
    assert program.is_streamed == (configuration is not SMALL)
    emulation = Emulation(program, EmulatedDevice(configuration, wire, slower))
    begun = clock.now
    emulation.infer_batch(images_of(program, count))
    seconds = clock.now - begun - emulation.reply_seconds
    assert seconds == pytest.approx(slower * predicted(program, wire, count), rel=1e-3)
    assert (emulation.reply_seconds > 0) == bool(wire)


def test_images_of_a_stream_share_no_loads(clock: Clock) -> None:
    program = program_of(STREAMING)
    emulation = Emulation(program, EmulatedDevice(STREAMING, WIRE, 1.0))
    feeds = images_of(program, 3)
    (name,) = feeds
    source = Ready([{name: feeds[name][at : at + 1]} for at in range(3)])
    begun = clock.now
    assert len(list(emulation.infer_stream(source))) == 3
    seconds = clock.now - begun - emulation.reply_seconds
    assert seconds == pytest.approx(3 * predicted(program, WIRE, 1), rel=1e-3)


def test_loads_are_shared_by_images_that_run_together() -> None:
    program = program_of(STREAMING)
    traffic, alone = program.transferred(), batch_traffic(program, 1)
    assert (alone.loaded, alone.uploaded, alone.downloaded) == (
        traffic.loaded,
        traffic.uploaded,
        traffic.downloaded,
    )
    shared = batch_traffic(program)
    assert shared.loaded < traffic.loaded / 8
    board = BoardTime("board", STREAMING, find_wire_model(WIRE))
    assert board.seconds(program, 1) > 1.3 * board.seconds(program)


def test_programs_from_dram_load_nothing_over_the_wire() -> None:
    program = program_of(DRAM)
    listed = find_dram_program(program)
    assert listed is not None
    wire = find_wire_model("spi")
    (seconds,) = {BoardTime("b", DRAM, wire).seconds(program, images) for images in (1, BATCH)}
    moved = [math.prod(program.tensors[n].shape) for n in (*program.inputs, *program.outputs)]
    core = listed.timeline.end / DRAM.clock_hz
    assert seconds == pytest.approx(max(core, *map(wire.seconds, moved)), rel=0.05)
    assert seconds < 0.5 / predicted_per_second(program, wire)
