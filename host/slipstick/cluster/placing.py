"""Place and route on a cluster's workers: a build's files go there, those of a seed come back."""

import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..fpga.seeds import Attempt, Placer, Way
from ..fpga.toolchains import NETLIST
from .pool import ClusterPool

Files = Mapping[str, bytes]
"""Compressed contents, by name below the build's folder."""


class SeedSpread:
    """Runs the seeds of a build on workers; it is ``build``'s ``spread``.

    Parameters
    ----------
    pool : ClusterPool
    """

    def __init__(self, pool: ClusterPool) -> None:
        self._pool = pool

    def __call__(self, placer: Placer, way: Way, attempts: Sequence[Attempt]) -> Iterator[Attempt]:
        paths = [placer.folder / name for name in (NETLIST, placer.toolchain.pins)]
        given = self._pool.share({path.name: _packed(path) for path in paths if path.exists()})
        placed = [
            self._pool.submit(_place, placer, way.__name__, given, attempt) for attempt in attempts
        ]
        for task in placed:
            attempt, files = task.result()
            _unpack(files, placer.folder)
            yield attempt


def _place(placer: Placer, way: str, given: Files, attempt: Attempt) -> tuple[Attempt, Files]:
    """On a worker: goes one way with an attempt, and returns the files that it made."""
    with tempfile.TemporaryDirectory(prefix="slipstick-seed-") as name:
        folder = Path(name)
        _unpack(given, folder)
        program = placer.toolchain.place_and_route.find()
        here = replace(placer, folder=folder, program=program)
        done = {"estimate": Placer.estimate, "route": Placer.route}[way](here, attempt)
        made = [path for path in (folder / attempt.folder).rglob("*") if path.is_file()]
        # a message names the log, which goes to the command's folder
        problem = done.problem.replace(str(folder), str(placer.folder))
        return replace(done, problem=problem), {
            str(path.relative_to(folder)): _packed(path) for path in made
        }


def _packed(path: Path) -> bytes:
    return zlib.compress(path.read_bytes(), 1)


def _unpack(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.decompress(content))
