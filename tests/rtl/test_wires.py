"""Wires: their records, the one PHY interface, and an imaginary wire with a clock of its own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import io, stream, wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from echo_core import Echo
from slipstick.devices.kinds import KINDS
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.interface import make_phy, pin_members
from slipstick_rtl.phy.registry import all_wires, find_wire
from slipstick_rtl.phy.wire import BOTH, INPUT, OUTPUT, Domain, Pin, Wire
from slipstick_rtl.toplevel import board_top
from slipstick_rtl.toplevel.board import Board, Light, Variant, WirePins
from slipstick_rtl.toplevel.design import TOP
from slipstick_rtl.toplevel.registry import all_boards, find_board

CONFIGURATION = Configuration(rows=4, columns=4, lanes=4, clock_hz=100_000_000)


@pytest.mark.parametrize("name", all_wires())
def test_a_phy_has_the_interface_and_the_host_a_device(name: str) -> None:
    wire = find_wire(name)
    assert wire.device in KINDS and not KINDS[wire.device].is_simulated
    phy = make_phy(wire, CONFIGURATION)
    assert set(pin_members(wire)) < set(phy.signature.members)


class Parallel(wiring.Component):
    """An imaginary PHY: eight data pins with a clock of the other end, such as ULPI has."""

    i: stream.Interface
    o: stream.Interface
    data: Any
    clk: Signal
    lost: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "clk": In(1),
                "data": Out(io.Buffer.Signature(io.Direction.Bidir, 8)),
                "lost": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = AsyncFIFOBuffered(
            width=8, depth=5, w_domain="parallel", r_domain="sync"
        )
        m.d.comb += [
            queue.w_data.eq(self.data.i),
            queue.w_en.eq(1),
            self.lost.eq(~queue.w_rdy),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
            self.i.ready.eq(1),
        ]
        m.d.parallel += [self.data.o.eq(self.data.i), self.data.oe.eq(self.data.i[0])]
        return m


PARALLEL = Wire(
    name="parallel",
    device="serial",
    pins=(Pin(name="clk", direction=INPUT), Pin(name="data", direction=BOTH, width=8)),
    phy=lambda configuration: Parallel(),
    submodule="parallel",
    faults=("lost",),
    domains=(Domain(name="parallel", hertz=60_000_000, pin="clk"),),
)


@pytest.fixture
def parallel(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The imaginary wire, registered for a test."""
    monkeypatch.setitem(all_wires(), "parallel", PARALLEL)
    monkeypatch.setattr(board_top, "Accelerator", Echo)
    return PARALLEL


def test_a_wire_with_a_clock_of_its_own_goes_on_a_board(parallel: Wire, tmp_path: Path) -> None:
    pins = {"clk": "0+", "data": "1+ 1- 2+ 2- 3+ 3- 4+ 4-"}
    connected = WirePins(wire="parallel", pins=pins, connector=("gpio", 0))
    board = replace(find_board("ulx3s-25f"), wires=(connected,))
    platform = board_top.make_platform(board)
    top = board_top.board_top(
        board=board,
        platform=platform,
        configuration=CONFIGURATION,
        link="parallel",
        asked_mhz=105.0,
    )
    files = platform.prepare(top, TOP).files
    constraints, design = files[f"{TOP}.lpf"], files[f"{TOP}.il"]
    assert 'LOCATE COMP "parallel_0__data__io[7]"' in constraints
    assert "60000000.0 HZ" in constraints
    assert "module \\slipstick.line.parallel" in design and "\\parallel_clk" in design


def test_a_phy_is_held_to_its_wire() -> None:
    wire = replace(find_wire("uart"), faults=("framing_error", "noise"))
    with pytest.raises(TypeError, match=r"PHY of wire uart must have noise as Out\(1\)"):
        make_phy(wire, CONFIGURATION)


def test_clocks_are_of_a_family() -> None:
    usb = find_wire("usb")
    with pytest.raises(ValueError, match="usb must be on an FPGA of ECP5, .* not Gowin"):
        usb.make_clocks("Gowin", 27_000_000)
    assert find_wire("uart").make_clocks("Gowin", 27_000_000) is None
    ulpi = find_wire("usb-hs")
    assert ulpi.make_clocks("Gowin", 27_000_000) is None
    with pytest.raises(ValueError, match="usb-hs must be on an FPGA of ECP5, .* not Gowin"):
        ulpi.make_clocks("Gowin", 27_000_000, ("clk",))
    with pytest.raises(ValueError, match="must be within 8..400 MHz, not 3 MHz"):
        ulpi.make_clocks("ECP5", 3_000_000, ("clk",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: find_wire("can"), "wire must be one of rgmii, rmii, spi, uart, .*, not 'can'"),
        (lambda: Pin(name="d", direction="x"), "direction must be i, o or io, not x"),
        (lambda: Pin(name="d", direction=INPUT, enable="e"), "only an output has an enable, not d"),
        (
            lambda: replace(PARALLEL, pins=(Pin(name="clk", direction=OUTPUT),)),
            "the clock of parallel must be an input, not clk",
        ),
        (lambda: WirePins(wire="uart", pins={"rx": "1"}), "pins must be rx, tx, not rx"),
        (
            lambda: WirePins(wire="usb-hs", driven=("nxt",)),
            r"driven must be clock pins of usb-hs \(clk\), not nxt",
        ),
        (
            lambda: WirePins(wire="uart", driven=("tx",)),
            r"driven must be clock pins of uart \(it has none\), not tx",
        ),
        (lambda: Light(states=("happy",)), "states must be some of running, .*happy"),
    ],
)
def test_records_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_boards_that_are_refused() -> None:
    board = find_board("ulx3s-25f")
    with pytest.raises(ValueError, match="board ulx3s-25f must have a wire"):
        replace(board, wires=())
    twice = (WirePins(wire="uart"), WirePins(wire="uart"))
    with pytest.raises(ValueError, match=r"must have each name once, not \['uart', 'uart'\]"):
        replace(board, wires=twice)
    variant = Variant(suffix="a", description="", configuration=CONFIGURATION)
    with pytest.raises(ValueError, match=r"must have each name once, not \['a', 'a'\]"):
        replace(board, variants=(variant, variant))


def test_a_descriptor_is_held_to_its_platform() -> None:
    board = replace(find_board("ulx3s-25f"), oscillator_hz=50_000_000)
    with pytest.raises(ValueError, match="oscillator_hz must be 25000000, as .* not 50000000"):
        board_top.board_top(
            board=board,
            platform=board_top.make_platform(board),
            configuration=CONFIGURATION,
            link="uart",
            asked_mhz=105.0,
        )


@pytest.mark.parametrize("board", all_boards().values(), ids=all_boards())
def test_a_descriptor_names_the_part_of_its_platform(board: Board) -> None:
    platform = board_top.make_platform(board)
    if board.part.family == "Gowin":
        assert (platform.part, platform.family) == (board.part.package, board.part.device)
    elif board.part.family == "ECP5":
        assert platform.device.upper() == board.part.device
        assert int(platform.speed) == board.part.speed
    else:
        assert platform.device == board.part.device and platform.package == board.part.package
