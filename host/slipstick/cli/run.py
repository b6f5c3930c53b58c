"""``slipstick run``: inference on images or arrays."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from .. import console
from ..cluster.opening import open_cluster_session, told_devices
from ..data.inputs import Samples, load_inputs
from ..errors import InputError
from ..program import Program
from ..runtime.feeds import dequantise
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

if TYPE_CHECKING:
    from ..cluster.session import ClusterSession


def run_command(
    context: typer.Context,
    model: Model,
    files: Annotated[
        list[Path] | None, typer.Argument(help="More inputs, as --input.", show_default=False)
    ] = None,
    inputs: Annotated[
        list[Path] | None, typer.Option("--input", "-i", help=INPUTS_HELP, show_default=False)
    ] = None,
    device: DeviceName = "sim",
    take: Take = False,
    target: TargetName = None,
    semantics: SemanticsName = None,
    top: Annotated[int, typer.Option("--top", "-k", help="Classes to show.")] = 5,
    limit: Limit = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Run a network on images or arrays; show the classes it gives.

    Of a network that keeps something from run to run, the inputs follow each other in time.
    """
    check_least("--top", top, 1)
    check_least("--limit", limit, 1)
    paths = [*(inputs or []), *(files or [])]
    if not paths:
        raise InputError("inputs must be at least one file: --input FILE")
    check_cluster_device(context, cluster)
    device = taken(device, take)
    with (
        open_session(model, device, target, semantics)
        if cluster is None
        else open_cluster_session(model, cluster, device, target, semantics)
    ) as session:
        name = one_input(session.program)
        samples = load_inputs(paths, session.program.tensors[name].shape).first(limit)
        with console.progress("running", len(samples)) as advance:
            outputs = session.run_batch(None, {name: samples.x}, advance)
        measured = session.last_cycles
        predicted = session.program.predicted_cycles
        result = {
            "model": str(model),
            "device": device if cluster is None else told_devices(cluster, device),
            "outputs": _entries(session, samples, outputs, top),
            "state_bytes": session.program.state_bytes,
            "cycles": predicted if measured is None else measured,
            "cycles_are": "predicted" if measured is None else "measured",
        }
    if json:
        console.print_json(result)
    else:
        _show(result)


def one_input(program: Program) -> str:
    """The network's one input: the command line has files for no more."""
    if len(program.inputs) != 1:
        raise InputError(
            f"{program.name} must have one input to be run from files, not {len(program.inputs)}:"
            " use slipstick.InferenceSession"
        )
    return program.inputs[0]


def _entries(
    session: "InferenceSession | ClusterSession",
    samples: Samples,
    outputs: list[np.ndarray],
    top: int,
) -> list[dict[str, Any]]:
    """One an input and output of the network."""
    entries = []
    for index, label in enumerate(samples.names):
        for name, codes in zip(session.program.outputs, outputs, strict=True):
            values = dequantise(codes[index].reshape(-1), session.program.tensors[name])
            # equal scores in the order of their classes
            best = np.argsort(-values, kind="stable")[:top]
            entries.append(
                {
                    "input": label,
                    "output": name,
                    "shape": list(codes.shape[1:]),
                    "values": values.tolist(),
                    "top": [{"class": int(c), "score": float(values[c])} for c in best],
                }
            )
    return entries


def _show(result: dict[str, Any]) -> None:
    rows = [
        [
            entry["input"],
            entry["output"],
            "  ".join(f"{item['class']}: {item['score']:.4g}" for item in entry["top"]),
        ]
        for entry in result["outputs"]
    ]
    columns = {"input": "left", "output": "left", "class: score": "text"}
    console.print_table(
        f"{result['model']} on {result['device']}",
        columns,
        rows,
        f"{result['cycles']:,} cycles per inference ({result['cycles_are']})"
        + ("; inputs follow each other in time" if result["state_bytes"] else ""),
    )
