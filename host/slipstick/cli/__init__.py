"""The command line: ``slipstick``, and ``python -m slipstick``."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..failures import exit_status
from .asic import asic_command
from .bench import bench_command
from .build import build_command
from .compile import compile_command
from .devices import devices_command
from .evaluate import eval_command
from .explore import explore_command
from .export import export_command
from .layout import layout_command
from .memtest import memtest_command
from .program import program_command
from .quantize import quantize_command
from .run import run_command
from .serve import serve_command
from .serve_sim import serve_sim_command
from .study import app as study_app
from .targets import targets_command
from .train import train_command
from .verify import verify_command
from .verify_training import verify_training_command
from .worker import worker_command


class ReportingGroup(TyperGroup):
    """Commands whose errors are one sentence on the standard error and exit status 2."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **settings: Any) -> Any:
        """Runs the command line; exits unless ``standalone_mode`` is False."""
        if not standalone_mode:
            return super().main(*arguments, standalone_mode=False, **settings)
        sys.exit(
            exit_status(
                lambda: super(ReportingGroup, self).main(
                    *arguments, standalone_mode=False, **settings
                )
            )
        )


app = typer.Typer(
    cls=ReportingGroup,
    no_args_is_help=True,
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
app.command("explore")(explore_command)
app.command("verify")(verify_command)
app.command("verify-training")(verify_training_command)
app.command("quantize")(quantize_command)
app.command("train")(train_command)
app.command("build")(build_command)
app.command("asic")(asic_command)
app.command("layout")(layout_command)
app.command("program")(program_command)
app.command("memtest")(memtest_command)
app.command("export")(export_command)
app.command("serve")(serve_command)
app.command("serve-sim")(serve_sim_command)
app.command("worker")(worker_command)
app.command("devices")(devices_command)
app.command("targets")(targets_command)
app.add_typer(study_app, name="study")
