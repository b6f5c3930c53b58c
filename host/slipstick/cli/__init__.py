"""The command line: ``slipstick``, and ``python -m slipstick``."""

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..failures import exit_status

_COMMANDS = {
    "compile": "compile:compile_command",
    "run": "run:run_command",
    "eval": "evaluate:eval_command",
    "bench": "bench:bench_command",
    "explore": "explore:explore_command",
    "verify": "verify:verify_command",
    "verify-training": "verify_training:verify_training_command",
    "quantize": "quantize:quantize_command",
    "train": "train:train_command",
    "build": "build:build_command",
    "asic": "asic:asic_command",
    "layout": "layout:layout_command",
    "program": "program:program_command",
    "memtest": "memtest:memtest_command",
    "export": "export:export_command",
    "serve": "serve:serve_command",
    "serve-sim": "serve_sim:serve_sim_command",
    "worker": "worker:worker_command",
    "devices": "devices:devices_command",
    "targets": "targets:targets_command",
    "study": "study:app",
}
"""The module of each command, and its function, or its group of commands."""


class LazyGroup(TyperGroup):
    """Commands whose modules are imported when they are called, or all of them for the help."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        if cmd_name not in _COMMANDS:
            # what Typer suggests instead are those that are known
            for name in _COMMANDS:
                self.get_command(ctx, name)
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands[cmd_name]


def _load(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].partition(":")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    holder = typer.Typer(add_completion=False)
    holder.callback()(_no_options)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    group: Any = typer.main.get_command(holder)
    return group.commands[name]


def _no_options() -> None:
    pass


class ReportingGroup(LazyGroup):
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
