"""Multipliers of ECP5: every place exists once, and the core's go to them in the array's order."""

import re

import pytest
from multiplier_names import multiplier_names
from slipstick.targets import TARGETS, Target
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.ecp5 import dsp_floorplan as floorplan
from slipstick_rtl.fpga.ecp5.dsp_floorplan import multiplier_places, place_multipliers, plan

ECP5 = [
    target for target in TARGETS.values() if target.part and target.part.device.startswith("LFE5U")
]


@pytest.mark.parametrize(
    ("device", "count"),
    [("LFE5U-12F", 28), ("LFE5U-25F", 28), ("LFE5U-45F", 72), ("LFE5UM5G-85F", 156)],
)
def test_every_place_of_a_device_is_there_once(device: str, count: int) -> None:
    places = [place for row in multiplier_places(device) for place in row]
    assert len(set(places)) == len(places) == count


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ValueError, match="device must be an ECP5 of 12F, .*, not 'LFE5U-95F'"):
        multiplier_places("LFE5U-95F")


@pytest.mark.parametrize("target", ECP5, ids=lambda target: target.name)
def test_every_multiplier_of_a_target_has_a_place_of_its_own(target: Target) -> None:
    assert target.part is not None
    names = multiplier_names(target.configuration)
    places = plan(names, target.part.device)
    assert set(places) == set(names)
    assert len(set(places.values())) == len(names)


def test_columns_stand_together_and_elements_in_their_order() -> None:
    configuration = Configuration(multiplier="lut", packed_rows=11)
    places = plan(multiplier_names(configuration), "LFE5U-85F")
    for pair in range(configuration.columns // 2):
        sites = [
            re.fullmatch(
                r"X(\d+)/Y(\d+)/.*",
                places[f"core.matrix.array.pair_{row}_{pair}.multiplier.product_0.block"],
            )
            for row in range(configuration.packed_rows)
        ]
        found = [(int(site[1]), int(site[2])) for site in sites if site]
        assert len({y for _, y in found}) == 1
        assert [x for x, _ in found] == sorted(x for x, _ in found)
        # a block has four of them, and is nine tiles wide
        assert found[-1][0] - found[0][0] <= 9 * (configuration.packed_rows / 4 + 1) + 2


def test_what_does_not_fit_is_left_to_place_and_route() -> None:
    assert plan(multiplier_names(Configuration()), "LFE5U-85F") == {}


def test_only_the_core_s_multipliers_are_placed() -> None:
    netlist = {
        "modules": {
            "top": {
                "cells": {
                    "core.matrix.array.element_0_0.multiplier.product_0.block": {
                        "type": floorplan.MULTIPLIER,
                        "connections": {},
                    },
                    "filter.block": {"type": floorplan.MULTIPLIER},
                    "core.matrix.array.element_0_0.multiplier.product_0.other": {"type": "LUT4"},
                }
            },
            "empty": {},
        }
    }
    assert place_multipliers(netlist, "LFE5U-25F") == 1
    cells = netlist["modules"]["top"]["cells"]
    assert [cell.get("attributes") for cell in cells.values()] == [
        {"BEL": "X4/Y13/MULT18_0"},
        None,
        None,
    ]


def test_a_block_gets_each_control_once() -> None:
    names = multiplier_names(
        Configuration(rows=8, columns=8, lanes=4, multiplier="lut", packed_rows=3)
    )
    controls = {"CE0": ["1"], "RST0": ["0"]}
    cells = {
        name: {"type": floorplan.MULTIPLIER, "connections": {"CLK0": [2], **controls}}
        for name in names
    }
    place_multipliers({"modules": {"top": {"cells": cells}}}, "LFE5U-25F")
    wired: dict[str, set[tuple[int, int]]] = {"CE0": set(), "RST0": set()}
    blocks = set()
    for name in names:
        cell = cells[name]
        x, _, kind = cell["attributes"]["BEL"].split("/")
        tile = int(kind[-1])
        block = int(x[1:]) - tile
        blocks.add((block, tile // 4))
        for port, halves in wired.items():
            if port in cell["connections"]:
                group = (block, tile // 4) if port == "CE0" else (block, 0)
                assert group not in halves
                halves.add(group)
                # by a table of the block's own
                (net,) = cell["connections"][port]
                driver = cells[f"constant_{controls[port][0]}_X{block}_Y13"]
                assert driver["connections"]["Z"] == [net]
                assert driver["parameters"]["INIT"] == controls[port][0] * 16
    assert wired["CE0"] == blocks
    assert {block for block, _ in wired["RST0"]} == {block for block, _ in blocks}
