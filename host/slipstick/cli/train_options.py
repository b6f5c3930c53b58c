"""Options of ``slipstick train``: their rules, checked before anything is learned."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..plots.figures import check_png
from ..training.export import SUFFIXES
from ..training.int8 import Range
from ..training.loop import Recipe
from ..training.opened_trainer import Updater
from ..training.opening import BY_HAND
from ..training.parallel.division import Division
from .completion import complete_device, complete_network
from .options import DEVICE_HELP, INPUTS_HELP

FINE_SHIFT, SCRATCH_SHIFT = 6, 4
"""Shifts of the learning rate 2^-shift at first, from known weights and from random ones."""

LARGEST_SHIFT = 16

TrainedModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A quantised .tflite or .onnx network, a float .onnx network, or a network by hand:"
        f" {', '.join(BY_HAND)}.",
        autocompletion=complete_network,
    ),
]
Data = Annotated[
    list[Path] | None,
    typer.Option("--data", "-i", help=f"What is learned from. {INPUTS_HELP}", show_default=False),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", "-l", help="Of --data; by default the y beside the inputs."),
]
Test = Annotated[
    list[Path] | None,
    typer.Option(
        "--test",
        help="What is tested on; by default a part of --data is held out.",
        show_default=False,
    ),
]
TestLabels = Annotated[Path | None, typer.Option("--test-labels", help="Of --test, likewise.")]
HeldOut = Annotated[
    float, typer.Option("--held-out", help="The share of --data that is tested on without --test.")
]
TrainingLimit = Annotated[
    int | None, typer.Option("--limit", "-n", help="Only the first N inputs of each set.")
]
FromScratch = Annotated[bool, typer.Option("--from-scratch", help="Begin with random weights.")]
Classes = Annotated[
    int | None,
    typer.Option(
        "--classes", help="The last layer becomes a new one of N classes; by default it stays."
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", help="How often all images are seen.")]
TrainingBatch = Annotated[
    int, typer.Option("--batch", help="Images that one step learns from: a power of two.")
]
Momentum = Annotated[
    int, typer.Option("--momentum", help="A velocity loses 2^-N of itself per step; 0: none.")
]
MasterBits = Annotated[
    int, typer.Option("--master-bits", help="Of weights as they are stored: 16 or 8.")
]
RangeName = Annotated[
    Range, typer.Option("--range", help="Whose largest magnitude chooses the shifts.")
]
UpdaterName = Annotated[
    Updater,
    typer.Option(
        "--update",
        help="Who updates the weights, where a single device has DRAM. device: they stay there, and"
        " fewer bytes move. host: the board has less to do.",
    ),
]
Flip = Annotated[bool, typer.Option("--flip", help="Turn images left to right by chance.")]
Crop = Annotated[
    int, typer.Option("--crop", help="Move images by up to N pixels by chance, both ways.")
]
Seed = Annotated[
    int,
    typer.Option("--seed", help="Of random weights, the order of images, and what is held out."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint, if it is there.")
]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="A .png file: loss and accuracy by epoch.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="The trained network: an ordinary quantised .tflite or .onnx file."
    ),
]
TrainingDevice = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="What multiplies. model: the golden functions alone. A pool: many train one network."
        f" Others: {DEVICE_HELP}",
        autocompletion=complete_device,
    ),
]
TrainingCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Workers multiply: local:N (N processes here, each with --device), or tcp://HOST:PORT"
        " of Dask's scheduler, with --target those that slipstick worker has brought boards of.",
        show_default=False,
    ),
]
GradientBits = Annotated[
    int,
    typer.Option(
        "--gradient-bits",
        help="Per number of a part's gradient: 32 (the bits of one device), 8, 4, 2 or 1.",
    ),
]
Parts = Annotated[
    int | None,
    typer.Option(
        "--parts",
        help="Of a batch; by default as many as devices or workers. With fewer bits, and with local"
        " steps, the result depends on it.",
        show_default=False,
    ),
]
LocalSteps = Annotated[
    int,
    typer.Option(
        "--local-steps",
        help="Each part learns N batches on its own, then models are averaged; 1: gradients are"
        " summed in every step.",
    ),
]
Layers = Annotated[
    int | None, typer.Option("--layers", help="Only the last N layers learn; by default all do.")
]
RateShift = Annotated[
    int | None,
    typer.Option(
        "--rate-shift",
        help=f"The learning rate is 2^-N at first, half of it from half of the epochs on, a quarter"
        f" from three quarters; by default {FINE_SHIFT}, from scratch {SCRATCH_SHIFT}.",
        show_default=False,
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        help="Instead: shares of the epochs, and the shift from there on, such as 0:5,0.5:6,0.8:7.",
        show_default=False,
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="A file, written after each epoch; --resume goes on from it."
    ),
]
CheckpointSteps = Annotated[
    int | None,
    typer.Option("--checkpoint-steps", help="The checkpoint is written after N batches, too."),
]


@dataclass(frozen=True)
class Files:
    """Files of a training.

    Parameters
    ----------
    model : path or str
    output, plot, checkpoint : path or None
    checkpoint_steps : int or None
    resume : bool

    Raises
    ------
    InputError
        If a file is of another kind, or cannot be written; if options do not fit one another.
    """

    model: str
    output: Path | None
    plot: Path | None
    checkpoint: Path | None
    checkpoint_steps: int | None
    resume: bool

    def __post_init__(self) -> None:
        if self.output is not None and self.output.suffix.lower() not in SUFFIXES:
            raise InputError(f"--output must be a {' or '.join(SUFFIXES)} file, not {self.output}")
        if self.plot is not None:
            check_png("--plot", self.plot)
        for option, needed in (
            ("--resume", self.resume),
            ("--checkpoint-steps", self.checkpoint_steps),
        ):
            if needed and self.checkpoint is None:
                raise InputError(f"{option} needs a checkpoint: --checkpoint FILE")
        written = {
            "--output": self.output,
            "--plot": self.plot,
            "--checkpoint": self.checkpoint,
        }
        for option, path in written.items():
            if path is not None:
                check_writable(option, path)
        source = Path(self.model)
        if self.output is not None and self.output.exists() and source.exists():
            if self.output.samefile(source):
                raise InputError(f"--output must be another file than the network, not {source}")
        if self.checkpoint is not None and self.checkpoint.exists() and not self.resume:
            raise InputError(
                f"--checkpoint {self.checkpoint} is there: go on from it with --resume, or remove"
                " it"
            )


def check_writable(option: str, path: Path) -> None:
    """InputError unless the file that an option names can be written."""
    if path.is_dir():
        raise InputError(f"{option} must be a file, but {path} is a folder")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"{option} {path} must be in a folder that is there, {folder} is not")
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"{option} {path} cannot be written: {error.strerror}") from None


def parse_schedule(text: str) -> tuple[tuple[float, int], ...]:
    """Shares of the epochs with shifts, of ``0:5,0.5:6``.

    Raises
    ------
    InputError
        If it is of another form.
    """
    found = []
    for part in text.split(","):
        share, _, shift = part.partition(":")
        try:
            found.append((float(share), int(shift)))
        except ValueError:
            raise InputError(
                f"--schedule must be SHARE:SHIFT,..., such as 0:5,0.5:6,0.8:7, not {text!r}"
            ) from None
    shares = [share for share, _ in found]
    if shares[0] != 0 or shares != sorted(set(shares)) or not shares[-1] < 1:
        raise InputError(f"--schedule must begin at 0 and rise below 1, not {text!r}")
    for _, shift in found:
        _check_shift("--schedule", shift)
    return tuple(found)


def _check_shift(option: str, shift: int) -> None:
    if not 0 <= shift <= LARGEST_SHIFT:
        raise InputError(f"{option} must have shifts 0 to {LARGEST_SHIFT}, not {shift}")


def rates_of(
    rate_shift: int | None, schedule: str | None, *, known: bool
) -> tuple[tuple[float, int], ...]:
    """The learning rates that options ask for, as a ``Recipe`` has them.

    Parameters
    ----------
    rate_shift : int or None
    schedule : str or None
    known : bool
        Whether the network has weights already: the learning rate is smaller then.

    Raises
    ------
    InputError
        If both are given, or one has no such value.
    """
    if schedule is not None:
        if rate_shift is not None:
            raise InputError("--rate-shift cannot stand beside --schedule: leave one out")
        return parse_schedule(schedule)
    first = rate_shift if rate_shift is not None else FINE_SHIFT if known else SCRATCH_SHIFT
    _check_shift("--rate-shift", first)
    return (0.0, first), (0.5, first + 1), (0.75, first + 2)


def recipe_of(
    epochs: int,
    batch: int,
    rates: tuple[tuple[float, int], ...],
    momentum: int,
    *,
    flip: bool,
    crop: int,
) -> Recipe:
    """The recipe that options ask for; InputError if the batch is no power of two."""
    if batch < 1 or batch & (batch - 1):
        raise InputError(f"--batch must be a power of two, not {batch}")
    return Recipe(epochs=epochs, batch=batch, rates=rates, momentum=momentum, flip=flip, crop=crop)


def division_of(
    gradient_bits: int, parts: int | None, local_steps: int, batch: int, source: Range, shared: bool
) -> Division:
    """The division of batches that options ask for.

    Parameters
    ----------
    gradient_bits, local_steps, batch : int
    parts : int or None
    source : Range
    shared : bool
        Whether there are several devices.

    Raises
    ------
    InputError
        If a value breaks a rule, or --range asks for what parts of a batch do not know.
    """
    division = Division(gradient_bits=gradient_bits, parts=parts, local_steps=local_steps)
    division.check(batch, lambda name: f"--{name.replace('_', '-')}")
    if source is not Range.PREVIOUS and (shared or division != Division()):
        raise InputError(
            f"--range must be {Range.PREVIOUS} where a batch has parts, not {source}: no part knows"
            " the largest magnitude of all"
        )
    return division


def as_json(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as a checkpoint gives them back."""
    return json.loads(json.dumps(settings))
