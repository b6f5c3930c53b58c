"""Finds the folder for what takes minutes to build."""

import contextlib
import functools
import os
import sys
import tempfile
from pathlib import Path


class ToolError(RuntimeError):
    """A tool, or the cache of what it makes, is missing or failed; the message says which."""


def cache_directory() -> Path:
    """Returns the folder of built models: ``$SLIPSTICK_CACHE``, else ``~/.cache/slipstick``.

    The value ``off`` is about compiled programs: models must lie somewhere.

    Without a home that can be written it is a folder of the user's own among the temporary files,
    which is told on the standard error.

    Raises
    ------
    ToolError
        If the folder that the variable names cannot be written.
    """
    if (named := os.environ.get("SLIPSTICK_CACHE", "")) not in ("", "off"):
        if complaint := _complaint(Path(named)):
            raise ToolError(f"SLIPSTICK_CACHE must name a folder that can be written: {complaint}")
        return Path(named)
    folder, complaint = _home_cache()
    return _temporary_cache(complaint) if complaint else folder


def lend_to_yowasp() -> None:
    """Gives YoWASP's tools, which keep machine code below the home, a folder that can be written.

    They end with an error where they find none.
    """
    if not os.environ.get("YOWASP_CACHE_DIR") and _home_cache()[1]:
        os.environ["YOWASP_CACHE_DIR"] = str(cache_directory() / "yowasp")


def _home_cache() -> tuple[Path, str]:
    """The folder below the user's home, and why it cannot be written; "" if it can."""
    home = os.environ.get("HOME", os.path.expanduser("~"))
    if not home.startswith("/"):
        return Path(), "there is no home folder"
    folder = Path(home) / ".cache" / "slipstick"
    return folder, _complaint(folder)


def _complaint(folder: Path) -> str:
    """Says why a folder cannot be written, or nothing; makes it if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder}: it is read-only"


@functools.cache
def _temporary_cache(complaint: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"slipstick-{os.getuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700)
    found = folder.stat(follow_symlinks=False) if folder.is_dir() else None
    if found is None or found.st_uid != os.getuid() or found.st_mode & 0o022:
        # libraries are run: nobody else may have put them there
        folder = Path(tempfile.mkdtemp(prefix="slipstick-"))
    print(
        f"compiled simulations are kept in {folder}, as there is no cache ({complaint});"
        " SLIPSTICK_CACHE names another folder",
        file=sys.stderr,
        flush=True,
    )
    return folder
