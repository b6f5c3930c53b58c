"""``slipstick eval``: accuracy over a labelled set."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from .. import console
from ..cluster.opening import open_cluster_session, told_devices
from ..data.inputs import load_inputs, load_labels
from ..devices import DeviceGroup
from ..errors import InputError
from ..session import InferenceSession
from .open_session import open_session
from .options import (
    INPUTS_HELP,
    ClusterName,
    DeviceName,
    Json,
    Limit,
    Model,
    SemanticsName,
    Take,
    TargetName,
    check_cluster_device,
    check_least,
    taken,
)
from .run import one_input

if TYPE_CHECKING:
    from ..cluster.session import ClusterSession


def eval_command(
    context: typer.Context,
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
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Measure a network's accuracy (top 1) over a labelled set."""
    check_least("--limit", limit, 1)
    check_cluster_device(context, cluster)
    device = taken(device, take)
    with (
        open_session(model, device, target, semantics)
        if cluster is None
        else open_cluster_session(model, cluster, device, target, semantics)
    ) as session:
        name = one_input(session.program)
        samples = load_inputs([inputs], session.program.tensors[name].shape)
        truths = samples.y if labels is None else load_labels(labels, len(samples))
        if truths is None:
            raise InputError(f"inputs {inputs} come without labels y: give them by --labels FILE")
        samples, truths = samples.first(limit), truths[:limit]
        classes = int(np.prod(session.program.tensors[session.program.outputs[0]].shape[1:]))
        if int(truths.max()) >= classes:
            raise InputError(
                f"labels must be below the network's {classes} classes, not {int(truths.max())}"
            )
        with console.progress("evaluating", len(samples)) as advance:
            before = busy_seconds(session)
            start = time.perf_counter()
            outputs = session.run_batch(None, {name: samples.x}, advance)
            seconds = time.perf_counter() - start
            shared = sharing_figures(session, before, seconds)
    guesses = outputs[0].reshape(len(samples), -1).argmax(axis=1)
    correct = int((guesses == truths).sum())
    result = {
        "model": str(model),
        "device": device if cluster is None else told_devices(cluster, device),
        "accuracy": correct / len(samples),
        "correct": correct,
        "count": len(samples),
        "inferences_per_second": len(samples) / seconds,
        "seconds": seconds,
        **shared,
    }
    if json:
        console.print_json(result)
    else:
        console.print_line(
            f"{model.name} on {result['device']}: {correct} of {len(samples)} are right,"
            f" {100 * result['accuracy']:.2f} %;"
            f" {result['inferences_per_second']:.1f} inferences per second"
        )
        if shared:
            console.print_line(
                f"{shared['devices']} devices, busy {console.percent(shared['efficiency'])} of the"
                f" time; {shared['retried']} images computed again"
            )


def busy_seconds(session: "InferenceSession | ClusterSession") -> float:
    """Seconds for which the boards of a pool or a cluster have had images, all together; 0 without
    one."""
    if not isinstance(session, InferenceSession):
        return session.busy_seconds
    return sum(board.busy_seconds for board in session.boards()) if _is_pool(session) else 0.0


def sharing_figures(
    session: "InferenceSession | ClusterSession", before: float, seconds: float
) -> dict[str, Any]:
    """Measures how a pool or a cluster shared the work: nothing for a single device.

    Parameters
    ----------
    session : InferenceSession or ClusterSession
    before : float
        ``busy_seconds`` at the beginning.
    seconds : float
        That the evaluation took.

    Returns
    -------
    dict
        ``devices``; ``efficiency``, the share of the devices' time in which they had images;
        ``retried``, images that were computed again since a device failed.
    """
    if not isinstance(session, InferenceSession):
        devices = session.boards
    elif _is_pool(session):
        devices = len(session.boards())
    else:
        return {}
    busy = busy_seconds(session) - before
    return {
        "devices": devices,
        "efficiency": min(1.0, busy / (devices * seconds)),
        "retried": session.retried,
    }


def _is_pool(session: InferenceSession) -> bool:
    return isinstance(session.device, DeviceGroup)
