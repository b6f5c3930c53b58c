"""The targets: what can be simulated and what can be built, by name."""

import re
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration, most_weight_rows, power_of_two_within
from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.toplevel.board import Board
from slipstick_rtl.toplevel.registry import all_boards

from ..errors import TargetError

DEFAULT_TARGET = "sim-medium"

_MOST_WEIGHT_ROWS = 4
"""Most weight rows of simulated targets: fully connected layers wait for weights and need them."""

_LOGARITHMIC = re.compile(r"sim-(lns1\+.*)")
_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})")


@dataclass(frozen=True)
class Target:
    """A configuration and what carries it.

    Parameters
    ----------
    name : str
    description : str
        One line for people.
    configuration : Configuration
    board : str or None
        One of ``slipstick_rtl.boards``; None: the target is only simulated.
    part : Part or None
        The board's FPGA.
    """

    name: str
    description: str
    configuration: Configuration
    board: str | None = None
    part: Part | None = None


def _lanes(pixels: int, rows: int, columns: int) -> int:
    """Half a lane for each accumulator that the array makes at once.

    The post-processor then keeps up with reductions of two tiles or more.
    """
    return power_of_two_within(min(64, rows, columns, max(4, pixels * columns // 2)))


def _simulated(name: str, description: str, pixels: int, rows: int, columns: int) -> Target:
    configuration = Configuration(
        pixels=pixels,
        rows=rows,
        columns=columns,
        lanes=_lanes(pixels, rows, columns),
        weight_rows=min(_MOST_WEIGHT_ROWS, most_weight_rows(rows)),
    )
    return Target(name, description, configuration)


def _logarithmic(name: str, number_format: str) -> Target:
    """The default target's array and memories, with another number format."""
    plain = _simulated(name, "", 1, 16, 16)
    configuration = replace(plain.configuration, number_format=number_format)
    return Target(name, f"simulated, 256 elements of {number_format}", configuration)


def _training(
    name: str,
    rows: int,
    columns: int,
    description: str,
    dram: str = "",
    clock_hz: int = 100_000_000,
) -> Target:
    """A target whose post-processor does what gradients need."""
    plain = _simulated(name, "", 1, rows, columns).configuration
    return Target(name, description, replace(plain, training=1, dram=dram, clock_hz=clock_hz))


_SDRAM = "MT48LC16M16"
_DDR3 = "MT41K256M16"
_DDR3_CLOCK = 110_000_000
"""Clock of the core beside DDR3, as on ``ecpix5-85f-training-ddr3``: the memory has its own."""

_TILE = Configuration(
    # memories as small as digits need, of flip-flops if there is no macro; one table for two lanes,
    # as four would take more room than all other memories together
    rows=4,
    columns=4,
    lanes=4,
    halved_tables=1,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    accumulator_depth=16,
    instruction_words=64,
    payload_bytes=64,
    clock_hz=40_000_000,
)
_LARGE_TILE = replace(
    _TILE,
    rows=8,
    columns=8,
    weight_rows=2,
    activation_bytes=1 << 11,
    weight_bytes=1 << 12,
    instruction_words=256,
)


def targets_of(board: Board) -> list[Target]:
    """Returns the targets of a board: one of each of its configurations."""
    return [
        Target(name, description, configuration, board.name, part)
        for name, description, configuration, part in board.configurations()
    ]


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _simulated("sim-small", "simulated, 64 multipliers", 1, 8, 8),
        _simulated("sim-medium", "simulated, 256 multipliers; the default", 1, 16, 16),
        _logarithmic("sim-lns8", "lns1+3+4"),
        _logarithmic("sim-lns7", "lns1+3+3"),
        _logarithmic("sim-lns6", "lns1+3+2"),
        _logarithmic("sim-lns5", "lns1+2+2"),
        _training("sim-training", 8, 8, "simulated, 64 multipliers, for training"),
        _training("sim-training-large", 32, 16, "simulated, 512 multipliers, for training"),
        _training("sim-training-sdram", 8, 8, "as sim-training, with SDRAM", _SDRAM),
        _training("sim-training-large-sdram", 32, 16, "as sim-training-large, with SDRAM", _SDRAM),
        _training(
            "sim-training-large-ddr3",
            32,
            16,
            "as sim-training-large, with DDR3",
            _DDR3,
            _DDR3_CLOCK,
        ),
        Target("asic-4x4", "16 multipliers for a small tile of a shuttle", _TILE),
        Target("asic-8x8", "64 multipliers for a tile with memory macros", _LARGE_TILE),
        *(target for board in all_boards().values() for target in targets_of(board)),
    )
}
"""Every named target; ``find_target`` also takes shapes and number formats."""


def find_target(name: str) -> Target:
    """The target of a name, of a shape ``PxRxC``, or of a logarithmic number format.

    Parameters
    ----------
    name : str
        A key of ``TARGETS``; or, for simulation with the default memories, pixels x rows x columns
        such as ``1x16x16``, or ``sim-`` and a number format such as ``sim-lns1+4+3``.

    Returns
    -------
    Target

    Raises
    ------
    TargetError
        If there is no such target, or shape or number format break a rule of the configuration.
    """
    if name in TARGETS:
        return TARGETS[name]
    if logarithmic := _LOGARITHMIC.fullmatch(name):
        try:
            return _logarithmic(name, logarithmic[1])
        except ValueError as error:
            raise TargetError(f"target {name!r}: {error}") from None
    shape = _SHAPE.fullmatch(name)
    if shape is None:
        raise TargetError(
            f"target must be one of {', '.join(TARGETS)} or a shape PxRxC such as 1x16x16,"
            f" not {name!r}"
        )
    pixels, rows, columns = map(int, shape.groups())
    try:
        return _simulated(name, f"simulated, {name}", pixels, rows, columns)
    except ValueError as error:
        raise TargetError(f"target {name!r}: {error}") from None


def describe(configuration: Configuration) -> str:
    """Returns the names of the targets with this hardware, and its shape, as people read them."""
    names = [
        target.name
        for target in TARGETS.values()
        if target.configuration.fingerprint == configuration.fingerprint
    ]
    return f"{', '.join(names)} ({configuration.shape})" if names else configuration.shape
