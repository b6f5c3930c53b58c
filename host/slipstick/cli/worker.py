"""``slipstick worker``: a board of this machine for commands with ``--cluster``."""

from typing import Annotated

import typer

from .. import console
from ..cluster.address import check_scheduler
from ..cluster.distributed_setup import load_distributed
from ..errors import InputError
from ..targets import find_target
from .completion import complete_device
from .options import DEVICE_HELP, Json, Take, TargetName, taken


def worker_command(
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            "-s",
            help="tcp://HOST:PORT of Dask's scheduler; dask scheduler starts one.",
        ),
    ],
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            help=f"{DEVICE_HELP} Without one, the worker takes jobs that need no board: sweeps,"
            " builds, studies, verifications and trainings.",
            autocompletion=complete_device,
            show_default=False,
        ),
    ] = None,
    target: TargetName = None,
    take: Take = False,
    wait: Annotated[
        float, typer.Option(help="Seconds that the scheduler may take to answer.", min=0.1)
    ] = 10.0,
    json: Json = False,
) -> None:
    """Give a board to a Dask scheduler, for commands with --cluster; Ctrl-C ends it."""
    address = check_scheduler("--scheduler", scheduler)
    if device is None and (take or target is not None):
        raise InputError("--target and --take are of a board: give --device")
    opened = None if device is None else taken(device, take)
    configuration = None if target is None else find_target(target).configuration
    load_distributed()
    from ..cluster.worker import run_worker

    def ready(name: str) -> None:
        if json:
            console.print_json({"worker": name, "device": opened, "scheduler": address})
        else:
            console.print_line(f"worker {name} is at {address} (Ctrl-C ends it)")
        # whoever started this waits for the line
        typer.get_text_stream("stdout").flush()

    run_worker(address, opened, configuration, wait_seconds=wait, ready=ready)
