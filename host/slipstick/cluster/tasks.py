"""The functions that workers run. They are pure: whatever is run twice gives the same."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import get_worker

from .board import Answer, Board

Files = Sequence[tuple[str, str, bytes]]
"""Files of the command: path there, name, content."""


def own_board() -> Board:
    """Returns the board of the worker that runs this task."""
    found = get_worker().plugins[Board.name]
    assert isinstance(found, Board)
    return found


def same(data: Any) -> Any:
    """Data for other tasks, which workers fetch from each other, once each."""
    return data


def load(program: bytes, key: str) -> Answer:
    """Puts a program on the worker's board."""
    return own_board().load(program, key)


def infer(program: bytes, key: str, inputs: dict[str, np.ndarray], names: Sequence[str]) -> Answer:
    """Runs some images on the worker's board."""
    return own_board().infer(program, key, inputs, names)


def call(function: Callable[..., Any], arguments: Sequence[Any], files: Files) -> Any:
    """Calls a function; paths of the command's files become those of their copies here."""
    here = own_board().place_files([(name, content) for _, name, content in files])
    places = {path: copy for (path, _, _), copy in zip(files, here, strict=True)}
    return function(*(_placed(argument, places) for argument in arguments))


def _placed(argument: Any, places: dict[str, str]) -> Any:
    if isinstance(argument, str):
        return places.get(argument, argument)
    if isinstance(argument, tuple):
        return tuple(_placed(item, places) for item in argument)
    return argument
