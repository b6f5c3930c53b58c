"""The targets: what can be simulated and what can be built, by name."""

import re
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration

from ..errors import TargetError
from .fpga_parts import (
    ECPIX5_45F,
    ECPIX5_85F,
    ICEBREAKER,
    ICESUGAR_PRO,
    ORANGECRAB_85F,
    TANG_NANO_9K,
    TANG_NANO_20K,
    ULX3S_12F,
    ULX3S_25F,
    ULX3S_45F,
    ULX3S_85F,
    Part,
)

DEFAULT_TARGET = "sim-medium"

_MOST_WEIGHT_ROWS = 4
"""Of simulated targets: fully connected layers, which wait for weights, need that many."""

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
        pixels=pixels,
        rows=rows,
        columns=columns,
        lanes=_lanes(pixels, rows, columns),
        weight_rows=max(1, min(_MOST_WEIGHT_ROWS, rows // _MOST_WEIGHT_ROWS)),
    )
    return Target(name, description, configuration)


def _logarithmic(name: str, number_format: str) -> Target:
    """The default target's array and memories, with another number format."""
    plain = _simulated(name, "", 1, 16, 16)
    configuration = replace(plain.configuration, number_format=number_format)
    return Target(name, f"simulated, 256 elements of {number_format}", configuration)


_SMALL_ECP5 = Configuration(
    # the post-processor takes 3 DSP blocks a lane, 12 of 28; of the array's rows those of the upper
    # half can work on vectors of their own if the lower half is not all in DSP blocks
    rows=8,
    columns=8,
    lanes=4,
    multiplier="lut",
    packed_rows=3,
    activation_bytes=1 << 14,
    weight_bytes=1 << 15,
    weight_rows=2,
    accumulator_depth=256,
    instruction_words=1 << 10,
    payload_bytes=512,
)
_TINY_ECP5 = replace(
    _SMALL_ECP5,
    rows=4,
    columns=4,
    packed_rows=4,
    activation_bytes=1 << 13,
    weight_bytes=1 << 14,
    weight_rows=1,
)
_MEDIUM_ECP5 = Configuration(
    # 24 of 72 DSP blocks in the post-processor, 28 in the array: nine rows without take the taps of
    # depthwise kernels
    rows=16,
    columns=8,
    lanes=8,
    multiplier="lut",
    packed_rows=7,
    activation_bytes=1 << 15,
    weight_bytes=1 << 17,
    weight_rows=2,
    halved_tables=1,
    instruction_words=1 << 11,
)
_LARGE_ECP5 = Configuration(
    # 24 of 156 DSP blocks in the post-processor, 128 in the array. With 16 lanes networks take a
    # sixth to a quarter fewer cycles, but no router has found the wires for them
    rows=32,
    columns=16,
    lanes=8,
    multiplier="lut",
    packed_rows=16,
    activation_bytes=1 << 16,
    weight_bytes=1 << 18,
    weight_rows=4,
    ninth_bits=1,
    instruction_words=1 << 11,
)
_LARGE_LOGARITHMIC = replace(
    # no DSP block, and elements of 54 look-up tables
    _LARGE_ECP5,
    number_format="lns1+3+2",
    multiplier="plain",
    packed_rows=0,
)
_UP5K = Configuration(
    # 16 products in 8 DSP blocks; the three memories fill the 128 KiB of SPRAM: room for all of
    # ResNet-8, whose 77 KiB of weights and three tables of 2 KiB are resident
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=36 << 10,
    weight_bytes=84 << 10,
    accumulator_depth=256,
    parameter_words=512,
    instruction_words=1 << 11,
    payload_bytes=64,
)
_GW2A = replace(
    # all 46 block RAMs: 32 hold the three memories, 8 the accumulators, 5 the parameters, and one
    # the UART's queue; room for the key-word network DS-CNN
    _UP5K,
    rows=4,
    activation_bytes=16 << 10,
    weight_bytes=36 << 10,
    parameter_words=1024,
    instruction_words=3 << 10,
)
_GW1N = replace(
    # 24 of 26 block RAMs: 12 hold the three memories, 8 the accumulators, 3 the parameters
    _UP5K,
    activation_bytes=4 << 10,
    weight_bytes=13_824,
    parameter_words=256,
    instruction_words=1664,
)

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


def _board(
    name: str,
    description: str,
    configuration: Configuration,
    part: Part,
    clock_hz: int,
    board: str | None = None,
) -> Target:
    configuration = replace(configuration, clock_hz=clock_hz)
    return Target(name, description, configuration, board or name, part)


_BOARDS = (
    _board("ulx3s-12f", "ULX3S with the LFE5U-12F", _TINY_ECP5, ULX3S_12F, 100_000_000),
    _board("ulx3s-25f", "ULX3S with the LFE5U-25F", _SMALL_ECP5, ULX3S_25F, 100_000_000),
    _board("ulx3s-45f", "ULX3S with the LFE5U-45F", _MEDIUM_ECP5, ULX3S_45F, 100_000_000),
    _board(
        "ulx3s-85f",
        "ULX3S with the LFE5U-85F: ResNet-8 on the chip",
        _LARGE_ECP5,
        ULX3S_85F,
        100_000_000,
    ),
    _board(
        "ulx3s-85f-lns6",
        "ULX3S with the LFE5U-85F: logarithms of 6 bits",
        _LARGE_LOGARITHMIC,
        ULX3S_85F,
        80_000_000,
        board="ulx3s-85f",
    ),
    # 100 MHz is nothing that the PLL makes of 48 MHz
    _board("orangecrab-85f", "OrangeCrab with the 85F", _LARGE_ECP5, ORANGECRAB_85F, 96_000_000),
    _board("ecpix5-45f", "ECPIX-5 with the 45F", _MEDIUM_ECP5, ECPIX5_45F, 100_000_000),
    _board("ecpix5-85f", "ECPIX-5 with the 85F", _LARGE_ECP5, ECPIX5_85F, 100_000_000),
    _board("icebreaker", "iCEBreaker: ResNet-8 in SPRAM", _UP5K, ICEBREAKER, 24_000_000),
    _board("tang-nano-9k", "Tang Nano 9K", _GW1N, TANG_NANO_9K, 27_000_000),
    _board("tang-nano-20k", "Tang Nano 20K: DS-CNN on the chip", _GW2A, TANG_NANO_20K, 54_000_000),
    _board("icesugar-pro", "iCESugar-Pro with the 25F", _SMALL_ECP5, ICESUGAR_PRO, 100_000_000),
)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _simulated("sim-small", "simulated, 64 multipliers", 1, 8, 8),
        _simulated("sim-medium", "simulated, 256 multipliers; the default", 1, 16, 16),
        _logarithmic("sim-lns8", "lns1+3+4"),
        _logarithmic("sim-lns7", "lns1+3+3"),
        _logarithmic("sim-lns6", "lns1+3+2"),
        _logarithmic("sim-lns5", "lns1+2+2"),
        Target("asic-4x4", "16 multipliers for a small tile of a shuttle", _TILE),
        Target("asic-8x8", "64 multipliers for a tile with memory macros", _LARGE_TILE),
        *_BOARDS,
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
