"""OpenSTA run on a script; its errors, after which it ends as if all were well, are found."""

import re
from collections.abc import Sequence
from pathlib import Path

from .. import toolchain as tools
from ..errors import TargetError

GROUP = re.compile(r"^(Sequential|Combinational) +(\S+) +(\S+) +(\S+) +(\S+)", re.M)
"""In a report of power: internal power, switching, leakage, and their sum."""

_ERROR = re.compile(r"^Error: .*$", re.M)


def run(program: str, what: str, commands: Sequence[str], script: Path) -> str:
    """Runs OpenSTA on some commands, and returns its output.

    Parameters
    ----------
    program : str
        OpenSTA itself.
    what : str
        What is asked of it, for messages.
    commands : sequence of str
    script : Path
        The file to write them to, ``.tcl``; OpenSTA runs in its folder, its log lies beside.

    Raises
    ------
    TargetError
        If OpenSTA cannot be run, or finds an error.
    """
    script.write_text("\n".join(commands) + "\n", "utf-8")
    log = script.with_suffix(".log")
    command = [program, "-no_splash", "-exit", script.name]
    text = tools.run(what, command, folder=script.parent, log=log)
    if error := _ERROR.search(text):
        raise TargetError(f"OpenSTA stopped at {what}: {error[0]} (the whole log: {log})")
    return text
