"""The value of ``--cluster``: processes of this machine, or the address of a scheduler."""

import re
from dataclasses import dataclass

from ..errors import InputError

FORMS = "local:N or tcp://HOST:PORT"
MOST_LOCAL = 64

_LOCAL = re.compile(r"local:([0-9]{1,4})")
_SCHEDULER = re.compile(r"(tcp|tls)://([^:/@\s]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})/?")
_LARGEST_PORT = (1 << 16) - 1


@dataclass(frozen=True)
class ClusterAddress:
    """Address of the workers.

    Parameters
    ----------
    text : str
        As it was given.
    processes : int
        Worker processes to start on this machine; 0: ``text`` is a scheduler's address.
    """

    text: str
    processes: int = 0

    @property
    def is_local(self) -> bool:
        """Tells whether the workers are started here, for one command."""
        return self.processes > 0


def parse_address(text: str) -> ClusterAddress:
    """Reads the value of ``--cluster``; InputError unless it has one of the two forms."""
    local = _LOCAL.fullmatch(text)
    if local:
        processes = int(local[1])
        if not 1 <= processes <= MOST_LOCAL:
            raise InputError(f"--cluster local:N must have 1..{MOST_LOCAL} workers, not {text!r}")
        return ClusterAddress(text, processes)
    return ClusterAddress(check_scheduler("--cluster", text, FORMS))


def check_scheduler(option: str, text: str, forms: str = "tcp://HOST:PORT") -> str:
    """Returns the address of a scheduler; InputError unless it is one."""
    found = _SCHEDULER.fullmatch(text)
    if not found or not 1 <= int(found[3]) <= _LARGEST_PORT:
        raise InputError(f"{option} must be {forms}, not {text!r}")
    return text.removesuffix("/")
