"""A short training in a process of its own, which kills itself in the middle of a checkpoint.

Arguments: the checkpoint, at which of its checkpoints (from 1; 0: none) and behind which byte of it
the process is to be killed, and one of ``KINDS``.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from slipstick.training import checkpoints
from slipstick.training.fixed import FixedTrainer
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.loop import Recipe, train
from slipstick.training.network import Initial, TrainingNetwork, initial_parameters
from slipstick.training.parallel.crew import SerialCrew
from slipstick.training.parallel.jobs import WorkerSetup
from slipstick.training.parallel.local import LocalTrainer
from slipstick.training.parallel.trainer import ParallelTrainer
from slipstick.training.trainer import Trainer
from training_networks import small_network, small_split

RECIPE = Recipe(epochs=3, batch=32, rates=((0, 4), (0.5, 5)), momentum=2, flip=True, crop=1)
SETTINGS = {"seed": 7}


def alone(network: TrainingNetwork, initial: Initial) -> Trainer:
    """One trainer."""
    return Trainer(network, Int8Arithmetic(16, RECIPE.momentum), initial)


def one_bit(network: TrainingNetwork, initial: Initial) -> Trainer:
    """Gradients of one bit, with error feedback."""
    setup = WorkerSetup(network, momentum=RECIPE.momentum)
    crew = SerialCrew(setup.trainer())
    return ParallelTrainer(network, setup.arithmetic(), initial, crew=crew, parts=2, bits=1)


def local(network: TrainingNetwork, initial: Initial) -> Trainer:
    """Models are averaged after three steps: epochs have eight."""
    setup = WorkerSetup(network, momentum=RECIPE.momentum)
    crew = SerialCrew(setup.trainer())
    return LocalTrainer(network, setup.arithmetic(), initial, crew=crew, steps=3, parts=2)


KINDS = {"alone": alone, "one-bit": one_bit, "local": local}


class Killing:
    """A file that kills its process."""

    def __init__(self, file: Any, left: int) -> None:
        self._file, self._left = file, left

    def write(self, data: bytes) -> int:
        """Writes as much as is left, and no more."""
        size = memoryview(data).nbytes
        if size >= self._left:
            self._file.write(memoryview(data).cast("B")[: self._left])
            self._file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= size
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "Killing":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def kill_at(number: int, byte: int) -> None:
    """Lets the process end in the middle of a checkpoint."""
    opened = 0

    def opener(path: Path, mode: str) -> Any:
        nonlocal opened
        opened += 1
        file = open(path, mode)
        return Killing(file, byte) if opened == number else file

    checkpoints.__dict__["open"] = opener


def main() -> None:
    """Trains, from the checkpoint on if it is there."""
    path, number, byte = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if number:
        kill_at(number, byte)
    network = small_network()
    trainer = KINDS[sys.argv[4]](network, initial_parameters(network, 0))
    train(
        FixedTrainer(trainer),
        small_split(),
        RECIPE,
        7,
        checkpoint=path,
        checkpoint_steps=1,
        settings=SETTINGS,
        resume=True,
        after_step=lambda epoch, within: print(epoch, within.step, flush=True),
    )


if __name__ == "__main__":
    main()
