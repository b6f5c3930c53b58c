"""``slipstick train``: a network learns from a labelled set, in integers of 8 bits."""

import sys
from pathlib import Path
from typing import Any

import typer

from .. import console
from ..data.inputs import load_inputs
from ..errors import InputError
from ..training.checkpoints import History, Within
from ..training.curves import draw_curves
from ..training.data import Split
from ..training.int8 import Range
from ..training.labelled import digest, hold_out, load_labelled
from ..training.loop import Recipe, train
from ..training.opened_trainer import Place, Updater
from ..training.opening import open_network
from ..training.parallel.messages import WHOLE
from ..training.session import TrainingSession
from .options import Json, Take, TargetName, check_cluster_device, check_least, taken
from .train_options import (
    CheckpointFile,
    CheckpointSteps,
    Classes,
    Crop,
    Data,
    Epochs,
    Files,
    Flip,
    FromScratch,
    GradientBits,
    HeldOut,
    Labels,
    Layers,
    LocalSteps,
    MasterBits,
    Momentum,
    Output,
    Parts,
    Plot,
    RangeName,
    RateShift,
    Resume,
    Schedule,
    Seed,
    Test,
    TestLabels,
    TrainedModel,
    TrainingBatch,
    TrainingCluster,
    TrainingDevice,
    TrainingLimit,
    UpdaterName,
    as_json,
    division_of,
    rates_of,
    recipe_of,
)

CALIBRATED = 256
"""Inputs, at most, that the scales of a float network come of."""


def train_command(
    context: typer.Context,
    model: TrainedModel,
    data: Data = None,
    labels: Labels = None,
    test: Test = None,
    test_labels: TestLabels = None,
    held_out: HeldOut = 0.2,
    limit: TrainingLimit = None,
    layers: Layers = None,
    from_scratch: FromScratch = False,
    classes: Classes = None,
    device: TrainingDevice = "model",
    take: Take = False,
    target: TargetName = None,
    cluster: TrainingCluster = None,
    gradient_bits: GradientBits = WHOLE,
    parts: Parts = None,
    local_steps: LocalSteps = 1,
    epochs: Epochs = 10,
    batch: TrainingBatch = 16,
    rate_shift: RateShift = None,
    schedule: Schedule = None,
    momentum: Momentum = 0,
    master_bits: MasterBits = 16,
    source: RangeName = Range.PREVIOUS,
    update: UpdaterName = Updater.DEVICE,
    flip: Flip = False,
    crop: Crop = 0,
    seed: Seed = 0,
    checkpoint: CheckpointFile = None,
    checkpoint_steps: CheckpointSteps = None,
    resume: Resume = False,
    output: Output = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Train a network, or its last layers, in integers of 8 bits: on boards, or without one."""
    _check_least(limit, layers, epochs, checkpoint_steps, crop, seed)
    paths = _given(data, test, test_labels, held_out)
    check_cluster_device(context, cluster)
    place = Place(device=taken(device, take), target=target, cluster=cluster, update=update)
    shared = not place.is_single
    division = division_of(gradient_bits, parts, local_steps, batch, source, shared)
    files = Files(model, output, plot, checkpoint, checkpoint_steps, resume)
    with console.waiting(f"opening {model}"):
        opened = open_network(
            model,
            samples=lambda shape: load_inputs(paths, shape).x[:CALIBRATED],
            from_scratch=from_scratch,
            classes=classes,
            seed=seed,
        )
    rates = rates_of(rate_shift, schedule, known=opened.known)
    recipe = recipe_of(epochs, batch, rates, momentum, flip=flip, crop=crop)
    with TrainingSession(
        opened,
        **vars(place),
        **vars(division),
        layers=layers,
        master_bits=master_bits,
        momentum=momentum,
        source=source,
        seed=seed,
    ) as session:
        if output is not None:
            session.check_output(output)
        learned = load_labelled(session, paths, labels, limit=limit)
        if test:
            tested = load_labelled(session, test, test_labels, limit=limit, option="--test-labels")
            split = Split(learned, tested)
        else:
            split = hold_out(learned, held_out, seed)
        settings = _settings(session, recipe, split, seed, master_bits, source)
        history = _train(session, split, recipe, files, settings, quiet=json)
        result = {
            "model": model,
            "device": place.told,
            **_figures(session, history),
            "images": len(split.train),
            "test_images": len(split.test),
            "held_out": not test,
            **settings,
        }
        _write(session, history, files, result)
    if json:
        console.print_json(result)
    else:
        _show(result, history)


def _check_least(
    limit: int | None,
    layers: int | None,
    epochs: int,
    checkpoint_steps: int | None,
    crop: int,
    seed: int,
) -> None:
    for option, value, least in (
        ("--limit", limit, 1),
        ("--layers", layers, 1),
        ("--epochs", epochs, 1),
        ("--checkpoint-steps", checkpoint_steps, 1),
        ("--crop", crop, 0),
        ("--seed", seed, 0),
    ):
        check_least(option, value, least)


def _given(
    data: list[Path] | None, test: list[Path] | None, test_labels: Path | None, held_out: float
) -> list[Path]:
    """The inputs; InputError if there are none, or if options do not fit one another."""
    if not data:
        raise InputError("training needs a labelled set: --data FILE")
    if test_labels is not None and not test:
        raise InputError("--test-labels needs inputs: --test FILE")
    if not 0 < held_out < 1:
        raise InputError(f"--held-out must be above 0 and below 1, not {held_out:g}")
    return data


def _settings(
    session: TrainingSession,
    recipe: Recipe,
    split: Split,
    seed: int,
    master_bits: int,
    source: Range,
) -> dict[str, Any]:
    """All that the bits depend on: a checkpoint of others is none of this training."""
    start = session.parameters()
    return as_json(
        {
            "layers": list(session.learning),
            "epochs": recipe.epochs,
            "batch": recipe.batch,
            "rates": [list(rate) for rate in recipe.rates],
            "momentum": recipe.momentum,
            "master_bits": master_bits,
            "range": source.value,
            **session.division.settings(),
            "flip": recipe.flip,
            "crop": recipe.crop,
            "seed": seed,
            "network_digest": digest(*(start[name] for name in sorted(start))),
            "data_digest": digest(
                split.train.images, split.train.labels, split.test.images, split.test.labels
            ),
        }
    )


def _train(
    session: TrainingSession,
    split: Split,
    recipe: Recipe,
    files: Files,
    settings: dict[str, Any],
    *,
    quiet: bool,
) -> History:
    """Trains, and tells how far it is."""
    steps = recipe.epochs * recipe.batches(len(split.train))

    def after_epoch(history: History) -> None:
        # a bar has these figures already
        if not quiet and not sys.stderr.isatty():
            print(_line(history, recipe), file=sys.stderr, flush=True)

    with console.told_progress("training", steps) as (advance, tell):

        def after_step(epoch: int, within: Within) -> None:
            tell(
                f"epoch {epoch + 1} of {recipe.epochs}: loss {within.mean_loss:.3f},"
                f" {within.percent:.1f} %"
            )

        try:
            return train(
                session.trainer,
                split,
                recipe,
                settings["seed"],
                checkpoint=files.checkpoint,
                checkpoint_steps=files.checkpoint_steps,
                settings=settings,
                resume=files.resume,
                done=advance,
                after_step=after_step,
                after_epoch=after_epoch,
            )
        except OverflowError as error:
            raise InputError(
                f"sums must fit 32 bits: {error}; a smaller --batch has smaller sums"
            ) from None


def _line(history: History, recipe: Recipe) -> str:
    return (
        f"epoch {len(history)} of {recipe.epochs}: loss {history.loss[-1]:.3f},"
        f" {history.train_percent[-1]:.2f} % right; test loss {history.test_loss[-1]:.3f},"
        f" {history.test_percent[-1]:.2f} % right"
    )


def _figures(session: TrainingSession, history: History) -> dict[str, Any]:
    """Lists the results of the training; rates are of this run."""
    return {
        "accuracy": round(history.test_percent[-1] / 100, 6),
        "loss": history.test_loss[-1],
        "accuracy_before": round(history.before_percent[0] / 100, 6),
        "train_accuracy": round(history.train_percent[-1] / 100, 6),
        "train_loss": history.loss[-1],
        "images_per_second": session.images_per_second,
        "bytes_per_step": session.bytes_per_step,
        **session.sharing_figures,
        "steps": session.trainer.steps,
        "history": vars(history),
    }


def _write(
    session: TrainingSession, history: History, files: Files, result: dict[str, Any]
) -> None:
    """Writes the network and the picture, and notes them."""
    if files.output is not None:
        result["bytes"] = session.save(files.output)
        result["output"] = str(files.output)
    if files.plot is not None:
        draw_curves(
            files.plot,
            history,
            title=f"Training of {Path(files.model).name}",
            caption=f"{result['images']:,} images are learned from, {result['test_images']:,} are"
            f" tested on; batches of {result['batch']}, seed {result['seed']}",
        )
        result["plot"] = str(files.plot)


def _show(result: dict[str, Any], history: History) -> None:
    rows = [
        [epoch + 1, f"{loss:.3f}", f"{right:.2f}", f"{test_loss:.3f}", f"{test_right:.2f}"]
        for epoch, (loss, right, test_loss, test_right) in enumerate(
            zip(
                history.loss,
                history.train_percent,
                history.test_loss,
                history.test_percent,
                strict=True,
            )
        )
    ]
    heads = ("epoch", "loss", "right in %", "test loss", "test right in %")
    console.print_table(
        f"{result['model']}: {result['images']:,} images learned from,"
        f" {result['test_images']:,} tested on, seed {result['seed']}",
        dict.fromkeys(heads, "right"),
        rows,
    )
    told = [f"accuracy {100 * result['accuracy']:.2f} %"]
    told.append(f"{100 * result['accuracy_before']:.2f} % before")
    if result["steps"]:
        told.append(f"{result['images_per_second']:,.1f} images per second")
    if result["bytes_per_step"]:
        told.append(f"{result['bytes_per_step']:,.0f} bytes per step")
    for unit in ("devices", "workers"):
        if unit in result:
            told.append(f"{result[unit]} {unit}, {result['given_again']} jobs done again")
    console.print_line("; ".join(told))
    if "why_not_from_dram" in result:
        console.print_line(
            f"The steps ran product by product, not from DRAM: {result['why_not_from_dram']}"
        )
    if "output" in result:
        console.print_line(f"{result['output']}: {result['bytes']:,} bytes")
