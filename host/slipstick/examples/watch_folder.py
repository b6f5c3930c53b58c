"""Watches a folder, and prints the class of every image file that appears in it.

``python -m slipstick.examples.watch_folder FOLDER --model model.tflite --device sim``
"""

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import console
from ..data.inputs import IMAGE_SUFFIXES, load_inputs
from ..errors import InputError
from ..failures import exit_status
from ..session import InferenceSession
from .digits import MODEL

PAUSE_SECONDS = 0.1


def image_states(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of the image files in a folder, by name."""
    states = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".")
                if not hidden and entry.name.lower().endswith(IMAGE_SUFFIXES) and entry.is_file():
                    known = entry.stat()
                    states[entry.name] = known.st_size, known.st_mtime_ns
    except FileNotFoundError:
        if not folder.is_dir():
            raise InputError(f"folder {folder} is not there") from None
        # a file went while it was looked at: the next scan has the others
        return {}
    except OSError as error:
        raise InputError(f"folder {folder} cannot be read: {error.strerror}") from None
    return states


def new_images(folder: Path, *, once: bool, pause: float = PAUSE_SECONDS) -> Iterator[Path]:
    """The image files of a folder, each when it has not changed between two looks.

    Parameters
    ----------
    folder : Path
    once : bool
        Gives those that are there, and ends.
    pause : float
        Seconds between two looks.
    """
    given, before = dict[str, tuple[int, int]](), dict[str, tuple[int, int]]()
    while True:
        now = image_states(folder)
        for name in sorted(now):
            if (once or before.get(name) == now[name]) and given.get(name) != now[name]:
                given[name] = now[name]
                yield folder / name
        if once:
            return
        before = now
        time.sleep(pause)


def watch_folder(
    folder: Annotated[Path, typer.Argument(help="The folder.")],
    model: Annotated[Path, typer.Option("--model", "-m", help="A quantised network.")] = MODEL,
    device: Annotated[str, typer.Option("--device", "-d", help="As for slipstick run.")] = "sim",
    target: Annotated[str | None, typer.Option("--target", "-t", help="The hardware.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the files of now.")] = False,
) -> None:
    """Print the class of every image file that appears in a folder."""
    image_states(folder)
    with console.waiting(f"opening {device}"):
        session = InferenceSession(model, device, target)
    with session:
        shape = session.get_inputs()[0].shape
        names = deque[str]()

        def images() -> Iterator[np.ndarray]:
            for path in new_images(folder, once=once):
                try:
                    (image,) = load_inputs([path], shape).x
                except InputError as error:
                    console.print_line(f"{path.name}: {error}")
                    continue
                names.append(path.name)
                yield image

        with closing(session.stream(images())) as results:
            for scores, *_ in results:
                console.print_line(f"{names.popleft()}: class {scores.argmax()}")


def main() -> int:
    """The command line."""
    application = typer.Typer(add_completion=False)
    application.command()(watch_folder)
    return exit_status(lambda: application(standalone_mode=False))


if __name__ == "__main__":
    raise SystemExit(main())
