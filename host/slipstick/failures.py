"""Ends commands: one sentence on the standard error instead of a traceback."""

import os
import sys
from collections.abc import Callable

import typer

from .errors import SlipstickError

BAD_INPUT = 2
INTERRUPTED = 130


def exit_status(action: Callable[[], int | None]) -> int:
    """Runs a command and returns its exit status: 2 for bad input, 130 for an interrupt."""
    try:
        status = action() or 0
        sys.stdout.flush()
        return status
    except (SlipstickError, typer.TyperException, OSError, MemoryError) as error:
        return _report(error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED


def command_status(command: Callable[..., int | None]) -> int:
    """Runs a function as a command line, its parameters as options; returns its exit status."""
    application = typer.Typer(add_completion=False)
    application.command()(command)
    return exit_status(lambda: application(standalone_mode=False))


def _report(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        # whoever read the output has enough of it; what is left must not be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    message = str(error)
    if isinstance(error, typer.TyperException):
        message = error.format_message()
    elif isinstance(error, MemoryError):
        message = f"memory must hold what was asked for: {error}".removesuffix(": ")
    elif isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
    # a bare `slipstick` has shown its help and has nothing to add
    if message:
        print(f"slipstick: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT
