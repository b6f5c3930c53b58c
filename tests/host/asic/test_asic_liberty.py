"""Liberty files and PDKs: what is read, and what each refusal says."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import shared
from slipstick.asic.functions import parse_function
from slipstick.asic.liberty import LibertyError, parse_liberty
from slipstick.asic.pdk import FLIP_FLOP, GATE, NAMED, find_pdk
from slipstick.errors import TargetError
from tiny_liberty import FLIP_FLOP_AREA, GATES, flip_flop, tiny_liberty


def write(folder: Path, text: str) -> str:
    path = folder / "some.lib"
    path.write_text(text)
    return str(path)


def test_a_library_is_groups_and_attributes() -> None:
    library = parse_liberty(
        """library (x) { // a comment
        a : 1.5 ; b : "two words" ; c : 2 * 3
        list (1, "2.0, 3.0", \\
              four);
        cell (N) { area : 3; pin (A) { direction : input; }; }
        }"""
    )
    assert library.name == "x"
    assert library.attributes["list"] == ["1", "2.0, 3.0", "four"]
    assert [library.text(name) for name in "abc"] == ["1.5", "two words", "2 * 3"]
    (cell,) = library.of("cell")
    assert cell.number("area") == 3.0
    assert [pin.text("direction") for pin in cell.of("pin")] == ["input"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1 of a liberty file must be the name .* not the end of the file"),
        ("cell (x) { }", r"must be a group library \(name\) \{...\}, not 'cell'"),
        ("library (x) { }\nlibrary (y) { }", r"line 2 .* the end of the file after the library"),
        (
            "library (x) {\n a 1; }",
            r"line 2 of a liberty file must be ':' or '\(' after a, not '1'",
        ),
        ("library (x) {\n a : ; }", r"line 2 .* a value after ':'"),
        ("library (x) {", r"must be the name of an attribute or a group, not the end"),
        ("library (x) { a (1; }", r"must be a value or '\)', not ';'"),
        ('library (x) {\n\n a : "open; }', r"line 3 of a liberty file must not hold '\"' there"),
        ("library (x) {" + "g () {" * 40 + "}" * 41, "groups at most 32 deep"),
    ],
)
def test_what_is_no_liberty_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(LibertyError, match=message):
        parse_liberty(text)


def test_numbers_are_checked() -> None:
    library = parse_liberty("library (x) { cell (N) { area : wide; } }")
    (cell,) = library.of("cell")
    with pytest.raises(LibertyError, match=r"^area of cell N must be a number, not 'wide'$"):
        cell.number("area")
    assert cell.number("leakage", 0.5) == 0.5


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_read(data: st.DataObject) -> None:
    """Whatever is cut out, put in or changed, it is a LibertyError or a library."""
    text = tiny_liberty()
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 200)))
    put = data.draw(st.text('{}();:,"\\ab1\n/*', max_size=20))
    try:
        parse_liberty(text[:begin] + put + text[end:])
    except LibertyError:
        pass


@pytest.mark.parametrize(
    ("text", "verilog", "table"),
    [
        ("A B", "(A & B)", "0001"),
        ("!A", "~A", "10"),
        ("(A+B)'", "~(A | B)", "1000"),
        ("A ^ B", "(A ^ B)", "0110"),
        ("A * !B | A' & B", "((A & ~B) | (~A & B))", "0110"),
        ("S A + !S B", "((S & A) | (~S & B))", "00011011"),
        ("1", "1'b1", "1"),
    ],
)
def test_functions_are_read(text: str, verilog: str, table: str) -> None:
    function = parse_function(text)
    assert function.verilog == verilog
    assert "".join(str(int(value)) for value in function.table) == table


@pytest.mark.parametrize("text", ["", "A +", "(A", "A)", "A # B", "!", "^A", "'", "(" * 999])
def test_what_is_no_function_is_refused(text: str) -> None:
    with pytest.raises(LibertyError, match="a function must be one of and, or"):
        parse_function(text)


def test_a_function_of_too_many_inputs_has_no_table() -> None:
    function = parse_function(" ".join(f"A{k}" for k in range(13)))
    with pytest.raises(LibertyError, match="must have at most 12 inputs, not 13"):
        print(function.table)


@settings(max_examples=200, deadline=None)
@given(st.text("AB01!'&*|+^() ", max_size=30))
def test_any_text_is_a_function_or_refused(text: str) -> None:
    try:
        function = parse_function(text)
        assert len(function.table) == 1 << len(function.variables)
    except LibertyError:
        pass


def test_a_pdk_is_the_cells_of_a_file(tmp_path: Path) -> None:
    pdk = find_pdk(write(tmp_path, tiny_liberty()), feature_nm=90)
    assert (pdk.name, pdk.voltage, pdk.time_unit, pdk.feature_nm) == ("some", 1.2, "1ns", 90)
    assert {name: cell.area for name, cell in pdk.cells.items() if cell.kind == GATE} == {
        name: area for name, (_, area) in GATES.items()
    }
    assert pdk.flip_flops == {"DFF"}
    assert not pdk.latches
    register = pdk.cells["DFF"]
    assert (register.kind, register.area) == (FLIP_FLOP, FLIP_FLOP_AREA)
    assert register.inputs == ("CLK", "D")
    assert {name: function.text for name, function in register.state.items()} == {
        "next_state": "D",
        "clocked_on": "CLK",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("library (x) { }", "a library must have cells, and this has none"),
        (tiny_liberty(flip_flops=""), "mapping needs a flip-flop .* of the library's 5 cells"),
        (
            tiny_liberty(flip_flops=flip_flop().replace('"D"', '"D !CLK"')),
            "mapping needs a flip-flop",
        ),
        (
            tiny_liberty(gates={k: v for k, v in GATES.items() if k != "INV"}),
            "mapping needs an inverter",
        ),
        (
            tiny_liberty(gates={k: GATES[k] for k in ("INV", "BUF", "XOR2")}),
            "needs a gate of two inputs that is one of nand, nor, and, or",
        ),
        (
            tiny_liberty(gates={**GATES, "ODD": ("A majority B", 1.0)}),
            "Y of cell ODD: function 'A majority B' must name pins of the cell, not 'majority'",
        ),
        (
            tiny_liberty(gates={**GATES, "ODD": ("A @ B", 1.0)}),
            "Y of cell ODD: a function must be one of and, or, exclusive or, not: 'A @ B'",
        ),
        ("nonsense", "line 1 of a liberty file must be ':' or"),
    ],
)
def test_a_library_that_nothing_can_be_mapped_to_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(TargetError, match=f"^PDK .*some.lib: .*{message}"):
        find_pdk(write(tmp_path, text))


def test_an_unknown_pdk_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="'sky999' is none of them, and there is no file sky999"):
        find_pdk("sky999")
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    with pytest.raises(TargetError, match="there is no file .*gscl45nm.lib"):
        find_pdk("gscl45")
    monkeypatch.delenv("SLIPSTICK_DATA")
    with pytest.raises(TargetError, match="need the environment variable SLIPSTICK_DATA"):
        find_pdk("gscl45")
    with pytest.raises(TargetError, match="feature size must be within 1..10000 .* not 0"):
        find_pdk("x", feature_nm=0)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.borrows
def test_the_named_pdks_are_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SLIPSTICK_DATA", str(shared("pdk").parent))
    pdk = find_pdk(name)
    assert "DFFPOSX1" in pdk.flip_flops
    assert "LATCH" in pdk.latches
    assert pdk.cells["NAND2X1"].outputs["Y"].table == (True, True, True, False)
