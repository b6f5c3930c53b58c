"""``slipstick serve``: networks on boards as a service, by Open Inference Protocol V2."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console
from ..errors import InputError
from .completion import complete_model
from .options import DeviceName, Json, SemanticsName, TargetName

_PORTS = range(1 << 16)


def serve_command(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Networks or programs: PATH, NAME=PATH or NAME@VERSION=PATH.",
            autocompletion=complete_model,
        ),
    ],
    device: DeviceName = "sim",
    target: TargetName = None,
    semantics: SemanticsName = None,
    host: Annotated[
        str, typer.Option("--host", help="The address; a public one needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="Of REST and the page; 0: a free one.")
    ] = 8000,
    grpc_port: Annotated[int, typer.Option("--grpc-port", help="Of gRPC; 0: a free one.")] = 8001,
    token: Annotated[
        Path | None,
        typer.Option(
            "--token",
            help="A file with the token that requests must have; or the variable SLIPSTICK_TOKEN.",
            show_default=False,
        ),
    ] = None,
    max_batch_delay: Annotated[
        float,
        typer.Option(
            "--max-batch-delay",
            help="Milliseconds that an image may wait for others, to go to the boards with them.",
        ),
    ] = 0.0,
    queue: Annotated[
        int,
        typer.Option("--queue", help="Images per model that wait or are computed; more: 429."),
    ] = 1024,
    max_body: Annotated[
        int, typer.Option("--max-body", help="Bytes of a request's body; more: 413.")
    ] = 16 << 20,
    json: Json = False,
) -> None:
    """Serve networks over REST and gRPC, with a page at /; Ctrl-C or SIGTERM ends it.

    Requests are of the Open Inference Protocol V2. Figures for Prometheus are at /metrics.
    """
    try:
        from ..server.guard import read_token
        from ..server.limits import Limits
        from ..server.models import ModelRepository, model_argument
        from ..server.network_server import NetworkServer
        from ..server.serving import Ports, check_public, serve
    except ImportError as error:
        raise InputError(f"serve needs pip install slipstick[serve] ({error})") from None
    limits = Limits(queue=queue, max_body=max_body, batch_delay_ms=max_batch_delay)
    for option, number in (("--port", port), ("--grpc-port", grpc_port)):
        if number not in _PORTS:
            raise InputError(f"{option} must be within 0..{_PORTS[-1]}, not {number}")
    secret = read_token(token)
    check_public(host, secret)
    arguments = [model_argument(text) for text in models]

    def tell(ports: Ports) -> None:
        if json:
            console.print_json(
                {
                    "http": ports.http_address,
                    "grpc": ports.grpc_address,
                    "models": [
                        {"name": each.name, "version": each.version} for each in repository.models
                    ],
                    "token": secret is not None,
                }
            )
        else:
            names = ", ".join(each.label for each in repository.models)
            console.print_line(
                f"serving {names} at {ports.http_address} (page, REST) and {ports.grpc_address}"
                " (gRPC); Ctrl-C ends it"
            )
        # whoever started this waits for the ports
        typer.get_text_stream("stdout").flush()

    with console.waiting(f"opening {device}"):
        repository = ModelRepository.open(arguments, device, target, limits, semantics)
    with repository:
        serve(
            NetworkServer(repository, limits, secret),
            Ports(host=host, http=port, grpc=grpc_port),
            tell,
        )
