"""The boards by name; each file is loaded when its board is asked for."""

import importlib

from .board import Board

BOARDS = {
    "ulx3s-12f": ("ulx3s", "ULX3S_12F"),
    "ulx3s-25f": ("ulx3s", "ULX3S_25F"),
    "ulx3s-45f": ("ulx3s", "ULX3S_45F"),
    "ulx3s-85f": ("ulx3s", "ULX3S_85F"),
    "orangecrab-85f": ("orangecrab", "ORANGECRAB_85F"),
    "ecpix5-45f": ("ecpix5", "ECPIX5_45F"),
    "ecpix5-85f": ("ecpix5", "ECPIX5_85F"),
    "icesugar-pro": ("icesugar_pro", "ICESUGAR_PRO"),
    "icebreaker": ("icebreaker", "ICEBREAKER"),
    "tang-nano-9k": ("tang_nano_9k", "TANG_NANO_9K"),
    "tang-nano-20k": ("tang_nano_20k", "TANG_NANO_20K"),
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
