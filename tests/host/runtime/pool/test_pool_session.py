"""Sessions on pools: bit-equal to one device, whatever the members are."""

import asyncio
import time
from functools import cache

import numpy as np
import pytest
import stateful_networks as networks
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.devices import DeviceGroup, hardware_of, open_device
from slipstick.devices.emulated_name import EmulatedPlace, emulated_place
from slipstick.devices.group import GroupKind
from slipstick.errors import DeviceError, InputError, ProgramError, SlipstickError
from slipstick.examples.digits import MODEL
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.runtime.executions import group_execution
from slipstick.runtime.pool.board import BoardState
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from tflm_networks import SMALL


@cache
def network() -> Program:
    builder = NetworkBuilder(3, 6, 5, 3)
    builder.same_conv2d(3, 8)
    builder.fully_connected(10)
    return compile_graph(builder.graph(), find_target("sim-small").configuration)


@cache
def images_of(count: int = 100) -> np.ndarray:
    shape = network().tensors[network().inputs[0]].shape
    return np.random.default_rng(7).integers(-128, 128, (count, *shape[1:]), dtype=np.int8)


@cache
def expected() -> np.ndarray:
    with InferenceSession(network(), "model") as session:
        return session.run_batch(None, {session.program.inputs[0]: images_of()})[0]


@pytest.mark.parametrize(
    "device",
    [
        "pool:model",
        "pool:model,model,model",
        "pool:emulated,emulated:/2,model",
        ["model", "emulated:@usb-hs"],
        "emulated:@rgmii/0.5",
    ],
)
def test_equal_to_one_device(device: str | list[str]) -> None:
    with InferenceSession(network(), device) as session:
        name = session.program.inputs[0]
        assert np.array_equal(session.run_batch(None, {name: images_of()})[0], expected())
        found = np.concatenate([r[0] for r in session.stream(list(images_of()))])
        assert np.array_equal(found, expected())
        futures = [session.submit({name: image}) for image in images_of()]
        found = np.concatenate([future.result(20)[0] for future in futures])
        assert np.array_equal(found, expected())
        boards = session.boards()
        assert sum(board.images for board in boards) >= 100 and session.retried == 0
        assert all(board.state is not BoardState.FAILED for board in boards)


def test_asynchronous_stream() -> None:
    async def run() -> np.ndarray:
        results = session.astream(list(images_of()))
        return np.concatenate([result[0] async for result in results])

    with InferenceSession(network(), "pool:model,emulated") as session:
        assert np.array_equal(asyncio.run(run()), expected())


def test_members_of_other_hardware_get_programs_of_their_own() -> None:
    with InferenceSession(MODEL, "model:sim-small") as session:
        name = session.program.inputs[0]
        shape = session.program.tensors[name].shape[1:]
        x = np.random.default_rng(4).integers(-128, 128, (60, *shape), dtype=np.int8)
        alone = session.run_batch(None, {name: x})[0]
    with InferenceSession(MODEL, "pool:model:sim-small,emulated:1x16x16,model:1x4x4") as session:
        assert session.program.hardware == find_target("sim-small").configuration
        assert np.array_equal(session.run_batch(None, {name: x})[0], alone)
        assert len({board.target for board in session.boards()}) == 3
    with pytest.raises(ProgramError, match="hardware"):
        InferenceSession(network(), "pool:model,model:1x4x4")


def test_open_devices_stay_open() -> None:
    devices = [open_device("model", network().hardware) for _ in range(2)]
    for _ in range(2):
        with InferenceSession(network(), devices) as session:
            found = session.run_batch(None, {session.program.inputs[0]: images_of()})[0]
            assert np.array_equal(found, expected())
    for device in devices:
        device.identify()
        device.close()


def test_sessions_share_the_boards_of_a_pool() -> None:
    other = compile_graph(_other_graph(), network().hardware)
    group = open_device("pool:model,model", network().hardware)
    assert isinstance(group, DeviceGroup)
    with InferenceSession(network(), group) as first, InferenceSession(other, group) as second:
        shape = other.tensors[other.inputs[0]].shape
        y = np.random.default_rng(3).integers(-128, 128, (40, *shape[1:]), dtype=np.int8)
        with InferenceSession(other, "model") as alone:
            wanted = alone.run_batch(None, {other.inputs[0]: y})[0]
        asked = [
            (
                first.submit({network().inputs[0]: images_of()[k]}),
                second.submit({other.inputs[0]: y[k]}),
            )
            for k in range(40)
        ]
        for k, (one, two) in enumerate(asked):
            assert np.array_equal(one.result(20)[0], expected()[k : k + 1])
            assert np.array_equal(two.result(20)[0], wanted[k : k + 1])
    group.close()


def _other_graph():
    made = NetworkBuilder(5, 4, 4, 4)
    made.fully_connected(6)
    return made.graph()


def test_network_that_keeps_state_stays_on_one_board() -> None:
    data = networks.wake_word(np.random.default_rng(1))
    program = compile_graph(load_tflite_bytes(data, "state"), SMALL)
    shape = program.tensors[program.inputs[0]].shape
    x = np.random.default_rng(2).integers(-100, 100, (12, *shape[1:])).astype(np.int8)
    with InferenceSession(program, "model") as session:
        wanted = session.run_batch(None, {program.inputs[0]: x})
    with InferenceSession(program, "pool:model,model") as session:
        found = session.run_batch(None, {program.inputs[0]: x})
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        with pytest.raises(DeviceError, match="from run to run"):
            session.submit({program.inputs[0]: x[0]})


def test_submit_checks_its_input_at_once() -> None:
    with InferenceSession(network(), "model") as session:
        name = session.program.inputs[0]
        with pytest.raises(InputError, match="must be one image, not 3"):
            session.submit({name: images_of()[:3]})
        with pytest.raises(InputError, match="shape"):
            session.submit({name: images_of()[0, :2]})
        with pytest.raises(InputError, match="unknown"):
            session.submit({name: images_of()[0]}, ["nothing"])
        future = session.submit({name: images_of()[0]})
        assert np.array_equal(future.result(20)[0], expected()[:1])
    with pytest.raises(DeviceError, match="closed"):
        session.submit({name: images_of()[0]})


def test_emulated_board_takes_its_time() -> None:
    with InferenceSession(network(), "emulated:/200") as session:
        feed = {session.program.inputs[0]: images_of()[:20]}
        session.run_batch(None, feed)
        start = time.perf_counter()
        found = session.run_batch(None, feed)[0]
        seconds = time.perf_counter() - start
        assert np.array_equal(found, expected()[:20])
        least = 20 * 200 * network().predicted_cycles / network().hardware.clock_hz
        assert least <= seconds


def test_names() -> None:
    assert emulated_place("") == EmulatedPlace("", "", 1.0)
    assert emulated_place("ulx3s-12f@uart@3000000/2.5") == EmulatedPlace(
        "ulx3s-12f", "uart@3000000", 2.5
    )
    small = find_target("sim-small").configuration
    assert hardware_of("pool:udp:10.0.0.1,emulated:sim-small@rmii") == small
    assert hardware_of("model") is None and hardware_of("serial:/dev/ttyUSB0") is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pool", "must name its devices: pool:DEVICE"),
        ("pool:", "must name its devices"),
        ("pool:model,,model", "must name its devices"),
        ("pool:model,pool:model", "must be of single devices, not of 'pool:model'"),
        ("pool:" + ",".join(["model"] * 257), "at most 256, not 257"),
        ("pool:model,nothing", "device must be one of .*, not 'nothing'"),
        ("pool:model:nothing", "not 'nothing'"),
        ("emulated:sim-small/0", "SLOWER a number above 0"),
        ("emulated:sim-small@nowhere", "wire must be one of .*, not 'nowhere'"),
        ("emulated:1x4x4", "compile it for this target"),
    ],
)
def test_bad_names(name: str, told: str) -> None:
    with pytest.raises(SlipstickError, match=told):
        InferenceSession(network(), name)


def test_bad_lists() -> None:
    with pytest.raises(DeviceError, match="not an empty list"):
        InferenceSession(network(), [])
    device = open_device("model", network().hardware)
    with pytest.raises(DeviceError, match="not both"):
        InferenceSession(network(), ["model", device])


def test_group_is_no_single_device() -> None:
    group = open_device("pool:model,model", network().hardware)
    with pytest.raises(DeviceError, match="pool:model,model is 2 devices together"):
        group.identify()
    with pytest.raises(DeviceError, match="single device"):
        group.read(0, 1)
    group.close()


@pytest.mark.parametrize("kind", [GroupKind.PIPELINE, GroupKind.SPLIT])
def test_boards_that_divide_a_network_are_no_pool(kind: GroupKind) -> None:
    devices = [open_device("model", network().hardware) for _ in range(2)]
    group = DeviceGroup(kind, ["one", "two"], devices)
    told = rf"is for one board, but device {kind}:one,two divides .* compile --{kind} writes"
    with pytest.raises(ProgramError, match=told):
        group_execution(network(), group, lambda hardware: network())
