"""A network that learns: the loop is the user's own, as with PyTorch."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..errors import InputError
from .checkpoints import Checkpoint, History, read_checkpoint, write_checkpoint
from .data import LabelledSet
from .export import network_file
from .fixed import FixedTrainer
from .int8 import Range
from .interface import check_labels
from .loop import Recipe, augment, order
from .opened_device import GOLDEN
from .opened_trainer import Place, Updater, open_trainer
from .opening import OpenedNetwork, open_network
from .parallel.division import Division
from .parallel.jobs import WorkerSetup, take_snapshot
from .parallel.messages import WHOLE


@dataclass(frozen=True)
class Score:
    """A test.

    Parameters
    ----------
    loss : float
        Mean cross-entropy, in nats.
    accuracy : float
        Share of images that are right, 0..1.
    """

    loss: float
    accuracy: float


class TrainingSession:
    """Trains a network in integers of 8 bits.

    ::

        session = TrainingSession("network.tflite", layers=2)
        learned, tested = session.prepare(x, y), session.prepare(test_x, test_y)
        for epoch in range(3):
            for images, labels in Loader(learned, batch=16):
                loss = session.step(images, labels, rate_shift=6)
            print(epoch, loss, session.evaluate(tested.images, tested.labels))
        session.save("trained.tflite")

    The same calls give the same bits, on every device, and on many: a batch's gradients are sums of
    integers. Only compressed gradients and local steps have other bits, those of their parts.

    Parameters
    ----------
    model : str, path or OpenedNetwork
        An int8 .tflite or .onnx file, a float .onnx file, or a network by hand: mnist-cnn, resnet8,
        ds-cnn.
    device : str
        ``model``: the golden functions alone. Another device, as of ``open_device``, multiplies for
        forward pass, errors and gradients; ``pool:D1,D2,...``: several of them.
    target : str, optional
        The hardware; by default what the device's name says, or sim-training.
    cluster : str, optional
        Dask's workers: ``local:N``, each with such a device, or the address of a scheduler; with a
        target, those of its workers that have such a board.
    update : str or Updater
        "device": a single device with DRAM updates the weights; or "host". The bits are the same.
    gradient_bits : int
        Per number of a part's gradient: 32, 8, 4, 2 or 1.
    parts : int, optional
        Of a batch; by default as many as there are devices.
    local_steps : int
        Of a part on its own, before models are averaged; 1: gradients are summed in each step.
    layers : int, optional
        The last layers that learn; by default all.
    from_scratch : bool
        Begins with random weights. A network by hand always does.
    classes : int, optional
        The last layer gets so many outputs, and random weights. By default it stays.
    master_bits : int
        16, or 8: the weights themselves are updated.
    momentum : int
        A velocity loses 2^-momentum of itself per step; 0: there is none.
    source : str or Range
        "previous": shifts come of the largest magnitudes of the step before; or "present".
    seed : int
        Of random weights, and of the rounding of compressed gradients.
    samples : array, optional
        Typical inputs of a float network: the scales of its tensors come of them.

    Members
    -------
    network : TrainingNetwork
    trainer : FixedTrainer
    division : Division
        Of batches among devices.

    Raises
    ------
    SlipstickError
        If the network cannot be read or trained, the device not opened, or an option is none.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | OpenedNetwork,
        *,
        device: str = GOLDEN,
        target: str | None = None,
        cluster: str | None = None,
        update: str | Updater = Updater.DEVICE,
        gradient_bits: int = WHOLE,
        parts: int | None = None,
        local_steps: int = 1,
        layers: int | None = None,
        from_scratch: bool = False,
        classes: int | None = None,
        master_bits: int = 16,
        momentum: int = 0,
        source: str | Range = Range.PREVIOUS,
        seed: int = 0,
        samples: np.ndarray | None = None,
    ) -> None:
        if master_bits not in (8, 16):
            raise InputError(f"master weights must have 16 or 8 bits, not {master_bits}")
        if not 0 <= momentum <= 8:
            raise InputError(f"momentum must be 0 (none) to 8, not {momentum}")
        if source not in tuple(Range):
            raise InputError(f"the range must be {' or '.join(Range)}, not {source!r}")
        if update not in tuple(Updater):
            raise InputError(f"update must be {' or '.join(Updater)}, not {update!r}")
        place = Place(device=device, target=target, cluster=cluster, update=Updater(update))
        division = Division(gradient_bits=gradient_bits, parts=parts, local_steps=local_steps)
        if not isinstance(model, OpenedNetwork):
            model = open_network(
                model,
                samples=None if samples is None else lambda shape: samples,
                from_scratch=from_scratch,
                classes=classes,
                seed=seed,
            )
        self.interface, self.network = model.interface, model.network
        learning = None
        if layers is not None:
            if not model.known:
                raise InputError(
                    f"the last {layers} layers cannot learn alone: the others have random weights"
                )
            try:
                learning = model.network.last_learning(layers)
            except ValueError as error:
                raise InputError(str(error)) from None
        setup = WorkerSetup(model.network, learning, master_bits, momentum)
        self._opened = open_trainer(
            setup, model.initial, place, division, source=Range(source), seed=seed
        )
        self.trainer = FixedTrainer(self._opened.trainer, master_bits=master_bits)
        self.division = self._opened.division
        self._bytes_before = self._opened.bytes_moved

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the devices, or the connection to the cluster."""
        self._opened.close()

    @property
    def learning(self) -> tuple[str, ...]:
        """Names of the layers that learn."""
        names = (layer.name for layer in self.network.learning)
        return tuple(name for name in names if name in self._opened.trainer.learning)

    def parameters(self) -> dict[str, np.ndarray]:
        """A copy of weights, biases and ranges, by name: integers, as the arithmetic has them."""
        return take_snapshot(self._opened.trainer)

    @property
    def images_per_second(self) -> float:
        """Learned from, over the time in steps; 0 before the first one."""
        trainer = self.trainer
        return trainer.images / trainer.seconds if trainer.seconds else 0.0

    @property
    def bytes_per_step(self) -> float:
        """Written to devices and read from them, without the frames of a wire; 0 without one."""
        return (self._opened.bytes_moved - self._bytes_before) / max(1, self.trainer.steps)

    @property
    def sharing_figures(self) -> dict[str, Any]:
        """Tells how devices did the work, as ``OpenedTrainer.figures`` has it."""
        return self._opened.figures()

    def prepare(self, images: np.ndarray, labels: np.ndarray) -> LabelledSet:
        """Images as they are learned from: int8 codes of 2^-7, N x H x W x C.

        Parameters
        ----------
        images : array, (count, ...)
            As ``InferenceSession`` takes them: of the input's shape and type, or real numbers.
        labels : array of int, (count,)

        Raises
        ------
        InputError
            If there are no images, if one has another shape or type or is not finite, or if a label
            is no class.
        """
        codes = self.interface.encode(images)
        if not len(codes):
            raise InputError("a labelled set must hold at least one image, it holds none")
        return LabelledSet(codes, check_labels(labels, len(codes), self.network.classes))

    def step(self, images: np.ndarray, labels: np.ndarray, rate_shift: int) -> float:
        """Learns from one batch.

        Parameters
        ----------
        images : array of int8, (batch, height, width, channels)
            As ``prepare`` gives them; the batch is a power of two.
        labels : array of int, (batch,)
        rate_shift : int
            The learning rate is 2^-rate_shift.

        Returns
        -------
        float
            The batch's mean cross-entropy before the update, in nats. With local steps, of all that
            was learned from since the last call; NaN if nothing was.

        Raises
        ------
        InputError
            If the batch is no power of two, is not as ``prepare`` gives it, or has fewer images
            than parts that learn on their own.
        """
        self._check(images)
        if len(images) & (len(images) - 1):
            raise InputError(f"a batch must be a power of two, not {len(images)} images")
        if self.division.local_steps > 1:
            self.division.check(len(images))
        found = check_labels(labels, len(images), self.network.classes)
        result = self.trainer.step(images, found, rate_shift)
        return result.loss / result.images if result.images else math.nan

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> Score:
        """Tests with images of any number, as ``prepare`` gives them; InputError as for ``step``.

        The golden functions compute it: a device gives the same bits.
        """
        self._check(images)
        found = check_labels(labels, len(images), self.network.classes)
        return Score(*self.trainer.evaluate(images, found))

    def logits(self, images: np.ndarray) -> np.ndarray:
        """float32 (count, classes) of images as ``prepare`` gives them; InputError as for
        ``step``."""
        self._check(images)
        return self.trainer.logits(images)

    def _check(self, images: np.ndarray) -> None:
        shape = self.network.shape
        if images.dtype != np.int8 or images.shape[1:] != shape or not len(images):
            raise InputError(
                f"images must be int8 codes of shape (count, {', '.join(map(str, shape))}), as"
                f" prepare() gives them, not {images.dtype} {images.shape}"
            )

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes the network as an ordinary quantised .tflite or .onnx file.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        InputError
            If nothing was learned yet, or the file is of another kind or cannot be written.
        UnsupportedError
            If that kind of file has no such layer.
        """
        place = Path(path)
        data = network_file(self.trainer.trained(self.interface), place)
        try:
            place.write_bytes(data)
        except OSError as error:
            raise InputError(f"{place} cannot be written: {error.strerror}") from None
        return len(data)

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Raises what ``save`` would, before anything is learned; it writes nothing."""
        network_file(self.trainer.untrained(self.interface), Path(path))

    def write_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Keeps all that training changed; the file is replaced when the new one is complete."""
        write_checkpoint(Path(path), Checkpoint(self.trainer.arrays(), History()))

    def read_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint; InputError if it is none, or of another network."""
        try:
            self.trainer.restore(read_checkpoint(Path(path)).arrays)
        except (KeyError, ValueError) as error:
            raise InputError(f"checkpoint {path} is of another network: {error}") from None


class Loader:
    """Batches of a labelled set; each iteration over it is an epoch, in an order of its own.

    Parameters
    ----------
    data : LabelledSet
        As ``TrainingSession.prepare`` gives it.
    batch : int
        Images, a power of two. Images that fill no batch are left out of an epoch.
    seed : int
        Of the order, and of augmentation: the same seed gives the same epochs.
    flip : bool
        Images are turned left to right by chance.
    crop : int
        Images are moved by up to so many pixels, by chance, both ways.

    Raises
    ------
    InputError
        If the batch is no power of two, or larger than the set.
    """

    def __init__(
        self,
        data: LabelledSet,
        batch: int = 16,
        *,
        seed: int = 0,
        flip: bool = False,
        crop: int = 0,
    ) -> None:
        try:
            self._recipe = Recipe(epochs=1, batch=batch, rates=((0, 0),), flip=flip, crop=crop)
        except ValueError as error:
            raise InputError(str(error)) from None
        if len(data) < batch:
            raise InputError(f"a batch of {batch} needs as many images, not {len(data)}")
        self._data, self._seed = data, seed
        self._epoch = 0

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._recipe.batches(len(self._data))

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Images and labels of each batch."""
        epoch, data = self._epoch, self._data
        self._epoch += 1
        generator = np.random.default_rng([self._seed, 2, epoch])
        for places in order(self._seed, epoch, len(data), self._recipe.batch):
            yield augment(data.images[places], self._recipe, generator), data.labels[places]
