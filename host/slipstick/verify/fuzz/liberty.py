"""Damaged liberty files."""

import random
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ...asic.pdk import find_pdk
from .damage import damaged_bytes
from .outcomes import READ, Parser

_LIBRARY = """library (small) {{
  time_unit : "1ns"; voltage_unit : "1V"; capacitive_load_unit (1, pf);
  nom_voltage : 1.2; leakage_power_unit : "1nW";
  lu_table_template (plane) {{
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0.1, 1"); index_2 ("0.01, 1");
  }}
{cells}}}
"""
_CELL = """  cell ({name}) {{
    area : {area}; cell_leakage_power : 1.0;
{inputs}    pin(Y) {{ direction : output; max_capacitance : 1.0; function : "{function}";
      timing() {{ related_pin : "A"; timing_sense : {sense};
{tables}      }}
    }}
  }}
"""
_FLIP_FLOP = """  cell (DFF) {
    area : 8; ff (IQ, IQN) { next_state : "D"; clocked_on : "CLK"; }
    pin(D) { direction : input; capacitance : 0.01; }
    pin(CLK) { direction : input; clock : true; capacitance : 0.01; }
    pin(Q) { direction : output; max_capacitance : 1.0; function : "IQ"; }
  }
"""
_GATES = {"INV": "!A", "BUF": "A", "NAND2": "!(A B)", "NOR2": "!(A + B)", "XOR2": "A ^ B"}
_WORDS = ("cell", "pin", "function", "area", "ff", "latch", "{", "}", '"', ";", ":", "(", ")")
_VALUES = ("0", "-1", "1e400", "nan", "A", "!A", "((((A", '""', "bad", "1.5", "A B C D E F G H")


def _cell(name: str, function: str) -> str:
    pins = [pin for pin in "AB" if pin in function]
    inputs = "".join(f"    pin({p}) {{ direction : input; capacitance : 0.01; }}\n" for p in pins)
    tables = "".join(
        f'        {kind} (plane) {{ values ("0.1, 0.2", "0.1, 0.2"); }}\n'
        for kind in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    )
    sense = {"INV": "negative_unate", "BUF": "positive_unate"}.get(name, "non_unate")
    return _CELL.format(
        name=name, area=2.0, inputs=inputs, function=function, sense=sense, tables=tables
    )


@cache
def liberty_seeds() -> tuple[bytes, ...]:
    """A library of a few cells, whole and with the fewest."""
    cells = "".join(_cell(name, function) for name, function in _GATES.items()) + _FLIP_FLOP
    fewest = "".join(_cell(name, _GATES[name]) for name in ("INV", "NAND2")) + _FLIP_FLOP
    return _LIBRARY.format(cells=cells).encode(), _LIBRARY.format(cells=fewest).encode()


def mutate_liberty(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other bytes, words or lines."""
    way = pick.random()
    if way < 0.4:
        return damaged_bytes(pick, data, files)
    lines = data.decode().splitlines()
    place = pick.randrange(len(lines))
    if way < 0.6:
        words = lines[place].split(" ")
        words[pick.randrange(len(words))] = pick.choice((*_WORDS, *_VALUES))
        lines[place] = " ".join(words)
    elif way < 0.8:
        head, colon, _ = lines[place].partition(" : ")
        lines[place] = f"{head}{colon}{pick.choice(_VALUES)};" if colon else ""
    elif way < 0.9:
        lines[place] = lines[place] * pick.choice((0, 2, 40))
    else:
        lines.insert(place, pick.choice(lines))
    return "\n".join(lines).encode()


def check_liberty(data: bytes, pick: random.Random) -> str:
    """Reads a library for mapping."""
    with tempfile.NamedTemporaryFile(suffix=".lib") as file:
        Path(file.name).write_bytes(data)
        find_pdk(file.name)
    return READ


LIBERTY = Parser(name="liberty", seeds=liberty_seeds, mutate=mutate_liberty, check=check_liberty)
