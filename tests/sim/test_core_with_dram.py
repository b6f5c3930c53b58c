"""The core with its DMA and a DRAM that checks its timing, against the golden model."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from random_networks import NetworkBuilder, random_network
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_blocks import constant_loads
from slipstick.devices import Device
from slipstick.devices.link import LinkDevice
from slipstick.devices.model import ModelDevice
from slipstick.devices.simulation import SimulationDevice
from slipstick.graph import Graph
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.program.steps import DownloadStep, Placement, RunStep, UploadStep
from slipstick.runtime.executor import Execution, Values
from slipstick.session import InferenceSession
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, DmaStatus, Operation, Transfer
from slipstick_rtl.link.protocol import Space

PLAIN = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 13,
    weight_bytes=1 << 14,
    instruction_words=1 << 11,
)
SHAPES = {
    "8x8": PLAIN,
    "16x8 with ninth bits": dataclasses.replace(
        PLAIN, rows=16, ninth_bits=1, weight_rows=2, multiplier="lut"
    ),
    # the core's clock is another one than the memory's, which has more words than the core takes
    "16x8 with DDR3": dataclasses.replace(
        PLAIN, rows=16, dram="MT41K256M16", dram_clock_hz=100_000_000, clock_hz=90_000_000
    ),
}
CHIP = "MT48LC16M16"
LIST, DATA = 0x10000, 0x20000
"""Words of DRAM for instructions and for what they move."""


THOROUGH = pytest.mark.thorough


@pytest.fixture(
    params=["8x8", pytest.param("16x8 with ninth bits", marks=THOROUGH), "16x8 with DDR3"],
    scope="module",
)
def configuration(request: pytest.FixtureRequest) -> Configuration:
    shape = SHAPES[request.param]
    return shape if shape.dram else dataclasses.replace(shape, dram=CHIP)


@pytest.fixture(scope="module")
def sim(configuration: Configuration) -> Iterator[SimulationDevice]:
    device = SimulationDevice(configuration)
    yield device
    device.close()


def box(operation: Operation, placement: Placement, place: int) -> Transfer:
    """A LOAD or STORE of a tensor that lies in DRAM as dense rows, each from a word on.

    A pixel with a pitch of more than its channels is a run of its own, from a word on as well.
    """
    dense = placement.pixel_pitch == placement.channels
    run_bytes = placement.width * placement.channels if dense else placement.channels
    run_words = -(-run_bytes // WORD_BYTES)
    runs = 1 if dense else placement.width
    return Transfer(
        operation=operation,
        chip=placement.address,
        dram=place,
        run_bytes=run_bytes,
        runs=runs,
        rows=placement.height,
        chip_run_pitch=0 if dense else placement.pixel_pitch,
        chip_row_pitch=placement.row_pitch,
        dram_run_pitch=run_words,
        dram_row_pitch=run_words * runs,
    )


class Dram:
    """Reaches the DRAM of a device through its activation memory."""

    def __init__(self, device: LinkDevice) -> None:
        self.device = device
        self._most = device.configuration.activation_bytes

    def give(self, *transfers: Transfer) -> DmaStatus:
        packed = b"".join(transfer.pack() for transfer in transfers)
        self.device.write(Space.TRANSFERS, 0, packed)
        while self.device.status().running:
            pass
        return self.device.status().dma

    def write(self, place: int, data: bytes) -> None:
        for begin in range(0, len(data), self._most):
            part = data[begin : begin + self._most]
            self.device.write(Space.ACTIVATIONS, 0, part)
            word = place + begin // WORD_BYTES
            store = Transfer(operation=Operation.STORE, dram=word, run_bytes=len(part))
            assert self.give(store) is DmaStatus.OK

    def read(self, place: int, count: int) -> bytes:
        data = b""
        for begin in range(0, count, self._most):
            length = min(self._most, count - begin)
            word = place + begin // WORD_BYTES
            load = Transfer(operation=Operation.LOAD, dram=word, run_bytes=length)
            assert self.give(load) is DmaStatus.OK
            data += self.device.read(0, length)
        return data


def _compiled(configuration: Configuration, seed: int) -> tuple[Program, np.ndarray] | None:
    """A network that is whole on the chip, and its images; None if this one is not."""
    builder = random_network(seed)
    program = compile_graph(builder.graph(builder.last), configuration)
    kinds = (UploadStep, RunStep, DownloadStep)
    whole = not program.loads and all(isinstance(step, kinds) for step in program.steps)
    return (program, builder.images()) if whole else None


def test_dram_keeps_what_is_written(sim: SimulationDevice) -> None:
    dram, generator = Dram(sim), np.random.default_rng(1)
    data = generator.integers(0, 256, 20_000, np.uint8).tobytes()
    for place in (0, 12_345, (1 << 22) - 2_500):
        dram.write(place, data)
        assert dram.read(place, len(data)) == data


def test_long_loads_have_most_of_the_chip_s_rate(sim: SimulationDevice) -> None:
    dram, configuration = Dram(sim), sim.configuration
    load = Transfer(operation=Operation.LOAD, dram=DATA, run_bytes=configuration.activation_bytes)

    def cycles(loads: int) -> int:
        listed = [load] * loads + [Transfer(operation=Operation.END)]
        dram.write(LIST, b"".join(transfer.pack() for transfer in listed))
        assert dram.give(Transfer(operation=Operation.JUMP, dram=LIST)) is DmaStatus.OK
        return sim.status().cycles

    words = configuration.activation_bytes // WORD_BYTES
    each = (cycles(12) - cycles(4)) / 8 / words
    # the core takes a word per cycle, however fast the chip is
    assert each < 1.15 * max(1.0, WORD_BYTES / configuration.dram_bytes_per_cycle)


def _put_into_dram(dram: Dram, program: Program) -> tuple[dict[str, int], list[Transfer]]:
    """Constants and a list that runs the program; returns where tensors lie, and the list."""
    transfers, place = list[Transfer](), DATA
    for image in program.images:
        data, loads = constant_loads(image, program.hardware, place)
        dram.write(place, data)
        transfers += loads
        place += len(data) // WORD_BYTES
    places = dict[str, int]()
    for step in program.steps:
        if isinstance(step, RunStep):
            transfers.append(Transfer(operation=Operation.RUN, pcs=(step.pcs[0], step.pcs[1])))
            transfers.append(Transfer(operation=Operation.WAIT))
            continue
        assert isinstance(step, UploadStep | DownloadStep)
        placement = program.tensors[step.tensor].placement
        assert placement is not None
        operation = Operation.LOAD if isinstance(step, UploadStep) else Operation.STORE
        transfer = box(operation, placement, place)
        transfers.append(transfer)
        places[step.tensor] = place
        place += transfer.words
    transfers.append(Transfer(operation=Operation.END))
    dram.write(LIST, b"".join(transfer.pack() for transfer in transfers))
    return places, transfers


def _rows(program: Program, name: str, value: np.ndarray) -> bytes:
    """A tensor as it lies in DRAM: runs from a word on."""
    placement = program.tensors[name].placement
    assert placement is not None
    transfer = box(Operation.LOAD, placement, 0)
    runs = np.ascontiguousarray(value, np.int8).view(np.uint8).reshape(-1, transfer.run_bytes)
    padded = np.zeros((len(runs), transfer.run_words * WORD_BYTES), np.uint8)
    padded[:, : transfer.run_bytes] = runs
    return padded.tobytes()


def _value(program: Program, name: str, data: bytes) -> np.ndarray:
    placement = program.tensors[name].placement
    assert placement is not None
    transfer = box(Operation.LOAD, placement, 0)
    runs = np.frombuffer(data, np.uint8).reshape(-1, transfer.run_words * WORD_BYTES)
    return runs[:, : transfer.run_bytes].copy().view(np.int8).reshape(program.tensors[name].shape)


def _run_from_dram(
    device: LinkDevice, program: Program, images: np.ndarray
) -> list[dict[str, np.ndarray]]:
    """One JUMP per image, from a chip that holds nothing of the program."""
    dram, answers = Dram(device), list[dict[str, np.ndarray]]()
    places, _ = _put_into_dram(dram, program)
    device.write(Space.INSTRUCTIONS, 0, bytes(4 * device.configuration.instruction_words))
    for image in images:
        for name in program.inputs:
            dram.write(places[name], _rows(program, name, image))
        assert dram.give(Transfer(operation=Operation.JUMP, dram=LIST)) is DmaStatus.OK
        found = dict[str, np.ndarray]()
        for name in program.outputs:
            size = len(_rows(program, name, np.zeros(program.tensors[name].shape, np.int8)))
            found[name] = _value(program, name, dram.read(places[name], size))
        answers.append(found)
    return answers


def test_a_network_runs_from_dram(sim: SimulationDevice) -> None:
    """On the RTL and on the golden model, as a session has it that loads everything itself."""
    tried = 0
    model = ModelDevice(sim.configuration)
    for seed in range(40):
        made = _compiled(sim.configuration, seed)
        if made is None or tried == 6:
            continue
        tried += 1
        program, images = made
        images = images[:2]
        with InferenceSession(program, "model") as session:
            expected = session.run_batch(None, {program.inputs[0]: images})
        for device in (model, sim):
            for k, found in enumerate(_run_from_dram(device, program, images)):
                for name, value in zip(program.outputs, expected, strict=True):
                    assert np.array_equal(found[name][0], value[k]), f"{name} of seed {seed}"
    assert tried == 6


def test_a_flipped_bit_ends_the_list(sim: SimulationDevice) -> None:
    """MEMORY_CORRUPT in the STATUS, no answer to what waits, and all is well after a reset."""
    made = next(made for seed in range(40) if (made := _compiled(sim.configuration, seed)))
    program, images = made
    for device in (ModelDevice(sim.configuration), sim):
        dram = Dram(device)
        expected = _run_from_dram(device, program, images[:1])
        block = bytearray(dram.read(DATA, WORD_BYTES))
        block[3] ^= 0x10
        dram.write(DATA, bytes(block))
        status = dram.give(Transfer(operation=Operation.JUMP, dram=LIST))
        assert status is DmaStatus.MEMORY_CORRUPT
        assert device.status().bad_instruction
        # what comes behind an error is dropped
        assert dram.give(Transfer(operation=Operation.END)) is DmaStatus.MEMORY_CORRUPT
        device.reset()
        assert device.status().dma is DmaStatus.OK
        again = _run_from_dram(device, program, images[:1])
        for name in program.outputs:
            assert np.array_equal(again[0][name], expected[0][name])


_SMALL = dataclasses.replace(
    PLAIN,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    instruction_words=1 << 9,
    accumulator_depth=64,
    dram=CHIP,
)
"""What large networks run on in these tests: the fewer kinds of hardware, the less is compiled."""


@pytest.mark.parametrize(
    ("small", "seeds"),
    [
        pytest.param(_SMALL, range(200, 225), id="8x8"),
        # a word of weights is half a group of the DMA, a tile of channels half a word of DRAM
        pytest.param(
            dataclasses.replace(_SMALL, rows=4, columns=4, lanes=4),
            range(300, 316),
            id="4x4",
            marks=THOROUGH,
        ),
    ],
)
def test_streamed_networks_run_from_dram(small: Configuration, seeds: range) -> None:
    """A session makes a list of a network that does not fit; results are the reference's.

    On the RTL and on the golden model. Random networks in which the host has work between runs are
    streamed by the host, as without DRAM.
    """
    sim, model = SimulationDevice(small), ModelDevice(small)
    listed = 0
    for seed in seeds:
        builder = random_network(seed)
        graph = builder.graph(builder.last)
        program = compile_graph(graph, small)
        images = np.concatenate([builder.images() for _ in range(2)])
        expected = run_graph(graph, [images])
        for device in (model, sim):
            execution = Execution(program, device)
            for k in range(2):
                found = execution.infer({"input": images[k : k + 1]})
                for name in program.outputs:
                    message = f"network {seed}, {name}"
                    np.testing.assert_array_equal(found[name][0], expected[name][k], message)
            together = execution.infer_batch({"input": images})
            for name in program.outputs:
                np.testing.assert_array_equal(together[name], expected[name])
            if execution.lists:
                _check_batches(graph, device, images, expected)
        listed += execution.lists
        if execution.lists:
            assert execution.last_cycles
    sim.close()
    assert listed > 6


def _check_batches(graph: Graph, device: Device, images: np.ndarray, expected: Values) -> None:
    """Two images in a list: alone, both, and one that is left over."""
    program = compile_graph(graph, device.configuration, batch=2)
    assert program.batch == 2
    execution = Execution(program, device)
    for some in (images[:1], images, np.concatenate([images, images[:1]])):
        found = execution.infer_batch({"input": some})
        for name in program.outputs:
            wanted = np.concatenate([expected[name], expected[name]])[: len(some)]
            np.testing.assert_array_equal(found[name], wanted)


def test_a_reshape_between_runs_is_another_name() -> None:
    """A tensor is written under one name, and read under the other from the same place in DRAM."""
    builder = NetworkBuilder(6, 8, 8, 16)
    builder.same_conv2d(3, 16)
    builder.same_conv2d(3, 16)
    builder.reshape((1, 4, 4, 64))
    builder.same_conv2d(3, 16)
    builder.same_conv2d(1, 16)
    graph = builder.graph(builder.last)
    program = compile_graph(graph, _SMALL)
    images = np.concatenate([builder.images() for _ in range(2)])
    expected = run_graph(graph, [images])
    for device in (ModelDevice(_SMALL), SimulationDevice(_SMALL)):
        execution = Execution(program, device)
        assert execution.lists
        found = execution.infer_batch({"input": images})
        for name in program.outputs:
            np.testing.assert_array_equal(found[name], expected[name])
        device.close()


@THOROUGH
def test_late_layers_stay_on_the_chip() -> None:
    """Small maps, many weights: only the image and the scores cross, and some maps at most once."""
    small = dataclasses.replace(PLAIN, activation_bytes=1 << 13, weight_bytes=1 << 12, dram=CHIP)
    builder = NetworkBuilder(5, 6, 6, 16)
    for _ in range(3):
        before = builder.last
        builder.same_conv2d(1, 96)
        builder.same_conv2d(1, 16)
        builder.add(before)
    graph = builder.graph(builder.last)
    program = compile_graph(graph, small)
    crossing = {
        step.tensor for step in program.steps if isinstance(step, UploadStep | DownloadStep)
    }
    assert program.loads and crossing == {"input", builder.last}
    images = np.concatenate([builder.images() for _ in range(2)])
    expected = run_graph(graph, [images])
    for device in (ModelDevice(small), SimulationDevice(small)):
        found = Execution(program, device).infer_batch({"input": images})
        for name in program.outputs:
            np.testing.assert_array_equal(found[name], expected[name])
        device.close()
