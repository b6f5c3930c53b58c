"""Block RAMs of ECP5: every place exists once, and each memory stands near what it serves."""

import pytest
from multiplier_names import multiplier_names
from slipstick.targets import TARGETS
from slipstick_rtl.fpga.ecp5.bram_floorplan import memory_places, place_memories, plan_memories
from slipstick_rtl.fpga.ecp5.dsp_floorplan import plan

DEVICE = "LFE5U-85F"
CONFIGURATION = TARGETS["ulx3s-85f"].configuration


def _memories() -> list[str]:
    """Block RAMs of the 85F as synthesis names them."""
    return [
        *(
            f"core.weights.block_{chain}_{first}.memory_{half}.0.{byte}"
            for chain in range(4)
            for first in range(0, 16, 4)
            for half in range(2)
            for byte in range(4)
        ),
        *(f"core.accumulators.column_{j}.memory_{k}.0.0" for j in range(16) for k in range(2)),
        *(f"core.activations.bank_{bank}.0.0" for bank in range(32)),
        *(f"core.post.lanes.table_{table}.memory.0.0" for table in range(8)),
        *(f"core.sequencer.memory.memory.0.{k}" for k in range(4)),
        "core.link.receiver.ring.memory.0.0",
        "line.uart.queue.queue.storage.0.0",
    ]


def _point(place: str) -> tuple[int, int]:
    x, y, _ = place.split("/")
    return int(x[1:]), int(y[1:])


def test_every_place_of_the_device_is_there_once() -> None:
    places = memory_places(DEVICE)
    assert len(places) == len(set(places.values())) == 208


def test_a_device_without_a_list_has_no_places_and_an_unknown_one_is_refused() -> None:
    assert memory_places("LFE5U-25F") == {}
    with pytest.raises(ValueError, match="device must be an ECP5 of 12F, .*, not 'LFE5U-95F'"):
        memory_places("LFE5U-95F")


def test_every_memory_has_a_place_of_its_own() -> None:
    memories = _memories()
    places = plan_memories(memories, plan(multiplier_names(CONFIGURATION), DEVICE), DEVICE)
    assert set(places) == set(memories)
    assert len(set(places.values())) == len(memories)
    assert set(places.values()) <= set(memory_places(DEVICE))


def test_weights_stand_near_their_columns() -> None:
    multipliers = plan(multiplier_names(CONFIGURATION), DEVICE)
    places = plan_memories(_memories(), multipliers, DEVICE)
    # chains whose rows are packed; what is left of the places goes to the others
    for chain in range(2):
        for column in range(16):
            of_column = [
                _point(place)
                for name, place in multipliers.items()
                if f"_{column // 2}.mult" in name
            ]
            first, byte = column // 4 * 4, column % 4
            x, y = _point(places[f"core.weights.block_{chain}_{first}.memory_0.0.{byte}"])
            assert min(abs(x - at) for at, _ in of_column) <= 9
            assert min(abs(y - at) for _, at in of_column) <= 24


def test_what_does_not_fit_is_left_to_place_and_route() -> None:
    multipliers = plan(multiplier_names(CONFIGURATION), DEVICE)
    assert plan_memories([*_memories(), "a", "b", "c"], multipliers, DEVICE) == {}
    assert plan_memories(["line.uart.queue.queue.storage.0.0"], {}, DEVICE) == {}


def test_without_multipliers_columns_stand_abreast() -> None:
    places = plan_memories(_memories(), {}, DEVICE)
    assert set(places) == set(_memories()) and len(set(places.values())) == len(places)
    left, right = (_point(places[f"core.accumulators.column_{j}.memory_0.0.0"])[0] for j in (0, 15))
    assert left < 30 < 90 < right
    for chain in range(2):
        for j in range(1, 16, 4):
            x, _ = _point(places[f"core.weights.block_{chain}_{j - 1}.memory_0.0.1"])
            assert abs(x - (left + (j + 0.5) / 16 * (right - left))) < 25


def test_only_block_rams_are_placed() -> None:
    cells = {
        **{
            name: {"type": "MULT18X18D", "connections": {}}
            for name in multiplier_names(CONFIGURATION)
        },
        **{name: {"type": "DP16KD"} for name in _memories()},
        "core.other": {"type": "LUT4"},
    }
    netlist = {"modules": {"top": {"cells": cells}, "empty": {}}}
    assert place_memories(netlist, DEVICE) == 206
    placed = {name for name, cell in cells.items() if "BEL" in cell.get("attributes", {})}
    assert placed == set(_memories())
