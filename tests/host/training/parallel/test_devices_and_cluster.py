"""Devices of a pool and Dask's workers as crews: the bits of one trainer, even if some are lost."""

import dataclasses
import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from slipstick.cluster import connection
from slipstick.devices import Device, DeviceGroup
from slipstick.devices.group import GroupKind
from slipstick.devices.model import ModelDevice
from slipstick.errors import CapacityError, DeviceError
from slipstick.runtime.sharing import exclusive
from slipstick.training.parallel import on_cluster
from slipstick.training.parallel.crew import Crew, ThreadCrew
from slipstick.training.parallel.devices import group_workers, open_device_crew
from slipstick.training.parallel.local import LocalTrainer
from slipstick.training.parallel.on_cluster import open_cluster_crew
from slipstick.training.parallel.trainer import ParallelTrainer
from slipstick.training.trainer import Trainer
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space
from training_crews import (
    INITIAL,
    NETWORK,
    SETUP,
    SHIFT,
    alone,
    batches,
    check_equal,
    compute_or_die,
    fail_on_board,
    learn,
)

SMALL = Configuration(
    rows=8, columns=8, lanes=8, activation_bytes=1 << 15, weight_bytes=1 << 16, training=1
)
STEPS = 2


class FatefulDevice(ModelDevice):
    """A golden model whose runs have a fate: it may raise, or wait."""

    def __init__(self, fate: Callable[[int], object] = lambda number: None) -> None:
        super().__init__(SMALL)
        self._fate, self.numbers = fate, itertools.count()

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        self._fate(next(self.numbers))
        super().run(pcs, clear)


def learn_few(trainer: Trainer, first: int = 0, last: int = STEPS) -> None:
    """Steps of 8 images: the model of a device takes its time."""
    for batch in batches(STEPS + 1)[first:last]:
        trainer.step(batch.images[:8], batch.labels[:8], SHIFT)


def few_alone(steps: int = STEPS) -> dict[str, np.ndarray]:
    trainer = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    learn_few(trainer, last=steps)
    return trainer.arrays()


def trained(crew: Crew) -> ParallelTrainer:
    trainer = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)
    learn_few(trainer)
    return trainer


def group(devices: Sequence[Device]) -> DeviceGroup:
    names = [f"board {number}" for number in range(len(devices))]
    return DeviceGroup(GroupKind.POOL, names, devices, lambda number: FatefulDevice())


def test_devices_of_a_pool_give_the_bits_of_one_trainer() -> None:
    def opener(name: str, configuration: Configuration | None) -> Device:
        assert name == "pool:a,b"
        return group([FatefulDevice(), FatefulDevice()])

    with open_device_crew("pool:a,b", SETUP, opener=opener) as crew:
        assert crew.size == 2
        check_equal(trained(crew).arrays(), few_alone())
        # the images of both steps at least
        assert crew.bytes_moved > STEPS * 8 * np.prod(NETWORK.shape)


def test_golden_functions_and_devices_of_a_pool() -> None:
    asked = []

    def opener(name: str, configuration: Configuration | None) -> Device:
        asked.append(name)
        return group([FatefulDevice(), FatefulDevice()])

    with open_device_crew("pool:model,a,model,b", SETUP, opener=opener) as crew:
        assert crew.size == 4 and asked == ["pool:a,b"]
        check_equal(trained(crew).arrays(), few_alone())
    with open_device_crew("pool:model,model", SETUP, opener=opener) as crew:
        check_equal(trained(crew).arrays(), few_alone())
        assert len(asked) == 1 and crew.bytes_moved == 0


def fails_at(*numbers: int) -> Callable[[int], None]:
    def fate(number: int) -> None:
        if number in numbers:
            raise DeviceError("the answer makes no sense")

    return fate


def test_a_device_that_fails_in_mid_step_is_opened_again() -> None:
    devices = [FatefulDevice(fails_at(30)), FatefulDevice(fails_at(40, 41))]
    opened = group(devices)
    with ThreadCrew(group_workers(opened, SETUP), patience=20) as crew:
        check_equal(trained(crew).arrays(), few_alone())
        assert crew.errors == ["the answer makes no sense"] * 2
    assert opened.members[0] is not devices[0]


def test_a_device_that_hangs_in_mid_step_loses_its_part() -> None:
    until = threading.Event()

    def hang(number: int) -> None:
        if number == 40:
            until.wait()

    opened = group([FatefulDevice(hang), FatefulDevice()])
    with ThreadCrew(group_workers(opened, SETUP), patience=0.1) as crew:
        found = trained(crew).arrays()
        assert crew.given_again > 0
        until.set()
    check_equal(found, few_alone())


def test_a_device_is_not_closed_under_a_job_that_is_late() -> None:
    until, closed = threading.Event(), []

    class LateDevice(FatefulDevice):
        def close(self) -> None:
            closed.append(until.is_set())
            super().close()

    def wait(number: int) -> None:
        if number == 40:
            until.wait()

    late = LateDevice(wait)

    def opener(name: str, configuration: Configuration | None) -> Device:
        return group([late, FatefulDevice()])

    with open_device_crew("pool:a,b", SETUP, opener=opener, patience=0.1) as crew:
        check_equal(trained(crew).arrays(), few_alone())
        threading.Timer(1.5, until.set).start()
    # its run ended before it was closed, and no other one was begun
    assert closed == [True] and next(late.numbers) == 41


def test_others_may_use_a_device_between_two_jobs() -> None:
    device = FatefulDevice()
    with ThreadCrew(group_workers(group([device]), SETUP)) as crew:
        trainer = trained(crew)
        with exclusive(device) as sharing:
            # whatever they leave in its memories
            device.write(Space.INSTRUCTIONS, 0, bytes(64))
            device.write(Space.WEIGHTS, 0, bytes(64))
            sharing.give_to(None)
        learn_few(trainer, STEPS, STEPS + 1)
    check_equal(trainer.arrays(), few_alone(STEPS + 1))


def test_devices_that_cannot_train() -> None:
    plain = ModelDevice(dataclasses.replace(SMALL, training=0))
    with pytest.raises(CapacityError, match="training = 1"):
        group_workers(group([plain]), SETUP)
    with pytest.raises(DeviceError, match="must be a pool to train on many: pool:D1,D2"):
        with open_device_crew("model", SETUP, opener=lambda name, how: FatefulDevice()):
            pass


def test_workers_of_a_cluster_that_are_killed_change_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signal 9 in the middle of a step, twice; whole steps and local ones."""
    monkeypatch.setenv("SLIPSTICK_TEST_MARKERS", str(tmp_path))
    monkeypatch.setattr(on_cluster, "compute", compute_or_die)
    with open_cluster_crew("local:2", SETUP) as crew:
        assert crew.size == 2
        many = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, parts=3)
        learn(many, 1)
        (tmp_path / "die1").touch()
        (tmp_path / "die2").touch()
        learn(many, 1)
        assert not list(tmp_path.iterdir()) and crew.given_again >= 2
        found = many.arrays()
        local = LocalTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, steps=2, parts=1)
        (tmp_path / "die3").touch()
        learn(local, 2)
        local_found = local.arrays()
        assert not list(tmp_path.iterdir())
    check_equal(local_found, alone(2))
    one = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    learn(one, 1)
    learn(one, 1)
    check_equal(found, one.arrays())


def test_boards_of_a_cluster_that_fail_change_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTICK_TEST_MARKERS", str(tmp_path))
    monkeypatch.setattr(on_cluster, "compute_on_board", fail_on_board)
    with open_cluster_crew("local:2", SETUP, device="model", configuration=SMALL) as crew:
        many = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, parts=3)
        learn_few(many, 0, 1)
        for number in range(3):
            (tmp_path / f"fail{number}").touch()
        learn_few(many, 1, 2)
        assert not list(tmp_path.iterdir()) and crew.given_again == 3
        assert crew.bytes_moved > STEPS * 8 * np.prod(NETWORK.shape)
        check_equal(many.arrays(), few_alone())
        for number in range(20):
            (tmp_path / f"fail{number}").touch()
        # the first step is one part, so every failure is of the same job
        alone = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)
        with pytest.raises(DeviceError, match="^no answer$"):
            learn_few(alone, 0, 1)
        assert len(list(tmp_path.iterdir())) == 14


def test_boards_that_no_worker_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WORKER_SECONDS", 0.5)
    plain = dataclasses.replace(SMALL, training=0)
    with pytest.raises(DeviceError, match="device 'model:sim-training' is hardware"):
        with open_cluster_crew("local:1", SETUP, device="model:sim-training", configuration=plain):
            pass
    with open_cluster_crew("local:1", SETUP, device="model", configuration=plain) as crew:
        many = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)
        with pytest.raises(CapacityError, match="training = 1"):
            learn_few(many, 0, 1)
