"""Checks that a configuration fits a chip, before an hour of place and route is spent."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.phy.wire import Wire

from ..errors import TargetError
from ..targets import Target
from .area import build_memories, post_multipliers
from .place_and_route import Layout
from .toolchains import Toolchain

_WORD_BYTES = 4

_BLOCK_BYTES = 2048 * 9 // 8
"""Bytes of a block RAM of 18 kbit."""


def check_capacity(
    target: Target,
    part: Part,
    toolchain: Toolchain,
    wire: Wire | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Compares what the configuration says with what the chip has, before anything is built.

    ``wire`` is the board's, if that is known, and ``options`` are what the board gives it.

    Raises
    ------
    TargetError
        If the memories or the multipliers alone are more than the chip has.
    """
    configuration = target.configuration
    memories = {
        "activations": configuration.activation_bytes,
        "weights": configuration.weight_bytes,
        "instructions": configuration.instruction_words * _WORD_BYTES,
    }
    needed = sum(memories.values())
    available = part.block_rams * toolchain.block_bytes + part.large_ram_bytes
    if needed > available:
        parts = ", ".join(f"{name} {size:,}" for name, size in memories.items())
        raise TargetError(
            f"target {target.name} does not fit on {part.device}: its memories must be within"
            f" {available:,} bytes of RAM on the chip, not {needed:,} ({parts})"
        )
    multipliers = {"array": configuration.element_multipliers}
    if not configuration.traits.requantises_in_array:
        multipliers["post-processor"] = post_multipliers(configuration)
    most = part.multipliers * toolchain.products
    if sum(multipliers.values()) > most:
        parts = ", ".join(f"{name} {count}" for name, count in multipliers.items())
        raise TargetError(
            f"target {target.name} does not fit on {part.device}: its multipliers must be within"
            f' {most}, not {sum(multipliers.values())} ({parts}); multiplier "lut" takes look-up'
            " tables instead"
        )
    blocks = {}
    if not configuration.traits.shares_memory:
        blocks = build_memories(configuration, part, wire, options)
    if toolchain.block_bytes == _BLOCK_BYTES and sum(blocks.values()) > part.block_rams:
        parts = ", ".join(f"{name} {count}" for name, count in blocks.items())
        raise TargetError(
            f"target {target.name} does not fit on {part.device}: its memories must be within"
            f" {part.block_rams} block RAMs, not {sum(blocks.values())} ({parts})"
        )


def check_netlist(
    netlist: Mapping[str, Any], target: Target, part: Part, toolchain: Toolchain
) -> None:
    """Counts what synthesis made.

    Raises
    ------
    TargetError
        If the design surely takes more of anything than the chip has.
    """
    check_needs(needs(netlist, toolchain), target, part)


def check_usage(layout: Layout, target: Target, part: Part, toolchain: Toolchain) -> None:
    """Compares a finished layout with what the vendor sells, which may be less than the die has."""
    check_needs({name: entry.used for name, entry in layout.usage.items()}, target, part)


def needs(netlist: Mapping[str, Any], toolchain: Toolchain) -> dict[str, int]:
    """The least that a netlist takes, by the names of the toolchain's resources."""
    cells = count_cells(netlist)
    return {
        name: sum(cells[kind] * count for kind, count in kinds.items())
        for name, kinds in toolchain.cells.items()
    }


def count_registers(netlist: Mapping[str, Any], toolchain: Toolchain) -> int:
    """The flip-flops of a netlist, which nextpnr does not tell of every family."""
    found = count_cells(netlist)
    return sum(count for kind, count in found.items() if kind.startswith(toolchain.registers))


def count_cells(netlist: Mapping[str, Any]) -> Counter[str]:
    """Counts the cells of each type; models of the family's cells are no part of it."""
    return Counter(
        cell["type"]
        for module in netlist["modules"].values()
        if not {"blackbox", "whitebox"} & set(module.get("attributes", {}))
        for cell in module.get("cells", {}).values()
    )


def check_needs(needed: Mapping[str, int], target: Target, part: Part) -> None:
    """Compares counts of resources, "lut", "dsp" and "bram", with what the chip has.

    Raises
    ------
    TargetError
        If any of them is more.
    """
    lacking = overfull(needed, part)
    if lacking:
        raise TargetError(f"target {target.name} does not fit on {part.device}: it needs {lacking}")


def overfull(needed: Mapping[str, int], part: Part, share: float = 1.0) -> str:
    """Lists resources that a share of a chip lacks, as ``57 of 56 bram``; empty if it has all."""
    available = {"lut": part.luts, "dsp": part.multipliers, "bram": part.block_rams}
    return ", ".join(
        f"{needed[name]:,} of {count:,} {name}"
        for name, count in available.items()
        if needed.get(name, 0) > share * count
    )
