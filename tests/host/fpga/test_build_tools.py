"""The real tools of each family, on a board whose core only echoes: from gateware to bitstream."""

import re
import subprocess
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick.fpga import build as flow
from slipstick.fpga.toolchains import find_toolchain
from slipstick.targets import TARGETS, Target
from slipstick_rtl.config import Configuration
from slipstick_rtl.toplevel.registry import find_board


class Echo(wiring.Component):
    """Stands in for the core, which takes minutes to place."""

    i: stream.Interface
    o: stream.Interface
    running: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self.configuration = configuration
        super().__init__(
            {"i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "running": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        m.d.sync += self.running.eq(self.i.valid)
        return m


@pytest.mark.parametrize(
    ("board", "clock_mhz", "magic"),
    [
        ("ulx3s-25f", 50, b"\xff\x00Part: LFE5U-25F-6CABGA381"),
        ("icebreaker", 24, b"\xff\x00\x00\xff\x7e\xaa\x99\x7e"),
        ("tang-nano-9k", 27, b"1" * 16),
    ],
)
def test_the_tools_make_a_bitstream(
    board: str,
    clock_mhz: int,
    magic: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slipstick_rtl.toplevel.board_top.Accelerator", Echo)
    monkeypatch.setattr("slipstick_rtl.toplevel.design.describe", lambda accelerator: {})
    configuration = Configuration(
        rows=4,
        columns=4,
        lanes=4,
        multiplier="lut",
        activation_bytes=1 << 12,
        weight_bytes=1 << 12,
        instruction_words=64,
        clock_hz=clock_mhz * 1_000_000,
    )
    target = Target("echo", "an echo", configuration, board, find_board(board).part)
    done = flow.build(target, output=tmp_path)
    assert done.bitstream.read_bytes().startswith(magic)
    assert done.meets_clock
    assert 0 < done.layout.usage["lut"].used < 1000
    assert (tmp_path / "design.v").stat().st_size > 0


@pytest.mark.parametrize("family", ["ECP5", "iCE40", "Gowin"])
def test_place_and_route_knows_every_option(family: str) -> None:
    parts = {target.part for target in TARGETS.values() if target.part is not None}
    parts = {part for part in parts if find_toolchain(part).family == family}
    assert parts
    toolchain = find_toolchain(next(iter(parts)))
    command = [toolchain.place_and_route.find(), "--help"]
    known = subprocess.run(command, capture_output=True, text=True)
    options = set(re.findall(r"--[\w-]+", known.stdout + known.stderr))
    for part in parts:
        given = toolchain.placing(part, asked_mhz=100, seed=1, folder="f")
        assert {word for word in given if word.startswith("--")} <= options
        if family == "ECP5":
            # registers and look-up tables together: the square of more than 46,340 has no 31 bits
            unlimited = "--placer-heap-cell-placement-timeout" in given
            assert unlimited == (part.luts > 25_000)
