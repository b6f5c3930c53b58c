"""The boards by name, found by listing the modules of :mod:`slipstick_rtl.boards`."""

from functools import cache

from ..listing import modules_of
from .board import Board


@cache
def all_boards() -> dict[str, Board]:
    """Returns the boards by name, in the order of their modules.

    Raises
    ------
    ValueError
        If two have one name.
    """
    found: dict[str, Board] = {}
    for module in modules_of("slipstick_rtl.boards"):
        for board in module.BOARDS:
            if board.name in found:
                raise ValueError(f"board {board.name!r} must be described once")
            found[board.name] = board
    return found


def find_board(name: str) -> Board:
    """Returns the board of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    boards = all_boards()
    if name not in boards:
        raise ValueError(f"board must be one of {', '.join(boards)}, not {name!r}")
    return boards[name]
