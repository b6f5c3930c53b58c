"""The boards by name; each file is loaded when its board is asked for."""

import importlib

from .board import Board

BOARDS = {
    "ulx3s-12f": ("ulx3s", "ULX3S_12F"),
    "ulx3s-25f": ("ulx3s", "ULX3S_25F"),
    "ulx3s-45f": ("ulx3s", "ULX3S_45F"),
    "ulx3s-85f": ("ulx3s", "ULX3S_85F"),
}
"""File and name of each description."""


def find_board(name: str) -> Board:
    """The board of a name.

    Raises
    ------
    ValueError
        If there is none.
    ImportError
        If the package ``amaranth-boards`` is missing.
    """
    if name not in BOARDS:
        raise ValueError(f"board must be one of {', '.join(BOARDS)}, not {name!r}")
    file, variable = BOARDS[name]
    return getattr(importlib.import_module(f".{file}", __package__), variable)
