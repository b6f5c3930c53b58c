"""Models of standard cells: they compute what the liberty file says, or are refused."""

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from optional_tools import needs_icarus
from slipstick.asic.cell_models import cell_models
from slipstick.asic.liberty import LibertyError
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick_sim import tools
from slipstick_sim.toolchain import run_full_yosys
from tiny_liberty import tiny_liberty

GATES: dict[str, tuple[str, Callable[..., bool]]] = {
    "INV": ("!A", lambda a: not a),
    "NAND2": ("!(A B)", lambda a, b: not (a and b)),
    "AOI21": ("((A B) + C)'", lambda a, b, c: not (a and b or c)),
    "XNOR3": ("!(A ^ B ^ C)", lambda a, b, c: a ^ b ^ c ^ 1),
    "MUX2": ("(A !C) | (B C)", lambda a, b, c: b if c else a),
    "ANDNOT": ("A & !B * C", lambda a, b, c: a and not b and c),
}

STATES = """
  cell (DFFN) { ff (IQ, IQN) { next_state : "D"; clocked_on : "!CLK"; }
    pin(CLK) { direction : input; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; }
    pin(QN) { direction : output; function : "IQN"; } }
  cell (DFFE) { ff (IQ, IQN) { next_state : "(E D) + (!E IQ)"; clocked_on : "CLK"; }
    pin(CLK) { direction : input; } pin(D) { direction : input; } pin(E) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell (DFFR) { ff (IQ, IQN) { next_state : "D"; clocked_on : "CLK"; clear : "!R"; }
    pin(CLK) { direction : input; } pin(D) { direction : input; } pin(R) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell (DFFS) { ff (IQ, IQN) { next_state : "D"; clocked_on : "CLK"; preset : "S"; }
    pin(CLK) { direction : input; } pin(D) { direction : input; } pin(S) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell (LAT) { latch (IQ, IQN) { data_in : "D"; enable : "G"; }
    pin(G) { direction : input; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell (DFFSR) { ff (IQ, IQN) { next_state : "D"; clocked_on : "CLK"; clear : "!R"; preset : "!S";
      clear_preset_var1 : L; clear_preset_var2 : H; }
    pin(CLK) { direction : input; } pin(D) { direction : input; }
    pin(R) { direction : input; } pin(S) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; }
    pin(QN) { direction : output; function : "IQN"; } }
  cell (TBUF) { pin(A) { direction : input; } pin(EN) { direction : input; }
    pin(Y) { direction : output; function : "A"; three_state : "!EN"; } }
  cell (FILL) { area : 1; }
  cell (ODD) { pin("A[0]") { direction : input; }
    pin(Y) { direction : output; function : "A[0]"; } }
  cell (HELD) { ff (IQ, IQN) { next_state : "D"; clocked_on : "CLK"; clear : "!R"; preset : "!S";
      clear_preset_var1 : N; clear_preset_var2 : N; }
    pin(CLK) { direction : input; } pin(D) { direction : input; }
    pin(R) { direction : input; } pin(S) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
  cell (CLOCKLESS) { ff (IQ, IQN) { next_state : "D"; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
"""


@pytest.fixture(scope="module")
def pdk(tmp_path_factory: pytest.TempPathFactory) -> Pdk:
    """The tiny library, and cells that do all that a model can, or cannot."""
    text = tiny_liberty().rstrip().removesuffix("}") + STATES
    for name, (function, _) in GATES.items():
        pins = "".join(f"pin({pin}) {{ direction : input; }} " for pin in "ABC" if pin in function)
        text += f"cell (T_{name}) {{ {pins}\n"
        text += f'  pin(Y) {{ direction : output; function : "{function}"; }} }}\n'
    path = tmp_path_factory.mktemp("pdk") / "states.lib"
    path.write_text(text + "}\n")
    return find_pdk(str(path))


def test_gates_have_their_truth_tables(pdk: Pdk, tmp_path: Path) -> None:
    """A miter against a table written in Python, proved for all inputs."""
    (tmp_path / "cells.v").write_text(cell_models(pdk, [f"T_{name}" for name in GATES]))
    script, tables = "read_verilog cells.v\nread_verilog tables.v\n", ""
    for name, (_, function) in GATES.items():
        count = function.__code__.co_argcount
        rows = itertools.product((0, 1), repeat=count)
        word = "".join(str(int(function(*row))) for row in rows)[::-1]
        pins = "ABC"[:count]
        tables += (
            f"module R_{name} ({', '.join(f'input {pin}' for pin in pins)}, output Y);\n"
            f"  wire [{2**count - 1}:0] table_ = {2**count}'b{word};\n"
            f"  assign Y = table_[{{{', '.join(pins)}}}];\nendmodule\n"
        )
        script += (
            f"miter -equiv -make_assert T_{name} R_{name} m_{name}\nhierarchy -top m_{name}\n"
            f"proc\nflatten m_{name}\nsat -verify -prove-asserts m_{name}\n"
            "design -reset\nread_verilog cells.v\nread_verilog tables.v\n"
        )
    (tmp_path / "tables.v").write_text(tables)
    run_full_yosys(script, cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("DFF", {"type": "$dff", "CLK_POLARITY": 1}),
        ("DFFN", {"type": "$dff", "CLK_POLARITY": 0}),
        ("DFFR", {"type": "$adff", "ARST_VALUE": 0, "ARST_POLARITY": 0}),
        ("DFFS", {"type": "$adff", "ARST_VALUE": 1, "ARST_POLARITY": 1}),
        ("LAT", {"type": "$dlatch", "EN_POLARITY": 1}),
    ],
)
def test_states_are_what_yosys_calls_them(
    pdk: Pdk, name: str, cell: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "cells.v").write_text(cell_models(pdk, [name]))
    script = "read_verilog cells.v\nproc\nopt -nosdff -nodffe\nwrite_json cells.json\n"
    run_full_yosys(script, cwd=tmp_path)
    cells = json.loads((tmp_path / "cells.json").read_text())["modules"][name]["cells"].values()
    states = [it for it in cells if it["type"] in ("$dff", "$adff", "$dlatch")]
    # of DFFN's state there is the inverse besides
    assert len(states) == len(pdk.cells[name].outputs)
    for state in states:
        numbers = {key: int(value, 2) for key, value in state["parameters"].items()}
        assert cell.items() <= {"type": state["type"], **numbers}.items()


TEST_BENCH = """
module test;
  reg clock = 0, d = 1, r = 1, s = 1, e = 1;
  wire q, qn, held;
  DFFSR cell_1 (.CLK(clock), .D(d), .R(r), .S(s), .Q(q), .QN(qn));
  DFFE cell_2 (.CLK(clock), .D(d), .E(e), .Q(held));
  task tick; begin #1 clock = 1; #1 clock = 0; #1; end endtask
  initial begin
    #1 $write("%b%b ", q, held); tick; $write("%b%b%b ", q, qn, held);
    e = 0; d = 0; tick; $write("%b%b%b ", q, qn, held);
    e = 1; tick; $write("%b ", held);
    s = 0; #1 $write("%b%b ", q, qn); r = 0; #1 $write("%b%b ", q, qn);
    s = 1; #1 $write("%b%b ", q, qn); r = 1; d = 1; tick; $write("%b%b", q, qn);
  end
endmodule
"""


@needs_icarus
def test_set_reset_and_enable_in_a_simulation(pdk: Pdk, tmp_path: Path) -> None:
    (tmp_path / "cells.v").write_text(cell_models(pdk, ["DFFSR", "DFFE"]) + TEST_BENCH)
    subprocess.run([tools.ICARUS.find(), "-o", "test", "cells.v"], cwd=tmp_path, check=True)
    command = [tools.ICARUS_RUNTIME.find(), "test"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    # undefined; taken; held by the enable; released; preset; both; cleared; taken again
    assert done.stdout.split() == ["xx", "101", "011", "0", "10", "01", "01", "10"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NOR9", "PDK states has no cell NOR9"),
        ("TBUF", "cell TBUF must drive its output at all times .* releases it"),
        ("FILL", "cell FILL must have an output with a function"),
        ("ODD", r"cell ODD must have names of letters, digits and underscores .*'A\[0\]'"),
        ("HELD", "cell HELD must become L, H, X when it is cleared and preset at once .* not 'N'"),
        ("CLOCKLESS", "cell CLOCKLESS must have clocked_on"),
    ],
)
def test_what_no_model_can_is_refused(pdk: Pdk, name: str, message: str) -> None:
    with pytest.raises(LibertyError, match=message):
        cell_models(pdk, [name])
