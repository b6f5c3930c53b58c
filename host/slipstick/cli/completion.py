"""Completes targets, devices and files of networks on the command line, for typer."""

from collections.abc import Iterator
from pathlib import Path

from ..devices.kinds import KINDS
from ..targets import TARGETS

_NETWORKS = (".tflite", ".onnx")
_PROGRAM = ".slip"


def complete_target(incomplete: str) -> list[tuple[str, str]]:
    """Returns the named targets that begin so, with their descriptions."""
    return [
        (name, target.description)
        for name, target in TARGETS.items()
        if name.startswith(incomplete)
    ]


def complete_device(incomplete: str) -> list[tuple[str, str]]:
    """Returns the devices that begin so; after a simulated kind's colon the targets."""
    kind, colon, start = incomplete.partition(":")
    if colon and kind in KINDS and KINDS[kind].is_simulated:
        return [(f"{kind}:{name}", told) for name, told in complete_target(start)]
    return [
        (name if kind.is_simulated else f"{name}:", kind.help)
        for name, kind in KINDS.items()
        if name.startswith(incomplete)
    ]


def complete_network(incomplete: str) -> list[str]:
    """Returns the networks' files and the folders that begin so."""
    return list(_files(incomplete, _NETWORKS))


def complete_model(incomplete: str) -> list[str]:
    """Returns the files of networks and programs, and the folders, that begin so."""
    return list(_files(incomplete, (*_NETWORKS, _PROGRAM)))


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    head, slash, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(head + slash or ".").iterdir())
    except OSError:
        return
    for path in entries:
        hidden = path.name.startswith(".") and not start.startswith(".")
        if hidden or not path.name.startswith(start):
            continue
        if path.is_dir():
            yield f"{head}{slash}{path.name}/"
        elif path.suffix in suffixes:
            yield f"{head}{slash}{path.name}"
