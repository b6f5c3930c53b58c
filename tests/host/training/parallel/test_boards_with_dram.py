"""Boards of a pool and of a cluster whose jobs run from their DRAM: the bits of one trainer."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from slipstick.devices import Device, DeviceGroup
from slipstick.devices.group import GroupKind
from slipstick.devices.model import ModelDevice
from slipstick.errors import DeviceError
from slipstick.runtime.dram_port import DramPort
from slipstick.runtime.sharing import exclusive
from slipstick.targets import find_target
from slipstick.training.device.verify import noisy_pictures
from slipstick.training.network import initial_parameters
from slipstick.training.networks import digits_cnn
from slipstick.training.parallel.crew import Crew, SerialCrew, ThreadCrew
from slipstick.training.parallel.devices import group_workers
from slipstick.training.parallel.jobs import Job, WorkerSetup, take_snapshot
from slipstick.training.parallel.local import LocalTrainer
from slipstick.training.parallel.trainer import ParallelTrainer
from slipstick.training.trainer import Trainer
from slipstick_rtl.link.protocol import DeviceStatus
from training_crews import check_equal

NETWORK = digits_cnn()
INITIAL = initial_parameters(NETWORK, 0)
SETUP = WorkerSetup(NETWORK)
WITH_DRAM = find_target("sim-training-sdram").configuration
WITHOUT = dataclasses.replace(WITH_DRAM, dram="")
STEPS, BATCH, SHIFT = 3, 8, 4
PICTURES = noisy_pictures(NETWORK, STEPS * BATCH, 0)
PATIENCE = 60.0


def thorough(value: int) -> Any:
    """A case that takes its time."""
    return pytest.param(value, marks=pytest.mark.thorough)


class DramDevice(ModelDevice):
    """A golden model with DRAM, that may raise when something has ended, such as a list."""

    def __init__(self, fate: Callable[[int], object] = lambda number: None) -> None:
        super().__init__(WITH_DRAM)
        self._fate, self.waits = fate, 0

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        status = super().wait(timeout_seconds)
        self.waits += 1
        self._fate(self.waits)
        return status


def learn(trainer: Trainer, steps: Iterable[int] = range(STEPS)) -> Trainer:
    for step in steps:
        some = slice(step * BATCH, (step + 1) * BATCH)
        trainer.step(PICTURES.images[some], PICTURES.labels[some], SHIFT)
    return trainer


def alone() -> dict[str, np.ndarray]:
    return learn(Trainer(NETWORK, SETUP.arithmetic(), INITIAL)).arrays()


def parallel(crew: Crew) -> dict[str, np.ndarray]:
    return learn(ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)).arrays()


def crew_of(*devices: Device) -> tuple[ThreadCrew, DeviceGroup]:
    names = [f"board {number}" for number in range(len(devices))]
    group = DeviceGroup(GroupKind.POOL, names, devices, lambda number: DramDevice())
    return ThreadCrew(group_workers(group, SETUP), patience=PATIENCE), group


@pytest.mark.parametrize("boards", [thorough(1), 2, thorough(3)])
def test_boards_train_from_their_dram(boards: int) -> None:
    crew, _ = crew_of(*(DramDevice() for _ in range(boards)))
    with crew:
        check_equal(parallel(crew), alone())
        # the first step knows no ranges; a part per board
        assert crew.from_dram == (STEPS - 1) * boards
        assert crew.bytes_moved > PICTURES.images.nbytes


def test_boards_with_and_without_dram_share_a_batch() -> None:
    crew, _ = crew_of(DramDevice(), ModelDevice(WITHOUT))
    with crew:
        check_equal(parallel(crew), alone())
        assert crew.from_dram == STEPS - 1


def test_a_board_updates_the_weights_of_its_own_steps() -> None:
    def local(crew: Crew) -> dict[str, np.ndarray]:
        trainer = LocalTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, steps=2)
        return learn(trainer, (0, 1, 2, 0)).arrays()

    crew, _ = crew_of(DramDevice())
    with crew:
        check_equal(local(crew), local(SerialCrew(SETUP.trainer())))
        # two jobs of two steps, the very first of which knows no ranges
        assert crew.from_dram == 3


@pytest.mark.parametrize("behind", [thorough(1), 2, thorough(3)])
def test_a_board_that_fails_in_mid_step(behind: int) -> None:
    """Of all that a step waits for, one after the other, among them its two lists."""
    failed: list[int] = []

    def fate(number: int) -> None:
        if number >= first + behind and not failed:
            failed.append(number)
            raise DeviceError("the answer makes no sense")

    def waits_of_first_step() -> int:
        device = DramDevice()
        crew, _ = crew_of(device)
        with crew:
            learn(ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew), (0,))
        return device.waits

    first = waits_of_first_step()
    broken = DramDevice(fate)
    crew, group = crew_of(broken)
    with crew:
        check_equal(parallel(crew), alone())
        assert crew.errors == ["the answer makes no sense"]
    assert failed and group.members[0] is not broken


def test_a_worker_that_is_stopped_begins_no_list() -> None:
    crew, group = crew_of(device := DramDevice())
    crew.close()
    (worker,) = group_workers(group, SETUP)
    trainer = learn(Trainer(NETWORK, SETUP.arithmetic(), INITIAL), (0,))
    job = Job(take_snapshot(trainer), PICTURES.images[:BATCH], PICTURES.labels[:BATCH])
    worker.do(job)
    waits = device.waits
    assert worker.from_dram == 1 and waits > 0
    worker.stop()
    for _ in range(2):
        with pytest.raises(DeviceError, match="wanted no more"):
            worker.do(job)
    assert device.waits == waits and worker.from_dram == 1
    with pytest.raises(DeviceError, match="wanted no more"):
        worker.reopen()


def test_what_others_leave_in_the_dram_does_no_harm() -> None:
    device = DramDevice()
    crew, _ = crew_of(device)
    with crew:
        trainer = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)
        for step in range(STEPS):
            learn(trainer, (step,))
            with exclusive(device) as sharing:
                port = DramPort(device)
                port.submit_write(0, bytes(range(256)) * 1024)
                port.finish()
                sharing.give_to(None)
        check_equal(trainer.arrays(), alone())
        assert crew.from_dram == STEPS - 1
