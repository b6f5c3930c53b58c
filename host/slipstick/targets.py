"""The targets: what can be simulated and what can be built, by name."""

import re
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from .errors import TargetError

DEFAULT_TARGET = "sim-medium"

_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})")


@dataclass(frozen=True)
class Part:
    """An FPGA as place and route knows it.

    Parameters
    ----------
    device : str
        The vendor's name without package and speed.
    package : str
    speed : int
        Speed grade; on ECP5 6 is the slowest.
    luts : int
        Look-up tables of 4 inputs, as many as the vendor sells.
    block_rams : int
        On ECP5, EBRs of 18 kbit: 2 KiB in bytes of 8 bits.
    multipliers : int
        On ECP5, 18 x 18-bit multipliers.
    large_ram_bytes : int
        RAM of larger blocks besides: on iCE40UP, 4 SPRAMs of 32 KiB.
    """

    device: str
    package: str
    speed: int
    luts: int
    block_rams: int
    multipliers: int
    large_ram_bytes: int = 0


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
        One of ``slipstick_rtl.boards.registry``; None: the target is only simulated.
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
    return min(64, rows, columns, max(4, pixels * columns // 2))


def _simulated(name: str, description: str, pixels: int, rows: int, columns: int) -> Target:
    configuration = Configuration(
        pixels=pixels, rows=rows, columns=columns, lanes=_lanes(pixels, rows, columns)
    )
    return Target(name, description, configuration)


_ULX3S_25F = Target(
    "ulx3s-25f",
    "ULX3S with the LFE5U-25F: 64 multipliers, memories of 16 KiB",
    # the post-processor takes 4 DSP blocks a lane: 16 of 28, so one column of 8 can have some
    Configuration(
        rows=8,
        columns=8,
        lanes=4,
        multiplier="lut",
        dsp_columns=1,
        activation_bytes=1 << 14,
        weight_bytes=1 << 14,
        accumulator_depth=256,
        parameter_words=256,
        instruction_words=1 << 10,
        payload_bytes=512,
    ),
    "ulx3s-25f",
    Part("LFE5U-25F", "CABGA381", 6, 24_288, 56, 28),
)

_ULX3S_85F = Target(
    "ulx3s-85f",
    "ULX3S with the LFE5U-85F: 256 multipliers, 128 KiB of weights",
    # 32 of 156 DSP blocks in the post-processor, 112 in the array
    Configuration(
        rows=16,
        columns=16,
        lanes=8,
        multiplier="lut",
        dsp_columns=7,
        activation_bytes=1 << 16,
        weight_bytes=1 << 17,
        parameter_words=512,
        instruction_words=1 << 13,
    ),
    "ulx3s-85f",
    Part("LFE5U-85F", "CABGA381", 6, 83_640, 208, 156),
)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _simulated("sim-small", "simulated, 64 multipliers", 1, 8, 8),
        _simulated("sim-medium", "simulated, 256 multipliers; the default", 1, 16, 16),
        _ULX3S_25F,
        _ULX3S_85F,
    )
}
"""Every named target; ``find_target`` also takes shapes."""


def find_target(name: str) -> Target:
    """The target of a name, or of a shape ``PxRxC`` with the default memories.

    Parameters
    ----------
    name : str
        A key of ``TARGETS``, or pixels x rows x columns such as ``1x16x16``, for simulation.

    Returns
    -------
    Target

    Raises
    ------
    TargetError
        If there is no such target, or the shape breaks a rule of the configuration.
    """
    if name in TARGETS:
        return TARGETS[name]
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
