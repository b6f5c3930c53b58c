"""Streams: results as they come, in order, as a batch gives them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from functools import cache

import numpy as np
import pytest
import stateful_networks as networks
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.devices import Device, open_device
from slipstick.devices.link import LinkDevice
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.errors import DeviceError, InputError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.runtime.arrivals import READ_AHEAD
from slipstick.runtime.executor import Execution
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint
from tflm_networks import SMALL

TARGET = find_target("sim-small").configuration
TIMEOUT = 20.0
KINDS = ["model", "link"]


def device_of(kind: str, configuration: Configuration) -> Device:
    if kind == "model":
        return open_device("model", configuration)
    endpoint = Endpoint(configuration, GoldenCore(configuration))
    return LinkDevice(LoopbackTransport(endpoint), configuration=configuration)


@cache
def network() -> Program:
    builder = NetworkBuilder(3, 6, 5, 3)
    builder.same_conv2d(3, 8)
    builder.fully_connected(10)
    return compile_graph(builder.graph(), TARGET)


@cache
def images_of() -> np.ndarray:
    shape = network().tensors[network().inputs[0]].shape
    return np.random.default_rng(7).integers(-128, 128, (100, *shape[1:]), dtype=np.int8)


def batch_of(session: InferenceSession, images: np.ndarray) -> np.ndarray:
    return session.run_batch(None, {session.program.inputs[0]: images})[0]


def joined(results: list[list[np.ndarray]]) -> np.ndarray:
    assert all(len(result) == 1 and len(result[0]) == 1 for result in results)
    return np.concatenate([result[0] for result in results])


@pytest.fixture(params=KINDS)
def session(request: pytest.FixtureRequest) -> Iterator[InferenceSession]:
    with (
        closing(device_of(request.param, TARGET)) as device,
        InferenceSession(network(), device) as session,
    ):
        yield session


@pytest.fixture
def link_session() -> Iterator[InferenceSession]:
    with (
        closing(device_of("link", TARGET)) as device,
        InferenceSession(network(), device) as session,
    ):
        assert isinstance(session._execution, Execution)
        assert session._execution._pipelined is not None
        yield session


def test_results_are_those_of_a_batch_in_its_order(session: InferenceSession) -> None:
    images = images_of()[:100]
    made = list(session.stream(images))
    np.testing.assert_array_equal(joined(made), batch_of(session, images))


def test_items_are_mappings_or_arrays_with_or_without_a_batch_axis(
    session: InferenceSession,
) -> None:
    images, (name,) = images_of()[:4], session.program.inputs
    items = [{name: images[0]}, {name: images[1:2]}, images[2], images[3:4]]
    made = joined(list(session.stream(items, list(session.program.outputs))))
    np.testing.assert_array_equal(made, batch_of(session, images))


def test_an_empty_stream_has_no_results(session: InferenceSession) -> None:
    assert list(session.stream([])) == []


class Patient:
    """Gives the next item when the result of the one before has been received."""

    def __init__(self, images: np.ndarray) -> None:
        self._images, self._received = images, threading.Event()
        self._received.set()
        self.late: list[int] = []

    def __iter__(self) -> Iterator[np.ndarray]:
        for at, image in enumerate(self._images):
            if not self._received.wait(TIMEOUT):
                self.late.append(at)
            self._received.clear()
            yield image
        if not self._received.wait(TIMEOUT):
            self.late.append(len(self._images))

    async def each(self) -> AsyncIterator[np.ndarray]:
        for at, image in enumerate(self._images):
            if not await asyncio.to_thread(self._received.wait, TIMEOUT):
                self.late.append(at)
            self._received.clear()
            yield image

    def receive(self) -> None:
        self._received.set()


def test_a_result_does_not_wait_for_the_next_item(session: InferenceSession) -> None:
    images = images_of()[:6]
    source, made = Patient(images), []
    for result in session.stream(source):
        made.append(result)
        source.receive()
    assert not source.late
    np.testing.assert_array_equal(joined(made), batch_of(session, images))


def test_an_error_of_the_source_comes_in_its_place(session: InferenceSession) -> None:
    def failing() -> Iterator[np.ndarray]:
        yield from images_of()[:5]
        raise OSError("the camera is gone")

    made = []
    with pytest.raises(OSError, match="the camera is gone"):
        for result in session.stream(failing()):
            made.append(result)
    np.testing.assert_array_equal(joined(made), batch_of(session, images_of()[:5]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((3, 3), np.int8), r"item 2 of the stream: input .* must have the shape"),
        (np.zeros((2, 6, 5, 3), np.int8), r"item 2 of the stream: .* must be one image, not 2"),
        ({"other": 1}, r"item 2 of the stream: input 'other' is unknown"),
    ],
)
def test_a_bad_item_is_named(link_session: InferenceSession, bad: object, message: str) -> None:
    images, made = images_of()[:4], []
    with pytest.raises(InputError, match=message):
        for result in link_session.stream([images[0], images[1], bad, images[3]]):
            made.append(result)
    np.testing.assert_array_equal(joined(made), batch_of(link_session, images[:2]))


@pytest.mark.parametrize("wrong", [5, "images", {"x": 1}])
def test_a_stream_is_an_iterable(link_session: InferenceSession, wrong: object) -> None:
    for begin in (link_session.stream, link_session.astream):
        with pytest.raises(InputError, match="a stream must be an iterable of inputs, not"):
            begin(wrong)  # type: ignore[reportArgumentType]
        with pytest.raises(InputError, match="output 'none' is unknown"):
            begin([], ["none"])


def sources() -> int:
    """Threads of streams; those of pools that other tests left hanging do not count."""
    names = ("slipstick-source", "slipstick-stream")
    return sum(thread.name.startswith(names) for thread in threading.enumerate())


def endless(images: np.ndarray, given: list[int]) -> Iterator[np.ndarray]:
    at = 0
    while True:
        given.append(at)
        yield images[at % len(images)]
        at += 1


@pytest.mark.parametrize("taken", [0, 1, 70])
def test_a_stream_closed_early_leaves_the_device_usable(
    session: InferenceSession, taken: int
) -> None:
    images, given = images_of()[:20], list[int]()
    with closing(session.stream(endless(images, given))) as results:
        made = [next(results) for _ in range(taken)]
    assert sources() == 0
    assert len(given) <= taken + 65 + READ_AHEAD + 2
    wanted = batch_of(session, images)
    if taken:
        np.testing.assert_array_equal(joined(made), wanted[np.arange(taken) % 20])
    np.testing.assert_array_equal(joined(list(session.stream(images))), wanted)


def test_a_stream_that_is_left_is_closed(session: InferenceSession) -> None:
    images = images_of()[:20]
    for _ in session.stream(endless(images, [])):
        break
    assert batch_of(session, images).shape[0] == 20


def test_an_open_stream_has_the_device(session: InferenceSession) -> None:
    images = images_of()[:3]
    results = session.stream(endless(images, []))
    next(results)
    with pytest.raises(DeviceError, match="a stream is open on the device"):
        batch_of(session, images)
    with pytest.raises(DeviceError, match="a stream is open on the device"):
        next(session.stream(images))
    assert session.last_cycles is None
    other = list[np.ndarray]()
    thread = threading.Thread(target=lambda: other.append(batch_of(session, images)))
    thread.start()
    next(results)
    assert not other
    results.close()
    thread.join(TIMEOUT)
    np.testing.assert_array_equal(other[0], batch_of(session, images))


def test_a_session_closes_its_stream() -> None:
    with closing(device_of("link", TARGET)) as device:
        with InferenceSession(network(), device) as session:
            results = session.stream(endless(images_of(), []))
            next(results)
        assert list(results) == []
        with pytest.raises(DeviceError, match="is closed"):
            session.stream([])
        with InferenceSession(network(), device) as session:
            assert batch_of(session, images_of()[:2]).shape[0] == 2
    assert sources() == 0


def test_a_source_that_waits_does_not_keep_a_closed_stream(
    link_session: InferenceSession,
) -> None:
    release = threading.Event()

    def camera() -> Iterator[np.ndarray]:
        yield images_of()[0]
        release.wait(TIMEOUT)

    results = link_session.stream(camera())
    next(results)
    results.close()
    assert not release.is_set()
    assert batch_of(link_session, images_of()[:2]).shape[0] == 2
    release.set()


def streamed_program() -> Program:
    builder = NetworkBuilder(6, 24, 24, 8)
    for _ in range(2):
        builder.same_conv2d(3, 32)
    small = Configuration(rows=8, columns=8, activation_bytes=1 << 14, weight_bytes=1 << 12)
    program = compile_graph(builder.graph(), small)
    assert program.is_streamed
    return program


def remembering_program() -> Program:
    graph = load_tflite_bytes(networks.delay().main.to_bytes(["x"], ["y"]))
    program = compile_graph(graph, SMALL)
    assert program.variables
    return program


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [streamed_program, remembering_program])
def test_programs_without_a_pipeline_run_one_after_the_other(kind: str, make) -> None:
    program = make()
    shape = program.tensors[program.inputs[0]].shape
    images = np.random.default_rng(5).integers(-9, 9, (5, *shape[1:]), dtype=np.int8)
    with closing(device_of(kind, program.hardware)) as device:
        with InferenceSession(program, device) as session:
            wanted = batch_of(session, images)
            session.reset_state()
            source, made = Patient(images), []
            for result in session.stream(source):
                made.append(result)
                source.receive()
            assert not source.late
            session.reset_state()
            at_once = list(session.stream(images))
    np.testing.assert_array_equal(joined(made), wanted)
    np.testing.assert_array_equal(joined(at_once), wanted)


async def collect(results: AsyncIterator[list[np.ndarray]]) -> list[list[np.ndarray]]:
    return [result async for result in results]


async def given(images: np.ndarray) -> AsyncIterator[np.ndarray]:
    for image in images:
        yield image


@pytest.mark.parametrize("asynchronous", [False, True])
def test_astream_gives_the_same(session: InferenceSession, asynchronous: bool) -> None:
    images = images_of()[:100]
    made = asyncio.run(collect(session.astream(given(images) if asynchronous else images)))
    np.testing.assert_array_equal(joined(made), batch_of(session, images))
    assert sources() == 0


@pytest.mark.parametrize("asynchronous", [False, True])
def test_astream_gives_each_result_before_the_next_item(
    session: InferenceSession, asynchronous: bool
) -> None:
    images, source = images_of()[:5], Patient(images_of()[:5])

    async def run() -> list[list[np.ndarray]]:
        made = []
        async for result in session.astream(source.each() if asynchronous else source):
            made.append(result)
            source.receive()
        return made

    made = asyncio.run(run())
    assert not source.late
    np.testing.assert_array_equal(joined(made), batch_of(session, images))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_astream_passes_errors_on(session: InferenceSession, asynchronous: bool) -> None:
    images, made = images_of()[:3], []
    items = [images[0], images[1], "none"]

    async def each() -> AsyncIterator[object]:
        for item in items:
            yield item

    async def run() -> None:
        async for result in session.astream(each() if asynchronous else items):
            made.append(result)

    with pytest.raises(InputError, match="item 2 of the stream"):
        asyncio.run(run())
    np.testing.assert_array_equal(joined(made), batch_of(session, images[:2]))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_astream_closed_early_leaves_the_device_usable(
    session: InferenceSession, asynchronous: bool
) -> None:
    images = images_of()[:20]

    async def each() -> AsyncIterator[np.ndarray]:
        for image in endless(images, []):
            yield image

    async def run() -> None:
        source = each() if asynchronous else endless(images, [])
        async with aclosing(session.astream(source)) as results:
            async for _ in results:
                with pytest.raises(DeviceError, match="a stream is open"):
                    batch_of(session, images)
                break
        assert batch_of(session, images).shape[0] == 20

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))
    assert sources() == 0


def test_astream_lets_the_event_loop_run(link_session: InferenceSession) -> None:
    source = Patient(images_of()[:3])
    ticks = 0

    async def run() -> None:
        results = link_session.astream(source)
        await anext(results)
        waiting = asyncio.ensure_future(anext(results))
        nonlocal ticks
        for _ in range(20):
            await asyncio.sleep(0.001)
            ticks += 1
        assert not waiting.done()
        source.receive()
        await waiting
        await results.aclose()
        source.receive()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))
    assert ticks == 20


def test_a_session_closes_its_asynchronous_stream() -> None:
    async def run(device: Device) -> None:
        with InferenceSession(network(), device) as session:
            results = session.astream(endless(images_of(), []))
            await anext(results)
        await results.aclose()
        with InferenceSession(network(), device) as session:
            assert batch_of(session, images_of()[:2]).shape[0] == 2

    with closing(device_of("link", TARGET)) as device:
        asyncio.run(asyncio.wait_for(run(device), TIMEOUT))
    assert sources() == 0
