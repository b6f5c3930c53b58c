"""Names of what a worker offers, as Dask's scheduler matches them with what a task needs."""

from collections.abc import Iterable

from .. import __version__

BOARD = "board"
_SLIPSTICK, _HARDWARE = "slipstick ", "hardware "


def version_resource(version: str = __version__) -> str:
    """Names the resource of a worker of this version of Slipstick."""
    return f"{_SLIPSTICK}{version}"


def hardware_resource(fingerprint: str) -> str:
    """Names the resource of a worker whose board has this configuration."""
    return f"{_HARDWARE}{fingerprint}"


def version_of(resources: Iterable[str]) -> str | None:
    """Returns the version of Slipstick of a worker; None if it is not one of Slipstick's."""
    return _behind(_SLIPSTICK, resources)


def fingerprint_of(resources: Iterable[str]) -> str | None:
    """Returns the fingerprint of a worker's board; None if it has no board."""
    return _behind(_HARDWARE, resources)


def job_needs() -> dict[str, float]:
    """Returns what a task without a board needs: a worker of this version."""
    return {version_resource(): 1}


def board_needs(fingerprint: str) -> dict[str, float]:
    """Returns what inferences need: a worker of this version with such a board."""
    return {**job_needs(), BOARD: 1, hardware_resource(fingerprint): 1}


def _behind(start: str, resources: Iterable[str]) -> str | None:
    return next((name.removeprefix(start) for name in resources if name.startswith(start)), None)
