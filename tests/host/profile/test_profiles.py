"""Event logs become layers: every instruction finds its layer, and no cycle is lost."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest
import slipstick
from slipstick.devices.model import ModelDevice
from slipstick.errors import DeviceError
from slipstick.examples.digits import MODEL
from slipstick.loading import compile_file
from slipstick.profile.profiles import STREAMS, RunEvents, profile
from slipstick.profile.recorder import Recorder
from slipstick.program import Program
from slipstick.program.steps import RunStep
from slipstick.runtime.executor import Execution
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DeviceStatus

INSTRUCTION_CYCLES = 10


def log(counts: Sequence[int], start: int = 5) -> dict[str, np.ndarray]:
    """Instructions of each stream, one after the other."""
    events = {}
    for stream, count in zip(STREAMS, counts, strict=True):
        begins = start + INSTRUCTION_CYCLES * np.arange(count)
        events[f"{stream}_start"] = begins
        events[f"{stream}_done"] = begins + INSTRUCTION_CYCLES
    return events


def counts(program: Program) -> tuple[int, ...]:
    (run,) = runs_of(program)
    return run.instructions


def runs_of(program: Program) -> list[RunStep]:
    return [step for step in program.steps if isinstance(step, RunStep)]


def run_events(events: dict[str, np.ndarray], cycles: int) -> RunEvents:
    return RunEvents(
        cycles,
        {stream: events[f"{stream}_start"] for stream in STREAMS},
        {stream: events[f"{stream}_done"] for stream in STREAMS},
    )


@pytest.fixture(scope="module")
def program() -> Program:
    return slipstick.compile(MODEL, target="sim-small")


def test_cycles_sum_up_and_every_instruction_has_its_layer(program: Program) -> None:
    matrix, post = counts(program)
    cycles = 5 + INSTRUCTION_CYCLES * max(matrix, post) + 3
    lines = profile(program, [run_events(log((matrix, post)), cycles)])
    assert [line.layer for line in lines] == list(program.layers)
    assert sum(line.cycles for line in lines) == cycles
    spans = [span for line in lines for span in line.spans]
    assert sum(span.unit == "matrix" for span in spans) == matrix
    assert sum(span.unit == "post" for span in spans) == post
    (run,) = runs_of(program)
    array_layers = {layer for layer, _ in run.owners[0]}
    for number, line in enumerate(lines):
        on_array = number in array_layers
        assert any(span.unit == "matrix" for span in line.spans) == on_array
        works = line.layer.where == "device" and line.layer.operator != "reshape"
        assert bool(line.spans) == works
        share = line.utilisation(64)
        assert (share is None) == (not line.layer.macs)


def test_a_log_of_another_program_is_refused(program: Program) -> None:
    matrix, post = counts(program)
    with pytest.raises(DeviceError, match=f"must hold the {matrix} matrix instructions"):
        profile(program, [run_events(log((matrix - 1, post)), 999)])


class LoggingModel(ModelDevice):
    """The golden model with a made-up clock and log."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._log: dict[str, np.ndarray] = log((0, 0))
        self.clock = 1000

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        status = super().wait(timeout_seconds)
        done = status.done
        self._log = log(done, self.clock + 5)
        cycles = 5 + INSTRUCTION_CYCLES * max(done)
        self.clock += cycles + 77
        return DeviceStatus(False, False, done, cycles, (0, 0))

    def take_events(self) -> dict[str, np.ndarray]:
        events, self._log = self._log, log((0, 0))
        return events


@pytest.mark.parametrize("inspect", [False, True])
def test_records_all_runs_of_an_inference(inspect: bool) -> None:
    program = compile_file(MODEL, "sim-small", inspect=inspect)
    runs = len(runs_of(program))
    with closing(LoggingModel(program.hardware)) as device:
        recorder = Recorder(Execution(program, device))
        image = np.zeros((1, 8, 8, 1), np.int8)
        for _ in range(2):
            values = recorder.infer({"image": image})
            lines = recorder.layers()
            assert values["probabilities"].shape == (1, 10)
            assert sum(line.cycles for line in lines) == recorder.cycles
    assert (runs > 1) == inspect
    assert recorder.cycles == 5 * runs + INSTRUCTION_CYCLES * sum(
        max(run.instructions) for run in runs_of(program)
    )


def test_a_device_without_a_log_is_refused(program: Program) -> None:
    with closing(slipstick.open_device("model:sim-small")) as device:
        with pytest.raises(DeviceError, match="must log its events"):
            Recorder(Execution(program, device))
