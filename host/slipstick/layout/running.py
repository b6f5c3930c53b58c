"""Programs of Tcl run without a window, their logs kept."""

import os
import subprocess
from pathlib import Path

from .. import toolchain
from ..errors import TargetError


def run_quietly(what: str, command: list[str], folder: Path, log: Path) -> str:
    """Runs a program of Tcl without a window and without input; returns what its log has.

    Raises
    ------
    TargetError
        If it cannot be run, or ends with an error.
    """
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    with open(log, "w", encoding="utf-8") as file:
        print("$", *command, file=file, flush=True)
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                check=False,
            )
        except OSError as error:
            raise TargetError(f"{command[0]} cannot be run: {error.strerror}") from None
    text = log.read_text("utf-8", errors="replace")
    if done.returncode != 0:
        reason = toolchain.last_error(text, done.returncode)
        raise TargetError(f"{what} failed: {reason} (the whole log: {log})")
    return text
