"""Boards that divide a network: results in order, errors with stage and board, nothing hangs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler.stages.pipeline import compile_stages
from slipstick.compiler.stages.split import plan_split
from slipstick.compiler.stages.staged_program import StagedProgram
from slipstick.devices import Device
from slipstick.devices.group import DeviceGroup, GroupKind
from slipstick.devices.link import LinkDevice
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.devices.model import ModelDevice
from slipstick.errors import DeviceError, InputError, ProgramError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.kernels.dispatch import run_graph
from slipstick.passes import optimize
from slipstick.program import Program
from slipstick.runtime.arrivals import Arrivals, Ready
from slipstick.runtime.executions import pool_of_one, staged_execution
from slipstick.runtime.executor import Execution
from slipstick.runtime.sharing import exclusive
from slipstick.runtime.stages.board_time import BoardTime
from slipstick.runtime.stages.loading import divided_execution, is_divided, open_divided
from slipstick.runtime.stages.pipeline_execution import PipelineExecution
from slipstick.runtime.stages.split_execution import SplitExecution
from slipstick.runtime.stages.stage_files import read_stages, write_stages
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

TARGET = find_target("sim-small").configuration
OTHER = find_target("ulx3s-12f").configuration
STREAMING = Configuration.from_dict({**TARGET.to_dict(), "weight_bytes": 1024})
NAMES = ["first", "second", "third"]
TIMEOUT = 20.0

Divided = PipelineExecution | SplitExecution


class FragileTransport(LoopbackTransport):
    """Fails when it is told to."""

    breaks_after: int | None = None

    def send(self, data: bytes) -> None:
        if self.breaks_after is not None:
            self.breaks_after -= 1
            if self.breaks_after < 0:
                raise DeviceError("the cable is out")
        super().send(data)


class Fragile(LinkDevice):
    """A board whose cable may be pulled after some frames."""

    def __init__(self, configuration: Configuration) -> None:
        self.cable = FragileTransport(Endpoint(configuration, GoldenCore(configuration)))
        super().__init__(self.cable, configuration=configuration)


def link_device(configuration: Configuration) -> Device:
    endpoint = Endpoint(configuration, GoldenCore(configuration))
    return LinkDevice(LoopbackTransport(endpoint), configuration=configuration)


@cache
def network() -> NetworkBuilder:
    """A shortcut crosses both cuts of a pipeline of three."""
    builder = NetworkBuilder(3, 6, 5, 3)
    first = builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.add(first)
    builder.fully_connected(10)
    builder.softmax()
    return builder


@cache
def pipeline_program(boards: tuple[Configuration, ...] = (TARGET, OTHER, TARGET)) -> StagedProgram:
    return compile_stages(optimize(network().graph()), [1, 2], boards, effort=0)


@cache
def split_program() -> StagedProgram:
    boards = [BoardTime(name, TARGET) for name in NAMES]
    return plan_split(network().graph(), boards, options={"effort": 0}).program


@cache
def images() -> np.ndarray:
    return np.random.default_rng(7).integers(-128, 128, (40, 6, 5, 3), dtype=np.int8)


@cache
def expected() -> np.ndarray:
    graph = network().graph()
    return run_graph(graph, [images()])[graph.outputs[0]]


def execution_of(
    program: StagedProgram, device_of: Callable[[Configuration], Device]
) -> tuple[Divided, list[Device]]:
    devices = [device_of(stage.hardware) for stage in program.stages]
    group = DeviceGroup(GroupKind(program.division), NAMES, devices)
    return divided_execution(program, group, Execution), devices


def outputs_of(execution: Divided, count: int = 40) -> np.ndarray:
    (name,) = execution.program.outputs
    return execution.infer_batch({"input": images()[:count]}, (name,))[name]


def samples(count: int = 40) -> Iterator[dict[str, np.ndarray]]:
    for at in range(count):
        yield {"input": images()[at : at + 1]}


@pytest.fixture(params=["pipeline", "split"])
def program(request: pytest.FixtureRequest) -> StagedProgram:
    return pipeline_program() if request.param == "pipeline" else split_program()


@pytest.mark.parametrize("device_of", [ModelDevice, link_device])
def test_results_are_those_of_one_board_in_order(
    program: StagedProgram, device_of: Callable[[Configuration], Device]
) -> None:
    execution, devices = execution_of(program, device_of)
    done = list[int]()
    (name,) = program.outputs
    made = execution.infer_batch({"input": images()}, None, done.append)
    np.testing.assert_array_equal(made[name], expected())
    assert done == [1] * 40
    with closing(execution.infer_stream(Ready(samples()))) as stream:
        streamed = np.concatenate([values[name] for values in stream])
    np.testing.assert_array_equal(streamed, expected())
    assert (execution.last_cycles is None) is isinstance(devices[0], ModelDevice)


def test_a_stage_that_streams_shares_what_it_loads() -> None:
    program = pipeline_program((STREAMING, TARGET, STREAMING))
    assert [stage.is_streamed for stage in program.stages] == [False, False, True]
    execution, _ = execution_of(program, link_device)
    np.testing.assert_array_equal(outputs_of(execution), expected())


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("after", [0, 2])
def test_an_error_names_stage_and_board_and_the_next_call_works(
    program: StagedProgram, number: int, after: int
) -> None:
    execution, devices = execution_of(program, Fragile)
    broken = devices[number]
    assert isinstance(broken, Fragile)
    broken.cable.breaks_after = after
    wanted = rf"^stage {number + 1} of 3 on {NAMES[number]}: .*the cable is out"
    with pytest.raises(DeviceError, match=wanted):
        outputs_of(execution)
    broken.cable.breaks_after = None
    np.testing.assert_array_equal(outputs_of(execution), expected())


def test_results_before_an_error_come_first() -> None:
    execution, devices = execution_of(pipeline_program(), Fragile)
    broken = devices[1]
    assert isinstance(broken, Fragile)
    (name,) = execution.program.outputs
    source = Arrivals[dict[str, np.ndarray]]()
    made = []
    with pytest.raises(DeviceError, match="stage 2 of 3 on second"):
        with closing(execution.infer_stream(source)) as stream:
            source.put(next(samples()))
            made.append(next(stream)[name])
            broken.cable.breaks_after = 0
            source.put(next(samples()))
            made.append(next(stream)[name])
    np.testing.assert_array_equal(np.concatenate(made), expected()[:1])


def test_an_error_of_the_source_is_told_as_it_is(program: StagedProgram) -> None:
    def failing() -> Iterator[dict[str, np.ndarray]]:
        yield from samples(3)
        raise InputError("item 3 is none")

    execution, _ = execution_of(program, ModelDevice)
    made = []
    with pytest.raises(InputError, match="^item 3 is none$"):
        for values in execution.infer_stream(Ready(failing())):
            made.append(values)
    assert len(made) == 3
    np.testing.assert_array_equal(outputs_of(execution, 4), expected()[:4])


def test_a_result_does_not_wait_for_the_next_image(program: StagedProgram) -> None:
    execution, _ = execution_of(program, link_device)
    source = Arrivals[dict[str, np.ndarray]]()
    (name,) = program.outputs
    with closing(execution.infer_stream(source)) as stream:
        for at, sample in enumerate(samples(4)):
            source.put(sample)
            np.testing.assert_array_equal(next(stream)[name], expected()[at : at + 1])
        source.end()
        assert list(stream) == []


def test_a_stream_that_is_left_early_ends_though_its_source_waits(program: StagedProgram) -> None:
    execution, devices = execution_of(program, link_device)
    source = Arrivals[dict[str, np.ndarray]]()
    stream = execution.infer_stream(source)
    if isinstance(execution, SplitExecution):
        source.put(next(samples()))
        next(stream)
    else:
        for sample in samples(3):
            source.put(sample)
        next(stream)
    begun = time.monotonic()
    stream.close()
    assert time.monotonic() - begun < TIMEOUT
    for device in devices:
        with exclusive(device):
            pass
    np.testing.assert_array_equal(outputs_of(execution, 5), expected()[:5])
    source.stop()


def test_threads_wait_for_each_other(program: StagedProgram) -> None:
    execution, _ = execution_of(program, link_device)
    made: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda at=at: made.update({at: outputs_of(execution, 8)}))
        for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert sorted(made) == [0, 1, 2, 3]
    for values in made.values():
        np.testing.assert_array_equal(values, expected()[:8])


def test_two_groups_of_the_same_devices_do_not_block_each_other() -> None:
    same = pipeline_program((TARGET,) * 3)
    devices = [link_device(TARGET) for _ in NAMES]
    groups = [DeviceGroup(GroupKind.PIPELINE, NAMES, order) for order in (devices, devices[::-1])]
    executions = [PipelineExecution(same, group, Execution) for group in groups]
    made: list[np.ndarray] = []

    def work(execution: PipelineExecution) -> None:
        made.extend(outputs_of(execution, 6) for _ in range(5))

    threads = [threading.Thread(target=work, args=(each,)) for each in executions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * TIMEOUT)
    assert len(made) == 10
    for values in made:
        np.testing.assert_array_equal(values, expected()[:6])


def test_a_stream_on_the_group_keeps_its_thread_from_waiting_for_itself() -> None:
    execution, _ = execution_of(pipeline_program(), ModelDevice)
    with closing(execution.infer_stream(Ready(samples(3)))) as stream:
        next(stream)
        with pytest.raises(DeviceError, match="a stream is open on the device"):
            outputs_of(execution, 1)


def test_members_must_be_the_boards_of_the_program(program: StagedProgram) -> None:
    devices = [ModelDevice(stage.hardware) for stage in program.stages]
    kind = GroupKind(program.division)
    with pytest.raises(ProgramError, match="divided among 3 boards, not 2"):
        divided_execution(program, DeviceGroup(kind, NAMES[:2], devices[:2]), Execution)
    wrong = [ModelDevice(OTHER) for _ in NAMES]
    with pytest.raises(ProgramError, match="stage 1 of 3: program .* was compiled for hardware"):
        divided_execution(program, DeviceGroup(kind, NAMES, wrong), Execution)
    twice = [devices[0], devices[1], devices[0]]
    with pytest.raises(DeviceError, match="must be of different devices, one per stage"):
        divided_execution(program, DeviceGroup(kind, NAMES, twice), Execution)


def test_an_open_device_that_failed_is_opened_again() -> None:
    made: list[Fragile] = []

    def open_member(number: int) -> Device:
        made.append(Fragile((TARGET, OTHER, TARGET)[number]))
        return made[-1]

    group = DeviceGroup(
        GroupKind.PIPELINE, NAMES, [open_member(number) for number in range(3)], open_member
    )
    execution = PipelineExecution(pipeline_program(), group, Execution)
    made[1].cable.breaks_after = 0
    with pytest.raises(DeviceError, match="stage 2 of 3 on second"):
        outputs_of(execution)
    np.testing.assert_array_equal(outputs_of(execution), expected())
    assert len(made) == 4 and group.members[1] is made[3]


@pytest.mark.parametrize("kind", ["pipeline", "split"])
def test_a_network_is_divided_for_the_devices_that_are_named(kind: str) -> None:
    name = f"{kind}:model:sim-small,model:sim-medium"
    assert is_divided(name) and not is_divided("pool:model,model") and not is_divided("model")
    program, group = open_divided(MODEL, name)
    x, y = load_digits()[2:]
    with closing(group):
        execution = divided_execution(program, group, Execution)
        (output,) = program.outputs
        made = execution.infer_batch({program.inputs[0]: x[:20]})[output]
    assert (made.argmax(axis=1) == y[:20]).mean() > 0.9


def test_emulated_boards_are_stages_but_no_parts() -> None:
    names = "emulated:sim-small@rgmii,emulated:sim-small@rgmii"
    program, group = open_divided(MODEL, f"pipeline:{names}")
    x = load_digits()[2][:20]
    (source,), (output,) = program.inputs, program.outputs
    with closing(group):
        emulated = staged_execution(program, group).infer_batch({source: x})[output]
    devices = [ModelDevice(stage.hardware) for stage in program.stages]
    models = DeviceGroup(GroupKind.PIPELINE, NAMES[:2], devices)
    made = staged_execution(program, models).infer_batch({source: x})[output]
    np.testing.assert_array_equal(emulated, made)
    program, group = open_divided(MODEL, f"split:{names}")
    with closing(group), pytest.raises(DeviceError, match="stage 1 of 2 .*no parts of layers"):
        staged_execution(program, group)


def test_a_pool_of_one_runs_a_divided_network_and_goes_on_after_an_error() -> None:
    execution, devices = execution_of(pipeline_program(), Fragile)
    broken = devices[1]
    assert isinstance(broken, Fragile)
    group = DeviceGroup(GroupKind.PIPELINE, NAMES, devices)
    pool = pool_of_one(execution.program, group, "pipeline", execution)
    try:
        broken.cable.breaks_after = 1
        future = pool.submit(next(samples()))
        time.sleep(0.2)
        broken.cable.breaks_after = None
        (name,) = execution.program.outputs
        np.testing.assert_array_equal(future.result(TIMEOUT)[name], expected()[:1])
    finally:
        pool.close()


def test_a_program_of_one_board_is_refused() -> None:
    with pytest.raises(ProgramError, match="is a program for one board"):
        open_divided(pipeline_program().stages[0], "pipeline:model,model")
    with pytest.raises(ProgramError, match="divided among 3 boards, not 2"):
        open_divided(pipeline_program(), "pipeline:model,model")
    with pytest.raises(ProgramError, match="is for device pipeline:..., not split:..."):
        open_divided(pipeline_program(), "split:model,model,model")


def test_stages_are_written_and_read(tmp_path: Path) -> None:
    program = pipeline_program()
    paths = write_stages(tmp_path / "net.slip", program)
    assert [path.name for path in paths] == [
        "net-1.slip", "net-2.slip", "net-3.slip", "net.stages",
    ]  # fmt: skip
    read, group = open_divided(paths[-1], "pipeline:model,model,model")
    assert [member.configuration for member in group.members] == [TARGET, OTHER, TARGET]
    with closing(group):
        execution = divided_execution(read, group, Execution)
        np.testing.assert_array_equal(outputs_of(execution), expected())
    assert isinstance(read.stages[0], Program) and read.outputs == program.outputs
    with pytest.raises(ProgramError, match="only a pipeline's stages"):
        write_stages(tmp_path / "net.slip", split_program())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "version must be 1, not 2"),
        ('"net-2.slip"', '"../net-2.slip"', "must be files beside it"),
        ('"net-2.slip"', '"net-3.slip"', "nothing makes"),
        ('"net-2.slip"', '"gone.slip"', "gone.slip"),
        ('"inputs"', '"in"', "must be a .stages file as slipstick compile --pipeline writes it"),
        ("{", "", "must be a .stages file"),
    ],
)
def test_damaged_stages_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_stages(tmp_path / "net.slip", pipeline_program())[-1]
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ProgramError, match=message):
        read_stages(path)
