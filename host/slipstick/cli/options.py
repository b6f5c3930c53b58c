"""Arguments and options that several commands share."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..cluster.address import parse_address
from ..devices.kinds import TAKE, device_help
from ..errors import InputError
from .completion import complete_device, complete_model, complete_network, complete_target

MOST_IMAGES = 64
"""Most images of a batch from DRAM."""

Model = Annotated[
    Path,
    typer.Argument(
        help="A quantised .tflite or .onnx network, or a compiled .slip program.",
        autocompletion=complete_model,
    ),
]
Network = Annotated[
    Path,
    typer.Argument(help="A quantised .tflite or .onnx network.", autocompletion=complete_network),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="The hardware: a target's name or a shape like 1x16x16.",
        autocompletion=complete_target,
    ),
]


Batch = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_IMAGES,
        help="Of a network that runs from DRAM: images that share its weights.",
    ),
]


class Semantics(StrEnum):
    """Names the runtime whose rounding a network follows."""

    TFLM = "tflm"
    ONNX = "onnx"


SemanticsName = Annotated[
    Semantics | None,
    typer.Option(
        "--semantics",
        help="Whose rounding: tflm (31-bit factors, twice) or onnx (float32). By the file's kind.",
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", help="Only the first N inputs.")]
DEVICE_HELP = device_help()

DeviceName = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help=DEVICE_HELP,
        autocompletion=complete_device,
    ),
]
Take = Annotated[
    bool, typer.Option("--take", help="Take a board on Ethernet from the host that uses it.")
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Spread the work over workers: local:N (N processes here), or tcp://HOST:PORT of"
        " Dask's scheduler, where slipstick worker has brought boards.",
        show_default=False,
    ),
]
INPUTS_HELP = "A .npy, .npz (x, y) or idx .gz file, an image, or a folder of images."


def taken(device: str, take: bool) -> str:
    """The name of a device, with --take in it; InputError if no other host can have the device."""
    if not take:
        return device
    kind, _, place = device.partition(":")
    if kind != "udp":
        raise InputError(f"--take is for boards on Ethernet, udp:, not {device}")
    return f"udp:{place.removesuffix(TAKE)}{TAKE}"


def check_least(option: str, value: int | None, least: int) -> None:
    """InputError unless an option's value is absent or large enough."""
    if value is not None and value < least:
        raise InputError(f"{option} must be at least {least}, not {value}")


def refuse_beside_cluster(cluster: str | None, options: Mapping[str, object]) -> None:
    """InputError if an option that is of one machine's work is given beside --cluster."""
    for option, value in options.items():
        if cluster is not None and value is not None:
            raise InputError(f"{option} cannot stand beside --cluster: leave it out")


def check_cluster_device(context: typer.Context, cluster: str | None) -> None:
    """InputError if --device is given for workers that have their own."""
    source = context.get_parameter_source("device")
    given = source is not None and source.name != "DEFAULT"
    if cluster is not None and given and not parse_address(cluster).is_local:
        raise InputError(
            f"--device is what each worker of {cluster} was started with: leave it out"
        )
