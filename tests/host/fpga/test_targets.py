"""Targets by name and by shape."""

from dataclasses import replace

import pytest
from slipstick.errors import TargetError
from slipstick.fpga.area import block_rams
from slipstick.fpga.budget import check_capacity
from slipstick.fpga.clocks import at_clock, highest_clock
from slipstick.fpga.toolchains import find_toolchain
from slipstick.targets import DEFAULT_TARGET, TARGETS, Target, find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.phy.registry import find_wire

BLOCK_RAM_BYTES = 2048


def test_the_default_target_is_the_default_configuration() -> None:
    target = find_target(DEFAULT_TARGET)
    assert target.configuration == Configuration(weight_rows=4)
    assert target.board is None and target.part is None


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_is_found_by_its_name(name: str) -> None:
    target = find_target(name)
    assert target is TARGETS[name]
    assert target.name == name
    assert target.description
    assert (target.board is None) == (target.part is None)


ON_ECP5 = [t for t in TARGETS.values() if t.part and t.part.device.startswith("LFE5")]


def test_memories_fit_the_up5k() -> None:
    target = find_target("icebreaker")
    c, part = target.configuration, target.part
    assert part is not None and c.pixels == 1 and c.macs_per_cycle == 16
    instructions = 4 * c.instruction_words
    assert c.activation_bytes + c.weight_bytes + instructions <= part.large_ram_bytes
    # of 256 x 16 bits for the accumulators, 512 x 8 for the rest; payload, and the UART's queue
    accumulators = 2 * c.columns * -(-c.accumulator_depth // 256)
    parameters = c.parameter_bytes * -(-c.parameter_words // 512)
    assert accumulators + parameters + 2 <= part.block_rams


@pytest.mark.parametrize(("name", "unused"), [("tang-nano-9k", 2), ("tang-nano-20k", 0)])
def test_memories_fit_a_gowin(name: str, unused: int) -> None:
    target = find_target(name)
    c, part = target.configuration, target.part
    assert part is not None and c.traits.shares_memory and c.element_multipliers <= part.multipliers
    store = c.activation_bytes + c.weight_bytes + 4 * c.instruction_words
    # of 512 x 32, 1024 x 16 or 2048 x 8 bits; the UART's queue has one to itself
    assert store % (4 * BLOCK_RAM_BYTES) == 0
    accumulators = c.columns * -(-c.accumulator_depth // 512)
    parameters = -(-c.parameter_bytes // (4 if c.parameter_words <= 512 else 2))
    assert store // BLOCK_RAM_BYTES + accumulators + parameters + 1 == part.block_rams - unused


@pytest.mark.parametrize("target", ON_ECP5, ids=lambda t: t.name)
def test_memories_fit_the_part(target: Target) -> None:
    assert isinstance(target.part, Part)
    assert target.configuration.pixels == 1
    assert sum(block_rams(target.configuration).values()) <= target.part.block_rams


@pytest.mark.parametrize(
    "target", [target for target in TARGETS.values() if target.part], ids=lambda t: t.name
)
def test_boards_are_within_the_budget_that_refuses_others(target: Target) -> None:
    assert target.part is not None
    toolchain = find_toolchain(target.part)
    check_capacity(target, target.part, toolchain)
    few = replace(target.part, multipliers=4)
    if target.configuration.logarithmic is not None:
        check_capacity(target, few, toolchain)
        return
    with pytest.raises(TargetError, match=r"multipliers must be within .* \(array "):
        check_capacity(target, few, toolchain)


@pytest.mark.parametrize("wire", ["rgmii", "rmii"])
def test_every_ecp5_has_block_rams_for_ethernet(wire: str) -> None:
    found = find_wire(wire)
    greedy = replace(found, block_rams=lambda options: 999, block_rams_or_luts=0)
    for target in ON_ECP5:
        assert target.part is not None
        toolchain = find_toolchain(target.part)
        check_capacity(target, target.part, toolchain, found)
        with pytest.raises(TargetError, match=r"must be within \d+ block RAMs, .* wire 999\)"):
            check_capacity(target, target.part, toolchain, greedy)


@pytest.mark.parametrize(
    ("name", "lanes"),
    [("1x16x16", 8), ("2x16x16", 16), ("1x8x8", 4), ("1x4x4", 4), ("16x64x64", 64)],
)
def test_a_shape_is_a_target(name: str, lanes: int) -> None:
    target = find_target(name)
    assert target.name == target.configuration.shape == name
    assert target.configuration.lanes == lanes
    assert target.configuration.weight_bytes == Configuration().weight_bytes


@pytest.mark.parametrize(
    ("name", "number_format"),
    [("sim-lns8", "lns1+3+4"), ("sim-lns5", "lns1+2+2"), ("sim-lns1+4+3", "lns1+4+3")],
)
def test_logarithms_on_the_default_target(name: str, number_format: str) -> None:
    configuration = find_target(name).configuration
    assert configuration.number_format == number_format
    assert replace(configuration, number_format="int8") == find_target(DEFAULT_TARGET).configuration


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ulx4m", r"one of sim-small, .* or a shape PxRxC such as 1x16x16, not 'ulx4m'"),
        ("", "target must be one of .* not ''"),
        ("1x16", "not '1x16'"),
        ("sim-lns4", "target must be one of .* not 'sim-lns4'"),
        ("sim-lns1+4+4", "target 'sim-lns1.4.4': number_format: an array's .* not 9"),
        ("1x20x16", "target '1x20x16': rows must be a power of two, or three times one, not 20"),
        ("0x16x16", "target '0x16x16': pixels must be a power of two, not 0"),
        ("1x128x16", r"target '1x128x16': rows must be within 4\.\.64, not 128"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        find_target(name)


@pytest.mark.parametrize("name", ["ulx3s-25f", "ecpix5-85f", "icebreaker", "tang-nano-9k"])
def test_the_highest_clock_is_one_that_the_pll_makes(name: str) -> None:
    target = TARGETS[name]
    limit = 58_900_000
    clock = highest_clock(target, limit)
    assert clock is not None and 0.95 * limit <= clock <= limit
    assert at_clock(target, clock).configuration.clock_hz == clock
    # and none between it and the limit; some PLLs make all, as far as an oscillator is exact
    if limit - clock < limit // 1000:
        return
    with pytest.raises(TargetError, match="must be one that the PLL of"):
        at_clock(target, (clock + limit) // 2)


def test_the_highest_clock_makes_the_rate_of_the_uart() -> None:
    target = find_target("ulx3s-25f")
    assert (highest_clock(target, 14e6) or 0) > 13.9e6
    # four cycles per bit, and 2 % off
    assert 12e6 <= (highest_clock(target, 14e6, baud=3_000_000) or 0) <= 12.24e6
    assert highest_clock(target, 11e6) is not None
    assert highest_clock(target, 11e6, baud=3_000_000) is None


def test_a_target_without_a_board_has_no_highest_clock() -> None:
    assert highest_clock(find_target("sim-small"), 1e9) is None


def test_shapes_of_three_times_a_power_of_two_have_lanes_and_words_that_are_one() -> None:
    for shape, lanes, chains in (("1x12x16", 8, 2), ("2x12x16", 8, 2), ("1x48x16", 8, 4)):
        configuration = find_target(shape).configuration
        assert (configuration.lanes, configuration.weight_rows) == (lanes, chains)
