"""Ways of training on many devices, and the bytes that each sends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ...devices.wire_models import find_wire_model
from ...training.network import FloatParameters, TrainingNetwork
from ...training.parallel.crew import SerialCrew, ShuffledCrew
from ...training.parallel.evolution import CANDIDATE_BYTES
from ...training.parallel.jobs import WorkerSetup, take_snapshot
from ...training.parallel.local import LocalTrainer
from ...training.parallel.messages import WHOLE, layout_of, message_size
from ...training.parallel.polyak import PolyakTrainer
from ...training.parallel.stale import StaleTrainer
from ...training.parallel.trainer import CrewTrainer, ParallelTrainer

WIRES = ("uart@3000000", "spi", "usb-fs", "usb-hs", "rmii", "rgmii")
STALE = 4
EVOLUTION = "evolution"
_RANGE_BYTES = 2


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Holds the network that a method trains, and the settings of the training.

    Parameters
    ----------
    network : TrainingNetwork
    initial : mapping of FloatParameters
    workers : int
    momentum : int
    steps : int
        Of the whole training.
    seed : int
    """

    network: TrainingNetwork
    initial: Mapping[str, FloatParameters]
    workers: int
    momentum: int
    steps: int
    seed: int

    @property
    def setup(self) -> WorkerSetup:
        """Returns the setup of the workers."""
        return WorkerSetup(self.network, momentum=self.momentum)


@dataclass(frozen=True)
class Traffic:
    """Bytes of a worker per step, both ways; fractions where it is not every step.

    Parameters
    ----------
    up, down : float
        Gradients or models to the host; weights or models from it.
    images : float
        From the host as well.
    """

    up: float
    down: float
    images: float

    def images_per_second(self, wire: str, images: int, steps: int = 1) -> float:
        """Computes the rate that the wire allows.

        Computing takes no time, and each worker has a wire.

        Parameters
        ----------
        wire : str
            As ``find_wire_model`` takes it.
        images : int
            Of all workers, per step.
        steps : int
            Between two exchanges.
        """
        model = find_wire_model(wire)
        to, back = round((self.down + self.images) * steps), round(self.up * steps)
        return images * steps / (model.seconds(to) + model.seconds(back) + model.reply_seconds)


@dataclass(frozen=True)
class Method:
    """A way of training.

    Parameters
    ----------
    name, meaning : str
    make : callable
        Makes the trainer of a setting.
    bits : int
        Per number of a gradient; 0: models travel.
    steps : int
        Between two exchanges.
    """

    name: str
    meaning: str
    make: Callable[[Setting], CrewTrainer]
    bits: int = WHOLE
    steps: int = 1
    is_stale: bool = False
    """Each worker has whole batches."""

    def traffic(self, setting: Setting, batch: int) -> Traffic:
        """Computes the traffic of a batch's step."""
        trainer = setting.setup.trainer()
        layout = layout_of(trainer)
        images = batch / setting.workers * float(np.prod(setting.network.shape))
        ranges = _RANGE_BYTES * len(layout.ranges)
        if not self.bits:
            model = ranges + _model_bytes(take_snapshot(trainer))
            return Traffic(model / self.steps, model / self.steps, images)
        weights = sum((4 if each.is_bias else 1) * each.count for each in layout.tensors)
        share = setting.workers if self.is_stale else 1
        return Traffic(message_size(layout, self.bits) / share, (weights + ranges) / share, images)


def _model_bytes(snapshot: Mapping[str, np.ndarray]) -> int:
    """Counts the bytes of masters of 16 bits, biases and velocities of 32."""
    sizes = {"masters": 2, "bias": 4, "velocity": 4, "bias_velocity": 4}
    return sum(
        sizes.get(name.rpartition("/")[2], 0) * array.size for name, array in snapshot.items()
    )


def evolution_traffic(
    workers: int, candidates: int, images: int, shape: tuple[int, ...]
) -> Traffic:
    """Computes the traffic of a generation.

    A worker's own candidates go up, all candidates and the images down.
    """
    own = CANDIDATE_BYTES * candidates
    return Traffic(own / workers, own, images * float(np.prod(shape)))


def _parallel(bits: int) -> Callable[[Setting], CrewTrainer]:
    def make(setting: Setting) -> CrewTrainer:
        setup = setting.setup
        return ParallelTrainer(
            *(setting.network, setup.arithmetic(), setting.initial),
            crew=SerialCrew(setup.trainer()),
            parts=setting.workers,
            bits=bits,
            seed=setting.seed,
        )

    return make


def _local(steps: int) -> Callable[[Setting], CrewTrainer]:
    def make(setting: Setting) -> CrewTrainer:
        setup = setting.setup
        return LocalTrainer(
            *(setting.network, setup.arithmetic(), setting.initial),
            crew=SerialCrew(setup.trainer()),
            steps=steps,
            parts=setting.workers,
        )

    return make


def _stale(setting: Setting) -> CrewTrainer:
    setup = setting.setup
    crew = ShuffledCrew(setup.trainer(), setting.workers, setting.seed)
    return StaleTrainer(
        setting.network, setup.arithmetic(), setting.initial, crew=crew, bound=STALE
    )


def _polyak(setting: Setting) -> CrewTrainer:
    setup = setting.setup
    return PolyakTrainer(
        *(setting.network, setup.arithmetic(), setting.initial),
        crew=SerialCrew(setup.trainer()),
        parts=setting.workers,
        start=setting.steps // 2,
    )


METHODS = (
    Method("int32", "sums of 32 bits: the bits of one board", _parallel(WHOLE)),
    *(
        Method(f"qsgd{bits}", f"gradients in {bits} bits, error feedback", _parallel(bits), bits)
        for bits in (8, 4, 2, 1)
    ),
    *(
        Method(f"local{steps}", f"models averaged every {steps} steps", _local(steps), 0, steps)
        for steps in (1, 8, 32)
    ),
    Method("polyak", "int32, evaluated as the mean of the second half", _polyak),
    Method(
        f"stale{STALE}",
        f"a batch per worker, gradients up to {STALE} steps old",
        _stale,
        is_stale=True,
    ),
)
"""All but the evolution, which infers only."""

NAMES = (*(method.name for method in METHODS), EVOLUTION)
