"""What silicon does not forgive is found: latches, loops, unknown registers and outputs."""

from pathlib import Path

import pytest
from slipstick.asic.checks import Structure, check_structure
from slipstick.errors import TargetError
from slipstick.targets import find_target
from slipstick_rtl.accelerator import Accelerator
from slipstick_sim.toolchain import convert_to_rtlil, run_full_yosys

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
        (LATCH, r"top is not sound for silicon: .*dlatch"),
        (LOOP, r"top is not sound for silicon: .*loop"),
        (ASYNCHRONOUS, r"top is not sound for silicon: .*adff"),
    ],
)
def test_what_must_not_be(verilog: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=message) as raised:
        check_structure(rtlil(verilog, tmp_path), "top")
    assert str(raised.value)


def test_registers_are_told_apart(tmp_path: Path) -> None:
    found = check_structure(rtlil(REGISTERS, tmp_path), "top")
    assert found == Structure((("valid", 1),), (("q", 4),), 0)
    assert found.bits == (1, 4)


def test_the_default_core_is_sound() -> None:
    """Neither latch nor loop; what says that something is valid, or counts, has a reset."""
    core = Accelerator(configuration=find_target("sim-medium").configuration)
    found = check_structure(convert_to_rtlil(core, "slipstick"), "slipstick")
    with_reset, without = found.bits
    assert with_reset > 1000 and without > with_reset
    assert found.memory_bits > 8 * (1 << 17)
    reset = {name for name, _ in found.with_reset}
    unreset = {name.rpartition(".")[2] for name, _ in found.without_reset}
    assert any("fsm_state" in name for name in reset)
    assert not {name for name in unreset if name.startswith(("fsm_state", "level", "count"))}
