"""The command line: ``slipstick``, and ``python -m slipstick``."""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .commands.bench import bench_command
from .commands.compile import compile_command
from .commands.evaluate import eval_command
from .commands.run import run_command
from .commands.targets import targets_command
from .commands.verify import verify_command
from .errors import SlipstickError

BAD_INPUT = 2
INTERRUPTED = 130


class ReportingGroup(TyperGroup):
    """Commands whose errors are one sentence on the standard error and exit status 2."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **settings: Any) -> Any:
        """Runs the command line; exits unless ``standalone_mode`` is False."""
        if not standalone_mode:
            return super().main(*arguments, standalone_mode=False, **settings)
        try:
            status = super().main(*arguments, standalone_mode=False, **settings)
            sys.stdout.flush()
        except (SlipstickError, typer.TyperException, OSError) as error:
            status = _report(error)
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        sys.exit(status)


def _report(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        # whoever read the output has enough of it; what is left must not be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    message = str(error)
    if isinstance(error, typer.TyperException):
        message = error.format_message()
    elif isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
    print(f"slipstick: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT


app = typer.Typer(
    cls=ReportingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Slipstick runs quantised CNNs on an open accelerator, its simulation or its model.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slipstick {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


app.command("compile")(compile_command)
app.command("run")(run_command)
app.command("eval")(eval_command)
app.command("bench")(bench_command)
app.command("verify")(verify_command)
app.command("targets")(targets_command)
