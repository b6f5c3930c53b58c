"""Finds what silicon does not forgive: latches, loops, unknown registers and outputs."""

import re
from pathlib import Path

import pytest
from optional_tools import needs_icarus
from random_networks import NetworkBuilder
from slipstick.asic.checks import Structure, check_structure
from slipstick.asic.implementation import TOP, core_rtlil
from slipstick.asic.unknowns import answered_bytes, check_unknowns, inference, simulate
from slipstick.compiler import compile_graph
from slipstick.errors import TargetError
from slipstick.targets import find_target
from slipstick_rtl.link.protocol import REQUEST_START, Command, encode
from slipstick_sim.toolchain import run_full_yosys

TARGET = find_target("asic-4x4")

LATCH = "module top (input e, d, output reg q); always @* if (e) q = d; endmodule"
LOOP = "module top (input e, output q); assign q = !(q & e); endmodule"
ASYNCHRONOUS = """module top (input clk, rst, d, output reg q);
always @(posedge clk or posedge rst) if (rst) q <= 0; else q <= d; endmodule"""
REGISTERS = """module top (input clk, rst, input [3:0] d, output reg valid, output reg [3:0] q);
always @(posedge clk) begin q <= d; valid <= !rst & d[0]; if (rst) valid <= 0; end endmodule"""


def rtlil(verilog: str, folder: Path) -> str:
    (folder / "top.v").write_text(verilog)
    run_full_yosys("read_verilog top.v\nproc_clean\nwrite_rtlil top.il\n", cwd=folder)
    return (folder / "top.il").read_text()


@pytest.mark.parametrize(
    ("verilog", "message"),
    [
        (LATCH, r"(?s)top is not sound for silicon: .*dlatch"),
        (LOOP, r"(?s)top is not sound for silicon: .*loop"),
        (ASYNCHRONOUS, r"(?s)top is not sound for silicon: .*adff"),
    ],
)
def test_what_must_not_be(verilog: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=message):
        check_structure(rtlil(verilog, tmp_path), "top")


def test_registers_are_told_apart(tmp_path: Path) -> None:
    found = check_structure(rtlil(REGISTERS, tmp_path), "top")
    assert found == Structure((("valid", 1),), (("q", 4),), 0)
    assert found.bits == (1, 4)


def test_a_core_is_sound() -> None:
    """Neither latch nor loop; states and counters of places in queues have a reset."""
    found = check_structure(core_rtlil(TARGET), TOP)
    with_reset, without = found.bits
    assert with_reset > 1000 and without > with_reset
    c = TARGET.configuration
    assert found.memory_bits > 8 * (c.activation_bytes + c.weight_bytes)
    assert any("fsm_state" in name for name, _ in found.with_reset)
    unreset = {name.rpartition(".")[2] for name, _ in found.without_reset}
    assert not {name for name in unreset if name.startswith(("fsm_state", "level", "count"))}


@needs_icarus
def test_nothing_unknown_comes_out_of_a_core() -> None:
    """Convolutions, a sum and a depthwise one, from the core's first reset to the answer."""
    builder = NetworkBuilder(3, 5, 5, 4)
    first = builder.same_conv2d(3, 4)
    builder.same_conv2d(1, 4)
    builder.add(first)
    builder.depthwise((3, 3), 1)
    program = compile_graph(builder.graph(), TARGET.configuration)
    found = check_unknowns(TARGET, inference(TARGET, program, builder.images()))
    assert not found.unknown and not found.wrong
    assert found.frames >= 10 and found.watched > 500 and found.cycles > 2000


FORGETFUL = """
module slipstick (input clk, rst, input [7:0] s_axis_tdata, input s_axis_tvalid,
  output s_axis_tready, output [7:0] m_axis_tdata, output reg m_axis_tvalid, input m_axis_tready,
  output running, output [1:0] watched_0);
  reg forgotten, reset;
  always @(posedge clk) begin
    forgotten <= forgotten ^ s_axis_tvalid;
    reset <= rst ? 0 : reset ^ s_axis_tvalid;
    m_axis_tvalid <= rst ? 0 : s_axis_tvalid;
  end
  assign s_axis_tready = 1, running = 0, m_axis_tdata = {8{forgotten}};
  assign watched_0 = {forgotten, reset};
endmodule
"""


def test_an_unknown_byte_of_the_answers_is_named() -> None:
    """Also where a 0 is expected, as which it is read."""
    data, unknown = answered_bytes("byte a5\nbyte xx\nbyte 0x\nbyte 01\ncycles 9\n")
    assert data == b"\xa5\0\0\x01"
    assert unknown == ["byte 1 of the answers", "byte 2 of the answers"]


@needs_icarus
def test_what_is_unknown_is_named() -> None:
    said = simulate(FORGETFUL, 2, [encode(REQUEST_START, Command.IDENTIFY, 1)])
    assert re.findall(r"^unknown (\d+) in cycle", said, re.MULTILINE) == ["1"]
    assert "unknown a port" not in said and "cycles" in said


def test_icarus_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IVERILOG", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetError, match="iverilog is needed .* apt-get install iverilog, or"):
        check_unknowns(TARGET, lambda device: None)


@needs_icarus
def test_icarus_may_fail() -> None:
    with pytest.raises(
        TargetError, match=r"(?s)unknown values cannot be looked for: .*iverilog .*bench"
    ):
        simulate("module slipstick (", 2, [encode(REQUEST_START, Command.IDENTIFY, 1)])
