"""Checks that threads take turns: one at a time, in their order, and never while one waits."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import slipstick
from slipstick.devices.turns import Turns
from slipstick.loading import compile_file
from slipstick.program.steps import HostStep
from slipstick.runtime import step_runner
from slipstick.targets import find_target

PATIENCE = 20.0
MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"


class Log:
    """Who works, noted by the threads themselves."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.working = 0
        self.together = 0

    def work(self, name: str) -> None:
        self.working += 1
        self.together = max(self.together, self.working)
        self.names.append(name)
        # another thread runs now, if it may
        time.sleep(1e-4)
        self.working -= 1


def run(*functions: Callable[[], object]) -> None:
    """Runs functions in threads; fails if one does not end."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread waits for its turn for ever"


@pytest.mark.parametrize("threads", [2, 7])
def test_one_thread_at_a_time(threads):
    turns, log = Turns(0.0), Log()

    def drive(name):
        for _ in range(20):
            with turns.taken():
                for _ in range(3):
                    log.work(name)
                    turns.offer()
                turns.wait(time.sleep, 1e-5)
                log.work(name)

    run(*(lambda name=f"{k}": drive(name) for k in range(threads)))
    assert len(log.names) == threads * 20 * 4
    assert log.together == 1


def test_who_waits_lets_others_work():
    turns, arrived = Turns(), threading.Event()

    def waits():
        with turns.taken():
            assert turns.wait(arrived.wait, PATIENCE)

    def brings():
        with turns.taken():
            arrived.set()

    run(waits, brings)


def test_turns_come_in_their_order():
    turns, log = Turns(0.0), Log()
    queued = [threading.Event() for _ in range(3)]

    def drive(number):
        for earlier in queued[:number]:
            earlier.wait(PATIENCE)
        # so that whoever came before has come to wait
        time.sleep(0.05 * number)
        queued[number].set()
        with turns.taken():
            log.work(str(number))

    def hold():
        with turns.taken():
            queued[2].wait(PATIENCE)
            time.sleep(0.2)
            for _ in range(5):
                turns.offer()
                log.work("first")

    run(hold, *(lambda number=k: drive(number) for k in range(3)))
    assert log.names[:3] == ["0", "1", "2"]


def test_a_turn_is_kept_for_its_time():
    turns, log, begun = Turns(PATIENCE), Log(), threading.Event()

    def hold():
        with turns.taken():
            begun.set()
            for _ in range(50):
                log.work("holder")
                turns.offer()

    def other():
        begun.wait(PATIENCE)
        with turns.taken():
            log.work("other")

    run(hold, other)
    assert log.names == ["holder"] * 50 + ["other"]


def test_threads_without_a_turn_are_not_kept_waiting():
    turns = Turns()
    with turns.taken():
        run(turns.offer, lambda: turns.wait(time.sleep, 0.0))


def test_errors_give_the_turn_back():
    turns = Turns()

    def fails():
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"), turns.taken():
        turns.wait(fails)

    def works():
        with turns.taken():
            pass

    run(works)


def test_a_users_operator_lets_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    monkeypatch.setattr(step_runner, "TURNS", turns)
    program = compile_file(MODEL, find_target("sim-small").configuration)
    step = next(step for step in program.steps if isinstance(step, HostStep))
    arrived = threading.Event()

    def operator(step: HostStep, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert arrived.wait(PATIENCE)
        return [operands[0]]

    runner = step_runner.StepRunner(program, {step.operator: operator}, lambda: None)

    def waits() -> None:
        with turns.taken():
            runner.host(step, {name: np.zeros(3, np.int8) for name in step.inputs})

    def brings() -> None:
        with turns.taken():
            arrived.set()

    run(waits, brings)
