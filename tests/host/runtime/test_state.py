"""Networks that keep something from run to run: variables of TFLite files, held against tflm."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
import stateful_networks as networks
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.devices.link import LinkDevice, LostAnswerError
from slipstick.devices.model import BatchCore, ModelDevice
from slipstick.errors import DeviceError, StateLostError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph
from slipstick.program.slip_file import decode, encode
from slipstick.program.steps import DownloadStep, UploadStep
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick.verify.tflm_reference import TflmReference
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Region
from tflm_networks import SMALL

RNG = np.random.default_rng(71)
RUNS = 100


def delayed() -> Graph:
    return load_tflite_bytes(networks.delay().main.to_bytes(["x"], ["y"]))


def session(graph: Graph, configuration: Configuration = SMALL) -> InferenceSession:
    return InferenceSession(
        compile_graph(graph, configuration), open_device("model", configuration)
    )


def steps(values: list[int]) -> np.ndarray:
    return np.array([[value] * 4 for value in values], np.int8)


@pytest.mark.parametrize("target", ["sim-small", "sim-medium", "icebreaker"])
def test_wake_word_network_is_tflms_over_100_runs(target: str) -> None:
    data = networks.wake_word(RNG)
    x = RNG.integers(-128, 128, (RUNS, *networks.INPUT[1:]), dtype=np.int8)
    wanted = TflmReference(data).run_layers(x)
    graph = load_tflite_bytes(data)
    values = kernels.run_graph(graph, [x])
    for name, expected in wanted.items():
        np.testing.assert_array_equal(values[name], expected, name)
    assert len(np.unique(wanted["output"])) > 10
    with session(graph, find_target(target).configuration) as own:
        one_by_one = [own.run(None, {"frames": frames})[0] for frames in x]
        own.reset_state()
        (together,) = own.run(None, {"frames": x})
    np.testing.assert_array_equal(np.concatenate(one_by_one), wanted["output"])
    np.testing.assert_array_equal(together, wanted["output"])


def test_state_shows_in_the_reference_and_is_reset() -> None:
    data = networks.wake_word(RNG)
    x = RNG.integers(-128, 128, (12, *networks.INPUT[1:]), dtype=np.int8)
    reference = TflmReference(data)
    first, second = (reference.run(x)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    reference.reset_state()
    np.testing.assert_array_equal(reference.run(x)[0], first)


def test_wake_word_network_on_the_rtl() -> None:
    data = networks.wake_word(RNG)
    x = RNG.integers(-128, 128, (RUNS, *networks.INPUT[1:]), dtype=np.int8)
    configuration = find_target("sim-small").configuration
    program = compile_graph(load_tflite_bytes(data), configuration)
    with closing(open_device("sim", configuration)) as device:
        with InferenceSession(program, device) as own:
            actual = [own.run(None, {"frames": frames})[0] for frames in x]
    np.testing.assert_array_equal(np.concatenate(actual), TflmReference(data).run(x)[0])


def test_two_sessions_on_one_device_keep_their_own() -> None:
    program = compile_graph(delayed(), SMALL)
    with closing(open_device("model", SMALL)) as device:
        with InferenceSession(program, device) as one, InferenceSession(program, device) as two:
            assert one.run(None, {"x": steps([3])})[0].tolist() == [[0, 1, 2, 3]]
            assert one.run(None, {"x": steps([13])})[0].tolist() == [[13] * 4]
            assert two.run(None, {"x": steps([3])})[0].tolist() == [[0, 1, 2, 3]]
            assert one.run(None, {"x": steps([3])})[0].tolist() == [[13] * 4]


def test_what_is_kept_is_not_the_callers_array() -> None:
    with session(delayed()) as own:
        x = steps([13])
        own.run(None, {"x": x})
        x[:] = 99
        assert own.run(None, {"x": steps([3])})[0].tolist() == [[13] * 4]


class _Cable:
    """A device's ``submit_run`` or a core's ``run`` that fails after some."""

    def __init__(self, ordinary: Any, left: int) -> None:
        self._ordinary, self.left = ordinary, left

    def __call__(self, *arguments: Any, **options: Any) -> None:
        if not self.left:
            raise DeviceError("the cable is out")
        self.left -= 1
        self._ordinary(*arguments, **options)


def wake_word() -> tuple[Graph, np.ndarray, np.ndarray]:
    """The network, frames for 8 runs, and what tflm makes of them."""
    data = networks.wake_word(RNG)
    x = RNG.integers(-128, 128, (8, *networks.INPUT[1:]), dtype=np.int8)
    return load_tflite_bytes(data), x, TflmReference(data).run(x)[0]


def test_run_that_fails_over_what_the_device_keeps_loses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, x, wanted = wake_word()
    with session(graph) as own:
        own.run(None, {"frames": x[:3]})
        with monkeypatch.context() as patched:
            patched.setattr(own.device, "submit_run", _Cable(None, 0))
            with pytest.raises(StateLostError, match=r"the cable is out; what model keeps on the"):
                own.run(None, {"frames": x[3]})
        for batch in (x[3], x[3:]):
            with pytest.raises(StateLostError, match=r"lost with a run that failed: reset_state"):
                own.run(None, {"frames": batch})
        own.reset_state()
        np.testing.assert_array_equal(own.run(None, {"frames": x})[0], wanted)


def test_interrupted_run_loses_what_the_device_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    graph, x, _ = wake_word()
    with session(graph) as own:
        with monkeypatch.context() as patched:
            patched.setattr(own.device, "submit_run", interrupted)
            with pytest.raises(KeyboardInterrupt):
                own.run(None, {"frames": x[0]})
        with pytest.raises(StateLostError, match="reset_state"):
            own.run(None, {"frames": x[0]})


def test_run_that_fails_before_it_begins_leaves_the_state_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise DeviceError("the cable is out")

    graph, x, wanted = wake_word()
    with session(graph) as own:
        for at, frames in enumerate(x):
            with monkeypatch.context() as patched:
                patched.setattr(own.device, "submit_put", failing)
                with pytest.raises(DeviceError, match="^the cable is out$"):
                    own.run(None, {"frames": frames})
            np.testing.assert_array_equal(own.run(None, {"frames": frames})[0][0], wanted[at])


def test_network_that_does_not_fit_at_once_keeps_its_state_on_the_host() -> None:
    graph, x, wanted = wake_word()
    small = Configuration(rows=8, columns=8, lanes=4, weight_bytes=2048)
    program = compile_graph(graph, small)
    assert program.is_streamed and not program.resident
    with InferenceSession(program, open_device("model", small)) as own:
        singles = [own.run(None, {"frames": frames})[0] for frames in x]
        np.testing.assert_array_equal(np.concatenate(singles), wanted)
        own.reset_state()
        np.testing.assert_array_equal(own.run(None, {"frames": x})[0], wanted)


def test_run_that_may_have_run_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x, _ = wake_word()
    asked = []

    def unanswered(*_: Any, **__: Any) -> None:
        asked.append(1)
        raise LostAnswerError("NO_ANSWER", "nothing came")

    with session(graph) as own:
        monkeypatch.setattr(own.device, "submit_run", unanswered)
        with pytest.raises(StateLostError):
            own.run(None, {"frames": x[0]})
    assert len(asked) == 1


def test_failed_batch_leaves_the_state_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the model several runs at once, of which the third fails."""
    graph, x, wanted = wake_word()
    with session(graph) as own:
        begun = own.run(None, {"frames": x[:3]})
        with monkeypatch.context() as patched:
            cable = _Cable(None, 2)
            ordinary = BatchCore.run

            def failing(self: BatchCore, *arguments: Any) -> None:
                cable._ordinary = lambda *own: ordinary(self, *own)
                cable(*arguments)

            patched.setattr(BatchCore, "run", failing)
            with pytest.raises(DeviceError, match="^the cable is out$"):
                own.run(None, {"frames": x[3:]})
        ended = own.run(None, {"frames": x[3:]})
    np.testing.assert_array_equal(np.concatenate([*begun, *ended]), wanted)


def test_failed_batch_on_the_rtl_leaves_the_state_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There a batch is one run after the other, in frames."""
    graph, x, wanted = wake_word()
    configuration = find_target("sim-small").configuration
    program = compile_graph(graph, configuration)
    with closing(open_device("sim", configuration)) as device:
        with InferenceSession(program, device) as own:
            begun = own.run(None, {"frames": x[:3]})
            with monkeypatch.context() as patched:
                assert isinstance(device, LinkDevice)
                patched.setattr(device, "submit_run", _Cable(device.submit_run, 2))
                with pytest.raises(DeviceError, match="^the cable is out$"):
                    own.run(None, {"frames": x[3:]})
            ended = own.run(None, {"frames": x[3:]})
    np.testing.assert_array_equal(np.concatenate([*begun, *ended]), wanted)


def test_state_stays_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x, _ = wake_word()
    program = compile_graph(graph, SMALL)
    assert set(program.resident) == {"mixed_old", "block0_old", "block1_old", "tail_old"}
    moved = {step.tensor for step in program.steps if isinstance(step, UploadStep | DownloadStep)}
    assert not moved & {name for each in program.variables for name in (each.source, each.result)}
    device = open_device("model", SMALL)
    assert isinstance(device, LinkDevice)
    written: list[int] = []
    ordinary = device.submit_put

    def counted(region: Region, data: bytes, **options: Any) -> None:
        written.append(len(data))
        ordinary(region, data, **options)

    with InferenceSession(program, device) as own:
        monkeypatch.setattr(device, "submit_put", counted)
        for expected in (program.resident_bytes, 0, 0):
            written.clear()
            own.run(None, {"frames": x[0]})
            assert sum(written) == program.transferred().uploaded + expected


def test_sessions_of_other_programs_on_one_device_find_their_own_again() -> None:
    graph, x, wanted = wake_word()
    programs = [compile_graph(each, SMALL) for each in (graph, delayed())]
    line = steps([5, -7, 9, 11, 0, 1, 2, 3])
    lines = kernels.run_graph(delayed(), [line])["y"]
    with closing(open_device("model", SMALL)) as device:
        one, other, third = (
            InferenceSession(program, device) for program in (*programs, programs[0])
        )
        for at, frames in enumerate(x):
            for own in (one, third)[: 2 if at < 4 else 1]:
                (made,) = own.run(None, {"frames": frames})
                np.testing.assert_array_equal(made[0], wanted[at])
            (made,) = other.run(None, {"x": line[at]})
            np.testing.assert_array_equal(made[0], lines[at])
        np.testing.assert_array_equal(third.run(None, {"frames": x[4:]})[0], wanted[4:])


def test_single_runs_and_batches_follow_each_other() -> None:
    graph, x, wanted = wake_word()
    with session(graph) as own:
        parts = [own.run(None, {"frames": x[a:b]})[0] for a, b in ((0, 1), (1, 4), (4, 5), (5, 8))]
    np.testing.assert_array_equal(np.concatenate(parts), wanted)


@pytest.mark.parametrize("number", range(24))
def test_random_streaming_network_is_tflms(number: int) -> None:
    """Every legal order of the two instruction streams gives the same, run after run."""
    rng = np.random.default_rng([71, number])
    data, shape = networks.random_streaming(rng)
    x = rng.integers(-128, 128, (10, *shape), dtype=np.int8)
    (wanted,) = TflmReference(data).run(x)
    program = compile_graph(load_tflite_bytes(data), SMALL)
    device = ModelDevice(SMALL, check_hazards=True)
    with closing(device), InferenceSession(program, device) as own:
        actual = [own.run(None, {"x": each})[0] for each in x]
    np.testing.assert_array_equal(np.concatenate(actual), wanted)


def test_interrupted_batch_leaves_the_state_as_it_was() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with session(delayed()) as own:
        with pytest.raises(KeyboardInterrupt):
            own.run_batch(None, {"x": steps([13, 23])}, interrupt)
        assert own.run(None, {"x": steps([3])})[0].tolist() == [[0, 1, 2, 3]]


def test_closed_session_is_not_reset() -> None:
    own = session(delayed())
    own.close()
    with pytest.raises(DeviceError, match="the session of model is closed"):
        own.reset_state()


def test_programs_keep_their_variables_in_files() -> None:
    program = compile_graph(delayed(), SMALL)
    again = decode(encode(program))
    (variable,) = again.variables
    assert (variable.name, variable.source, variable.result) == ("line", "old", "x")
    assert variable.initial.tolist() == [[0, 1, 2, 3]]
    with InferenceSession(again, open_device("model", SMALL)) as own:
        assert own.run(None, {"x": steps([3, 13])})[0].tolist() == [[0, 1, 2, 3], [13] * 4]
