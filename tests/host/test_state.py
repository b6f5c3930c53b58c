"""Networks that keep something from run to run: variables of TFLite files, held against tflm."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
import stateful_networks as networks
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.devices.model import BatchCore, ModelDevice
from slipstick.errors import DeviceError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph
from slipstick.program_file import decode, encode
from slipstick.reference import TflmReference
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
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
    x = RNG.integers(-128, 128, (8, *networks.INPUT[1:]), dtype=np.int8)
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


@pytest.mark.parametrize("kind", [ModelDevice, BatchCore])
def test_failed_run_leaves_the_state_as_it_was(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run in frames; several at once, of which the third fails."""
    data = networks.wake_word(RNG)
    x = RNG.integers(-128, 128, (8, *networks.INPUT[1:]), dtype=np.int8)
    (wanted,) = TflmReference(data).run(x)
    left = 0 if kind is ModelDevice else 2
    ordinary = kind.run

    def failing(self: Any, matrix_pc: int, post_pc: int, clear: bool) -> None:
        nonlocal left
        if not left:
            raise DeviceError("the cable is out")
        left -= 1
        ordinary(self, matrix_pc, post_pc, clear)

    with session(load_tflite_bytes(data)) as own:
        begun = own.run(None, {"frames": x[:3]})
        with monkeypatch.context() as patched:
            patched.setattr(kind, "run", failing)
            with pytest.raises(DeviceError, match="the cable is out"):
                own.run(None, {"frames": x[3] if kind is ModelDevice else x[3:]})
        ended = own.run(None, {"frames": x[3:]})
    np.testing.assert_array_equal(np.concatenate([*begun, *ended]), wanted)


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
