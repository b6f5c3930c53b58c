"""Inputs that are written over as soon as a program releases them: no result changes."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph, whole
from slipstick.devices import open_device
from slipstick.devices.link import LinkDevice
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.devices.model import BatchCore
from slipstick.errors import ProgramError
from slipstick.graph import Graph
from slipstick.program import Program
from slipstick.program.release import Release
from slipstick.program.slip_file import decode, encode
from slipstick.program.steps import DownloadStep, HostStep, RunStep, UploadStep
from slipstick.runtime.device_memory import BatchMemory
from slipstick.runtime.feeds import random_feeds
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import REQUEST_START, Command
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint
from stepwise_inference import Inference

TARGETS = ("sim-small", "ulx3s-25f")
ORDERS: tuple[Any, ...] = ("matrix_first", "post_first", 1, 2)


class OverwrittenCore(GoldenCore):
    """A core whose inputs are written over in the midst of a run, as soon as they are released."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.releases: list[tuple[Sequence[int], list[tuple[int, int]]]] = []
        self.order: Any = "matrix_first"
        self.early = 0
        """Bytes that were written over while instructions were left."""

    def run(self, pcs: Sequence[int], clear: bool, order: Any = None) -> None:
        self._left = list(self.releases)
        super().run(pcs, clear, self.order)

    def _next(self, stream: Any) -> Any:
        done = list(self._done.values())
        for release in list(self._left):
            counts, rows = release
            if all(map(int.__ge__, done, counts)):
                self._left.remove(release)
                for address, size in rows:
                    self.early += size
                    self.activations[:, address : address + size] ^= 0x55
        return super()._next(stream)


def _released(program: Program, releases: Sequence[Release]) -> list[Any]:
    """Counts, and the stretches of memory that they release."""
    made = []
    for release in releases:
        place = program.tensors[release.tensor].placement
        assert place is not None
        rows = [
            (place.address + y * place.row_pitch, place.width * place.pixel_pitch)
            for y in range(*release.rows)
        ]
        made.append((release.completed, rows))
    return made


def _outputs(program: Program, order: Any, releases: Sequence[Release]) -> tuple[list[Any], int]:
    core = OverwrittenCore(program.hardware)
    memory = BatchMemory(BatchCore(core))
    for image in program.images:
        memory.load(image)
    core.order, core.releases = order, _released(program, releases)
    inference = Inference(program, memory, 3)
    for kind in (HostStep, UploadStep, RunStep, DownloadStep):
        inference.do(kind)
    return inference.outputs(), core.early


def _networks() -> Iterator[Graph]:
    """Networks of several layers, so that something is left to do when the input has been read."""
    for seed in range(6):
        builder = NetworkBuilder(seed, 9 + seed, 7 + seed, 3 + seed % 2)
        first = builder.same_conv2d(3, 8)
        if seed % 2:
            builder.depthwise((3, 3), 1)
            builder.same_conv2d(1, 16)
        else:
            builder.same_conv2d(3, 8)
            builder.add(first)
        builder.pool("max_pool2d", (2, 2))
        if seed % 3 == 0:
            builder.same_conv2d(3, 8)
        builder.fully_connected(10)
        yield builder.graph()


def programs(target: str, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Networks with one place each, which they release."""
    monkeypatch.setattr(whole, "_doubled", lambda *arguments: None)
    configuration, found = find_target(target).configuration, []
    for graph in _networks():
        program = compile_graph(graph, configuration, effort=1000)
        assert program.alternate is None
        if program.releases:
            found.append(program)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_released_is_not_needed(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = programs(target, monkeypatch)
    assert len(found) > 3
    early = too_early = 0
    for program in found:
        wanted, _ = _outputs(program, "matrix_first", ())
        for order in ORDERS:
            made, count = _outputs(program, order, program.releases)
            early += count
            for one, other in zip(made, wanted, strict=True):
                np.testing.assert_array_equal(one, other)
        # the same test sees what is released before anything has been read
        at_once = [dataclasses.replace(each, completed=(0, 0)) for each in program.releases]
        broken, _ = _outputs(program, "matrix_first", at_once)
        too_early += any(
            not np.array_equal(one, other) for one, other in zip(broken, wanted, strict=True)
        )
    assert early and too_early


def test_a_batch_holds_back_what_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = bytearray()

    class Recorded(LoopbackTransport):
        def send(self, data: bytes) -> None:
            sent.extend(data)
            super().send(data)

    program = programs("sim-small", monkeypatch)[0]
    configuration = program.hardware
    endpoint = Endpoint(configuration, GoldenCore(configuration))
    device = LinkDevice(Recorded(endpoint), configuration=configuration)
    feeds = {
        name: np.concatenate([random_feeds(program, seed)[name] for seed in range(5)])
        for name in program.inputs
    }
    with InferenceSession(program, device) as session:
        batch = session.run_batch(None, feeds)
        sent.clear()
        again = session.run_batch(None, feeds)
        commands = _commands(bytes(sent))
        singles = [
            session.run(None, {name: codes[k : k + 1] for name, codes in feeds.items()})
            for k in range(5)
        ]
    for one, other in zip(batch, again, strict=True):
        np.testing.assert_array_equal(one, other)
    for k, single in enumerate(singles):
        for one, other in zip(single, batch, strict=True):
            np.testing.assert_array_equal(one[0], other[k])
    assert commands.count(Command.RUN) == commands.count(Command.GET) == 5
    held = sum(any(release.completed) for release in program.releases)
    assert commands.count(Command.HOLD) == 4 * held
    first_get = commands.index(Command.GET)
    assert Command.PUT in commands[commands.index(Command.HOLD) : first_get]


def _commands(sent: bytes) -> list[Command]:
    """The commands of whole frames, one behind the other."""
    commands, at = [], 0
    while at < len(sent):
        assert sent[at] == REQUEST_START
        commands.append(Command(sent[at + 1] & 0x3F))
        at += 9 + int.from_bytes(sent[at + 3 : at + 5], "little")
    return commands


def test_releases_are_kept_in_a_file_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    program = programs("sim-small", monkeypatch)[0]
    assert decode(encode(program)).releases == program.releases
    first = program.releases[0]
    runs = [step for step in program.steps if isinstance(step, RunStep)]
    for releases, rule in (
        (program.releases[1:] or (dataclasses.replace(first, rows=(1, 2)),), "all rows"),
        ((*program.releases, first), "all rows"),
        ((dataclasses.replace(first, tensor="other"), *program.releases[1:]), "all rows"),
        (
            (
                dataclasses.replace(first, completed=(runs[0].instructions[0] + 1, 0)),
                *program.releases[1:],
            ),
            "matrix instructions",
        ),
    ):
        with pytest.raises(ProgramError, match=rule):
            dataclasses.replace(program, releases=releases)
    with pytest.raises(ProgramError, match="completed must be 2"):
        Release(tensor="a", rows=(0, 1), completed=(1,), cycle=0)
    with pytest.raises(ProgramError, match="rows must be some"):
        Release(tensor="a", rows=(1, 1), completed=(1, 1), cycle=0)


def test_the_gateware_writes_the_next_input_in_the_midst_of_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = programs("sim-small", monkeypatch)[-1]
    feeds = {
        name: np.concatenate([random_feeds(program, seed)[name] for seed in range(8)])
        for name in program.inputs
    }
    batches = []
    for kind in ("model", "sim"):
        device = open_device(kind, program.hardware)
        with closing(device), InferenceSession(program, device) as session:
            batches.append(session.run_batch(None, feeds))
    for golden, found in zip(*batches, strict=True):
        np.testing.assert_array_equal(golden, found)
