"""Compiled programs that are kept between runs, by all that they depend on.

An entry's name is a hash of the network's bytes, the hardware, the options, and the sources of
everything that has a part in compiling. So an entry is never out of date: it is only not asked for
any more, and removed when there is no room.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from slipstick_rtl.config import Configuration

from .. import __version__
from ..errors import ProgramError
from . import Program

LARGEST_CACHE = 1 << 29
"""Bytes of all entries together."""
_LARGEST_ENTRY = LARGEST_CACHE // 4
_DIGEST_BYTES = hashlib.sha256().digest_size
_SOURCES = ("slipstick", "slipstick_rtl")
_PACKAGES = ("numpy", "onnx", "tflite", "flatbuffers")
_ABANDONED_SECONDS = 3600.0
"""After which a file that was being written is taken to be nobody's any more."""


def cache_folder() -> Path | None:
    """Returns the folder of the entries; None if ``$SLIPSTICK_CACHE`` is ``off``.

    It is ``programs`` in ``$SLIPSTICK_CACHE``, by default in ``~/.cache/slipstick``, beside the
    compiled simulations.
    """
    named = os.environ.get("SLIPSTICK_CACHE")
    if named == "off":
        return None
    try:
        return (Path(named) if named else Path.home() / ".cache" / "slipstick") / "programs"
    except RuntimeError:
        # whoever runs this has no home
        return None


def cached_program(
    path: str | os.PathLike[str],
    configuration: Configuration,
    options: dict[str, object],
    compile_it: Callable[[], Program],
) -> Program:
    """The program of a network's file: the one that is kept, or else what ``compile_it`` makes,
    which is kept from then on.

    Parameters
    ----------
    path : path
    configuration : Configuration
    options : dict
        All else that ``compile_it`` depends on, as JSON has it.
    compile_it : callable
        Its errors are passed on; nothing is kept then.
    """
    folder = cache_folder()
    key = None if folder is None else _key(Path(path), configuration, options)
    if folder is None or key is None:
        return compile_it()
    entry = folder / f"{key}.slip"
    program = _read(entry)
    if program is None:
        program = compile_it()
        # another file may have taken the place of this one meanwhile
        if _key(Path(path), configuration, options) == key:
            # a folder that cannot be written to is as good as none
            with contextlib.suppress(OSError):
                _write(entry, program)
    return program


def _key(path: Path, configuration: Configuration, options: dict[str, object]) -> str | None:
    """The name of an entry; None for a file that cannot be read, or does not hold all it means."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    if b"location" in data:
        # as ONNX's tensors have it that are kept in other files
        return None
    about = [path.stem, configuration.to_dict(), configuration.fingerprint, options]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    digest.update(sources_digest().encode() + hashlib.sha256(data).digest())
    return digest.hexdigest()


@functools.cache
def sources_digest() -> str:
    """A hash of what compiles."""
    digest = hashlib.sha256(f"{__version__} {sys.version}".encode())
    for package in _PACKAGES:
        digest.update(f"{package} {importlib.metadata.version(package)};".encode())
    for package in _SOURCES:
        for name, path in _files(package):
            data = path.read_bytes()
            digest.update(f"{package}/{name} {len(data)};".encode() + data)
    return digest.hexdigest()


def _files(package: str) -> Iterator[tuple[str, Path]]:
    """A package's sources, by their names in it."""
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for path in sorted(Path(folder).rglob("*.py")):
            yield path.relative_to(folder).as_posix(), path


def _read(entry: Path) -> Program | None:
    """The program of an entry; None if there is none, or it is damaged."""
    from .slip_file import decode

    try:
        data = entry.read_bytes()
        digest, contents = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if hashlib.sha256(contents).digest() != digest:
            return None
        program = decode(contents, trusted=True)
        # the least recently used are removed first
        os.utime(entry)
    except (OSError, ProgramError):
        return None
    return program


def _write(entry: Path, program: Program) -> None:
    """Keeps a program: whole or not at all, whoever else writes the same one."""
    from .slip_file import encode

    contents = encode(program)
    if len(contents) > _LARGEST_ENTRY:
        return
    entry.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(".part", entry.stem[:16], entry.parent)
    try:
        with open(number, "wb") as file:
            file.write(hashlib.sha256(contents).digest() + contents)
        if entry.is_dir():
            entry.rmdir()
        os.replace(name, entry)
    except BaseException:
        os.unlink(name)
        raise
    _make_room(entry.parent)


def _make_room(folder: Path) -> None:
    """Removes the entries that were not used for the longest, and what nobody finished."""
    kept: list[tuple[float, int, Path]] = []
    for path in folder.iterdir():
        # others may remove it at the same time
        with contextlib.suppress(OSError):
            about = path.stat()
            if path.suffix == ".part":
                if time.time() - about.st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
            elif path.suffix == ".slip":
                kept.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if total <= LARGEST_CACHE:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
