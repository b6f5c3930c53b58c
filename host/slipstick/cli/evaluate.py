"""``slipstick eval``: accuracy over a labelled set."""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import console
from ..data.inputs import load_inputs, load_labels
from ..errors import InputError
from .open_session import open_session
from .options import (
    INPUTS_HELP,
    DeviceName,
    Json,
    Limit,
    Model,
    SemanticsName,
    Take,
    TargetName,
    check_least,
    taken,
)
from .run import one_input


def eval_command(
    model: Model,
    inputs: Annotated[Path, typer.Option("--inputs", "-i", help=INPUTS_HELP)],
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            "-l",
            help="A .npy, .npz (y) or idx .gz file; by default the y beside the inputs.",
        ),
    ] = None,
    device: DeviceName = "model",
    take: Take = False,
    target: TargetName = None,
    semantics: SemanticsName = None,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Measure a network's accuracy (top 1) over a labelled set."""
    check_least("--limit", limit, 1)
    device = taken(device, take)
    with open_session(model, device, target, semantics) as session:
        name = one_input(session.program)
        samples = load_inputs([inputs], session.program.tensors[name].shape)
        truths = samples.y if labels is None else load_labels(labels, len(samples))
        if truths is None:
            raise InputError(f"inputs {inputs} come without labels y: give them by --labels FILE")
        samples, truths = samples.first(limit), truths[:limit]
        classes = int(np.prod(session.get_outputs()[0].shape[1:]))
        if int(truths.max()) >= classes:
            raise InputError(
                f"labels must be below the network's {classes} classes, not {int(truths.max())}"
            )
        with console.progress("evaluating", len(samples)) as advance:
            start = time.perf_counter()
            outputs = session.run_batch(None, {name: samples.x}, advance)
            seconds = time.perf_counter() - start
    guesses = outputs[0].reshape(len(samples), -1).argmax(axis=1)
    correct = int((guesses == truths).sum())
    result = {
        "model": str(model),
        "device": device,
        "accuracy": correct / len(samples),
        "correct": correct,
        "count": len(samples),
        "inferences_per_second": len(samples) / seconds,
        "seconds": seconds,
    }
    if json:
        console.print_json(result)
    else:
        console.print_line(
            f"{model.name} on {device}: {correct} of {len(samples)} are right,"
            f" {100 * result['accuracy']:.2f} %;"
            f" {result['inferences_per_second']:.1f} inferences a second"
        )
