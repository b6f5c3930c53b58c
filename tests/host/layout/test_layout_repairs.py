"""Repairs of a layout: straps that join rows, notches between vias, slivers in LEF files."""

import random

import pytest
from slipstick.errors import TargetError
from slipstick.layout.def_file import via_places
from slipstick.layout.lef import Metal, read_metal, without_slivers
from slipstick.layout.special_nets import fill_notches, join_rows

LEF = """LAYER metal1
  TYPE\t\tROUTING ;
  WIDTH\t\t0.9 ;
  SPACING\t0.9 ;
END metal1
LAYER via
  TYPE CUT ;
  SPACING 0.9 ;
END via
LAYER metal2
  WIDTH 0.9 ;
  SPACING 1.0 ;
END metal2
VIA M2_M1 DEFAULT
  LAYER metal1 ;
    RECT -0.600 -0.600 0.600 0.600 ;
  LAYER via ;
    RECT -0.300 -0.300 0.300 0.300 ;
  LAYER metal2 ;
    RECT -0.900 -0.600 0.900 0.600 ;
END M2_M1
MACRO INV
  PIN A
    PORT
      LAYER metal1 ;
        RECT 0.600 0.600 0.700 1.800 ;
    END
  END A
  OBS
      LAYER metal1 ;
        RECT 0.600 5.700 1.800 6.000 ;
        RECT 0.600 1.800 1.800 4.800 ;
      LAYER metal2 ;
        RECT 0.600 1.800 0.900 4.800 ;
  END
END INV
"""
METAL = Metal(
    {"metal1": 0.9, "metal2": 0.9},
    {"metal1": 0.9, "metal2": 1.0},
    {("M2_M1", "metal1"): (0.6, 0.6), ("M2_M1", "metal2"): (0.9, 0.6)},
)

DEF = """UNITS DISTANCE MICRONS 100 ;
DIEAREA ( 0 0 ) ( 1000 1000 ) ;
VIAS 1 ;
- wide
+ RECT metal1 ( -360 -60 ) ( 360 60 )
+ RECT metal2 ( -300 -60 ) ( 300 60 )
+ RECT via ( -30 -30 ) ( 30 30 ) ;
END VIAS
PINS 1 ;
- a + NET a
  + LAYER metal2 ( -45 -45 ) ( 45 45 )
  + PLACED ( 0 0 ) N ;
END PINS
NETS 2 ;
- a
  ( PIN a )
+ ROUTED metal1 ( 0 0 ) ( 240 * ) M2_M1
  NEW metal2 ( 0 0 ) M2_M1
  NEW metal1 ( 0 240 ) M2_M1 ;
- b
+ ROUTED metal1 ( 500 0 ) ( 1000 * ) M2_M1
  NEW metal1 ( 500 0 ) M2_M1 ;
END NETS
SPECIALNETS 2 ;
- vdd
+ FIXED metal1 120 ( 500 150 ) ( * * ) wide
  NEW metal1 120 ( 500 750 ) ( * * ) wide
 ;
- gnd
+ FIXED metal1 120 ( 900 450 ) ( * * ) wide
 ;
END SPECIALNETS
END DESIGN
"""


def test_rules_are_read() -> None:
    assert read_metal(LEF) == METAL


@pytest.mark.parametrize("gone", ["LAYER metal", "WIDTH", "SPACING", "VIA M2_M1"])
def test_a_lef_file_must_have_rules(gone: str) -> None:
    with pytest.raises(TargetError, match="a LEF file must have metal layers with their rules"):
        read_metal(LEF.replace(gone, "X"))


def test_rectangles_must_have_numbers() -> None:
    with pytest.raises(TargetError, match="must have numbers, not 'wide'"):
        without_slivers(LEF.replace("RECT 0.600 5.700", "RECT wide 5.700"), METAL)
    with pytest.raises(TargetError, match="must have numbers, not '-1.2.3'"):
        read_metal(LEF.replace("-0.900 -0.600", "-1.2.3 -0.600"))


def test_slivers_are_left_out() -> None:
    text, count = without_slivers(LEF, METAL)
    assert count == 2
    assert "5.700" not in text and "RECT 0.600 1.800 0.900" not in text
    # pins stay as they are
    assert "RECT 0.600 0.600 0.700 1.800" in text and "RECT 0.600 1.800 1.800 4.800" in text


def test_rows_are_joined() -> None:
    text = join_rows(DEF, "metal2", ("vdd", "gnd"))
    special = text.split("SPECIALNETS 2 ;\n")[1]
    assert "  NEW metal2 600 ( 500 90 ) ( * 810 )\n ;\n- gnd\n" in special
    assert "  NEW metal2 600 ( 900 90 ) ( * 810 )\n ;\nEND SPECIALNETS" in special
    assert "PINS 3 ;\n- vdd + NET vdd\n  + LAYER metal2 ( -300 -60 ) ( 300 60 )\n" in text
    assert "  + PLACED ( 500 150 ) N ;\n- gnd + NET gnd\n" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SPECIALNETS", "NONE", "must have vias on the rails of power and ground"),
        (" wide\n", "\n", "must have vias on the rails of power and ground"),
        ("- gnd\n", "- ground\n", "a DEF file must have the special net gnd"),
        ("RECT metal2", "RECT metal9", "a DEF file must have via wide with metal2"),
    ],
)
def test_rows_that_cannot_be_joined(old: str, new: str, message: str) -> None:
    assert old in DEF
    with pytest.raises(TargetError) as refused:
        join_rows(DEF.replace(old, new), "metal2", ("vdd", "gnd"))
    assert message in str(refused.value)


def test_vias_are_found() -> None:
    assert via_places(DEF) == {
        "a": [("M2_M1", 240, 0), ("M2_M1", 0, 0), ("M2_M1", 0, 240)],
        "b": [("M2_M1", 1000, 0), ("M2_M1", 500, 0)],
    }


def test_notches_are_filled() -> None:
    text, count = fill_notches(DEF, METAL)
    # 2.4 um less two halves of 0.9 um leave 0.6 um of metal 2; of metal 1 1.2 um, which will do
    assert count == 1
    assert "SPECIALNETS 3 ;\n- a\n+ ROUTED metal2 120 ( 0 0 ) ( 240 0 ) ;\n- vdd\n" in text
    assert fill_notches(DEF.replace("( 240 * )", "( 740 * )"), METAL)[1] == 0


@pytest.mark.parametrize("gone", ["UNITS DISTANCE", "SPECIALNETS 2"])
def test_notches_need_a_whole_file(gone: str) -> None:
    with pytest.raises(TargetError, match="a DEF file must have UNITS DISTANCE MICRONS and SPECI"):
        fill_notches(DEF.replace(gone, "X"), METAL)


def test_damaged_files_are_repaired_or_refused() -> None:
    generator = random.Random(4)
    repairs = (
        (LEF, lambda text: without_slivers(text, read_metal(text))),
        (DEF, lambda text: join_rows(text, "metal2", ("vdd", "gnd"))),
        (DEF, lambda text: fill_notches(text, METAL)),
    )
    for _ in range(300):
        for text, repair in repairs:
            letters = list(text)
            for _ in range(4):
                letters[generator.randrange(len(letters))] = generator.choice("( )*;+-.0\nR")
            try:
                repair("".join(letters))
            except TargetError as error:
                assert "\n" not in str(error)
