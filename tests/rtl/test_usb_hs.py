"""USB at high speed: descriptors, clocks of the ULPI chip, and the supplies that a board sets."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.sim import Simulator
from echo_core import Echo
from slipstick_rtl.boards.butterstick import SUPPLIES
from slipstick_rtl.config import Configuration
from slipstick_rtl.fpga.ecp5.clock import Ecp5Pll, find_pll
from slipstick_rtl.phy.interface import make_phy
from slipstick_rtl.phy.registry import find_wire
from slipstick_rtl.phy.usb.bulk_descriptors import bulk_descriptors
from slipstick_rtl.phy.usb.descriptors import UsbIdentity
from slipstick_rtl.phy.usb.high_speed import INTERFACE_KIND
from slipstick_rtl.phy.usb.high_speed_port import UsbHighSpeedPort
from slipstick_rtl.toplevel import board_top
from slipstick_rtl.toplevel.adjustable_supplies import COUNTER_BITS, SupplyControl
from slipstick_rtl.toplevel.design import write_board_design
from slipstick_rtl.toplevel.registry import find_board
from slipstick_rtl.toplevel.supplies import AdjustableSupplies
from slipstick_sim.benches.drivers.ulpi_chip import UlpiBus
from slipstick_sim.toolchain import convert_to_rtlil

CONFIGURATION = Configuration(rows=4, columns=4, lanes=4, clock_hz=100_000_000)
DEVICE, CONFIGURED, QUALIFIER = 1, 2, 6


def test_the_descriptors_are_those_of_a_bulk_device() -> None:
    descriptors = bulk_descriptors(UsbIdentity())
    found = {(int(kind), index): bytes(text) for kind, index, text in descriptors}
    device, configuration = found[DEVICE, 0], found[CONFIGURED, 0]
    assert device[2:4] == bytes([0x00, 0x02]) and device[7:12] == bytes([64, 9, 0x12, 1, 0])
    assert int.from_bytes(configuration[2:4], "little") == len(configuration) == 32
    assert configuration[14:17] == bytes(INTERFACE_KIND)
    for endpoint, address in ((configuration[18:25], 0x81), (configuration[25:32], 0x01)):
        assert endpoint[2:6] == bytes([address, 2, 0x00, 0x02])
    assert found[QUALIFIER, 0] == bytes([10, 6, 0, 2, 0, 0, 0, 64, 0, 0])


def test_the_port_elaborates_without_a_warning() -> None:
    """Warnings are errors here: luna's are contained."""
    port = UsbHighSpeedPort(identity=UsbIdentity(), reset_cycles=1)
    assert "module \\port" in convert_to_rtlil(UlpiBus(port), "port")
    with pytest.raises(ValueError, match="reset_cycles must be at least 1, not 0"):
        UsbHighSpeedPort(identity=UsbIdentity(), reset_cycles=0)


def test_the_identity_is_the_configurations() -> None:
    phy = make_phy(find_wire("usb-hs"), CONFIGURATION)
    assert phy.identity.serial_number == CONFIGURATION.fingerprint


def test_the_clock_that_a_chip_takes() -> None:
    wire = find_wire("usb-hs")
    assert find_pll(30_000_000, wire.domains[0].hertz) == Ecp5Pll(1, 2, 10)
    with pytest.raises(ValueError, match="must be within 8..400 MHz, not 3 MHz"):
        wire.make_clocks("ECP5", 3_000_000, ("clk",))


@pytest.mark.parametrize(
    ("name", "net", "cells"),
    [
        ("ecpix5-85f", "line.ulpi_clock", []),
        ("butterstick", "line.clocks.ulpi_60_mhz", ["ODDRX1F"]),
    ],
)
def test_the_clock_has_its_constraint_and_a_name_that_yosys_keeps(
    name: str, net: str, cells: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipstick_rtl.toplevel.board_top.Accelerator", Echo)
    monkeypatch.setattr("slipstick_rtl.toplevel.design.describe", lambda accelerator: {})
    constraints = write_board_design(name, CONFIGURATION, "usb-hs", 105.0, tmp_path)
    assert f'FREQUENCY NET "{net}" 60000000.0 HZ' in constraints
    design = (tmp_path / "design.il").read_text()
    wire = net.rpartition(".")[2]
    assert re.search(
        rf"attribute \\keep [^\n]*\n(?:\s*attribute [^\n]*\n)*\s*wire [^\n]*\\{wire}\n", design
    )
    for cell in cells:
        assert f"cell \\{cell} " in design


@pytest.mark.parametrize(("volts", "duty"), [(1.2, 0.902), (1.8, 0.671), (3.3, 0.095)])
def test_a_pins_mean_voltage_makes_the_supply(volts: float, duty: float) -> None:
    """As the example in amaranth-boards computes it."""
    assert SUPPLIES.duty(volts) == pytest.approx(duty, abs=1e-3)


def test_a_voltage_that_the_regulators_cannot_make() -> None:
    with pytest.raises(ValueError, match="volts must be ones .* make, not 4.2"):
        replace(SUPPLIES, volts=(1.2, 4.2, 3.3))


def test_the_pins_settle_before_the_regulators_start() -> None:
    supplies: AdjustableSupplies = replace(SUPPLIES, volts=(1.2, 3.3), filter_farads=1e-9)
    clock_hz = 10_000_000
    control = SupplyControl(supplies=supplies, clock_hz=clock_hz)
    high = [0, 0]

    async def bench(ctx: Any) -> None:
        await ctx.tick()
        for _ in range(1 << COUNTER_BITS):
            for place in range(2):
                high[place] += ctx.get(control.pdm[place])
            await ctx.tick()
        spent = (1 << COUNTER_BITS) + 1
        while not ctx.get(control.enable):
            await ctx.tick()
            spent += 1
        assert spent == pytest.approx(supplies.settling_seconds * clock_hz, abs=3)

    simulator = Simulator(control)
    simulator.add_clock(1 / clock_hz)
    simulator.add_testbench(bench)
    simulator.run()
    assert high == [round(supplies.duty(volts) * (1 << COUNTER_BITS)) for volts in (1.2, 3.3)]


def test_the_chip_is_held_in_reset_until_its_supply_is_there() -> None:
    board = find_board("butterstick")
    options = board.find_pins("usb-hs").options
    assert SUPPLIES.ready_seconds < options["reset_milliseconds"] / 1000
    assert board_top.find_clocking(board.part)
