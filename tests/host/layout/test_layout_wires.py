"""Wires of a layout: the router's file of delays, SPEF, and the length of wires in a DEF file."""

import random

import pytest
from slipstick.errors import TargetError
from slipstick.layout.def_file import read_def
from slipstick.layout.parasitics import read_wires
from slipstick.layout.spef import spef
from slipstick.layout.spice import Extracted, Instance

DELAYS = """
n1 1 INV_1/Y 2 ( 2.0 0.004 ( 1.0 0.001 NAND_1/A ) , ( 3.0 0.003 NAND_1/B , DFF_1/D ) )
a 1 PIN/a 1 ( 0 0 INV_1/A )
"""

LAYOUT = Extracted(
    "block",
    ("vdd", "gnd", "a", "q"),
    {
        "INV_1": Instance("INV", {"A": "a", "Y": "NAND_1/A"}),
        "NAND_1": Instance("NAND", {"A": "NAND_1/A", "B": "NAND_1/A", "Y": "q"}),
        "DFF_1": Instance("DFF", {"D": "NAND_1/A"}),
    },
    {"NAND_1/A": 16.0, "a": 2.0},
)

DEF = """VERSION 5.6 ;
UNITS DISTANCE MICRONS 100 ;
DIEAREA ( -100 0 ) ( 900 500 ) ;
COMPONENTS 3 ;
- INV_1 INV + PLACED ( 0 0 ) N ;
- NAND_1 NAND + PLACED ( 200 0 ) FS ;
- FILL_1 FILL + PLACED ( 400 0 ) N ;
END COMPONENTS
NETS 2 ;
- n1
  ( INV_1 Y )
  ( NAND_1 A )
+ ROUTED metal1 ( 10 0 ) ( 110 * ) M2_M1
  NEW metal2 ( 110 0 ) ( * 300 ) M2_M1 ;
- a
  ( PIN a )
  ( INV_1 A )
+ ROUTED metal1 ( -50 20 ) ( 0 * 30 ) ( * 40 ) ;
END NETS
SPECIALNETS 1 ;
- vdd
+ FIXED metal1 40 ( 0 0 ) ( 900 * ) ;
END SPECIALNETS
END DESIGN
"""


def _is_output(instance: str, pin: str) -> bool:
    return pin in ("Y", "Q")


def test_a_tree_is_read() -> None:
    first, second = read_wires(DELAYS)
    assert (first.net, first.driver) == ("n1", ("INV_1", "Y"))
    assert first.tree.total_picofarads == pytest.approx(0.008)
    assert list(first.tree.all_ends) == [("NAND_1", "A"), ("NAND_1", "B"), ("DFF_1", "D")]
    assert [branch.ohms for branch in first.tree.branches] == [1.0, 3.0]
    assert second.driver == ("PIN", "a")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n1", "line 2 of the router's delays: a net must have its driver"),
        ("n1 1 INV_1 1 ( 1 2 A/B )", "a pin must be INSTANCE/PIN, not 'INV_1'"),
        ("n1 1 A/Y 1 1 2 B/A )", "a piece of wire must begin with a bracket, not with '1'"),
        ("n1 1 A/Y 1 ( 1 2 B/A", "a wire's brackets must be closed"),
        ("n1 1 A/Y 1 ( 1 x B/A )", "ohms and picofarads must be numbers from 0 on, not 'x'"),
        ("n1 1 A/Y 1 ( -1 2 B/A )", "ohms and picofarads must be numbers from 0 on, not '-1'"),
        ("n1 1 A/Y 1 ( nan 2 B/A )", "ohms and picofarads must be numbers from 0 on, not 'nan'"),
        ("n1 1 A/Y 1 ( 1 2 B/A B/B )", "pieces of wire must have commas between, not 'B/B'"),
        ("n1 1 A/Y 1 ( 1 2 ERRORS )", "a pin must be INSTANCE/PIN, not 'ERRORS'"),
        ("n1 1 A/Y 1 ( 1 2 B/A ) more", "a wire must end with its tree, not with 'more'"),
        ("n1 1 A/Y 1 " + "( 1 2 " * 5000, "line 2 of the router's delays"),
    ],
)
def test_a_bad_tree_is_refused(line: str, message: str) -> None:
    with pytest.raises(TargetError) as refused:
        read_wires(f"\n{line}\n")
    assert message in str(refused.value)


def test_spef_has_what_was_extracted() -> None:
    text = spef(read_wires(DELAYS), LAYOUT, _is_output, frozenset({"a"}))
    nets = text.split("*D_NET ")[1:]
    assert nets[0].startswith("NAND_1_A 0.016\n*CONN\n*I INV_1:Y O\n*I NAND_1:A I\n")
    first = nets[0].split("*CAP\n")[1].split("*RES\n")[0]
    # twice what the router has: magic extracted 16 fF, and it 8
    assert sum(float(line.split()[-1]) for line in first.splitlines()) == pytest.approx(0.016)
    assert "1 INV_1:Y NAND_1_A:1 2\n" in nets[0]
    assert "NAND_1_A:1 NAND_1_A:2 1\n" in nets[0] and " NAND_1:B 0.001\n" in nets[0]
    # a wire without a length keeps what was extracted
    assert "*D_NET a 0.002\n*CONN\n*P a I\n*I INV_1:A I\n*CAP\n1 a 0.002\n" in text


def test_pins_that_the_router_has_lost_are_joined() -> None:
    """A route with a loop: one pin is met twice, others are not met at all."""
    text = "n1 1 INV_1/Y 3 ( 2.0 0.004 ( 1.0 0.001 NAND_1/A , ( 1.0 0.003 NAND_1/A , ERROR ) ) )"
    (net,) = spef(read_wires(text), LAYOUT, _is_output, frozenset()).split("*D_NET ")[1:]
    assert net.startswith(
        "NAND_1_A 0.016\n*CONN\n*I INV_1:Y O\n*I NAND_1:A I\n*I NAND_1:B I\n*I DFF_1:D I\n*CAP\n"
    )
    assert net.count("NAND_1:A 0.001") == 1
    assert " NAND_1_A:1 NAND_1:B 0.001\n" in net and " NAND_1_A:1 DFF_1:D 0.001\n" in net


def test_spef_needs_drivers() -> None:
    wires = read_wires("n1 1 GONE_1/Y 1 ( 1 2 INV_1/A )")
    with pytest.raises(TargetError, match="net n1 must have a driver in the layout, not GONE_1/Y"):
        spef(wires, LAYOUT, _is_output, frozenset())


def test_a_def_file_is_measured() -> None:
    found = read_def(DEF)
    assert (found.width_um, found.height_um, found.area_um2) == (10.0, 5.0, 50.0)
    assert found.cells == {"INV_1": "INV", "NAND_1": "NAND", "FILL_1": "FILL"}
    assert (found.nets, found.vias) == (2, 2)
    assert found.wire_um == pytest.approx({"metal1": 1.7, "metal2": 3.0})
    assert found.wire_length_um == pytest.approx(4.7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("UNITS DISTANCE", "UNITS", "a DEF file must have UNITS DISTANCE MICRONS and DIEAREA"),
        ("MICRONS 100", "MICRONS 0", "a DEF file must have UNITS DISTANCE MICRONS and DIEAREA"),
        ("DIEAREA", "AREA", "a DEF file must have UNITS DISTANCE MICRONS and DIEAREA"),
        ("END NETS", "END", "a DEF file must have the section NETS"),
        ("COMPONENTS 3", "COMPONENTS", "a DEF file must have the section COMPONENTS"),
        ("( 10 0 )", "( ten 0 )", "a wire of metal1 must have whole numbers or stars, not 'ten'"),
        ("( 10 0 )", "( * 0 )", "a wire of metal1 must have whole numbers or stars, not '*'"),
    ],
)
def test_a_bad_def_file_is_refused(old: str, new: str, message: str) -> None:
    assert old in DEF
    with pytest.raises(TargetError) as refused:
        read_def(DEF.replace(old, new))
    assert message in str(refused.value)


def test_damage_is_read_or_refused() -> None:
    generator = random.Random(1)
    for _ in range(300):
        for text, read in ((DELAYS, read_wires), (DEF, read_def)):
            letters = list(text)
            for _ in range(3):
                letters[generator.randrange(len(letters))] = generator.choice("( )*;x/0-\n")
            try:
                read("".join(letters))
            except TargetError as error:
                assert "\n" not in str(error)
