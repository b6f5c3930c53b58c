"""A liberty file of a few cells with round figures, written for the tests."""

from collections.abc import Mapping

GATES = {
    "INV": ("!A", 1.0),
    "BUF": ("A", 1.5),
    "NAND2": ("!(A B)", 2.0),
    "NOR2": ("!(A + B)", 2.0),
    "XOR2": ("A ^ B", 4.0),
}
"""Function and area."""

GATING = {**GATES, "AND2": ("A B", 3.0)}
"""With what clock gates need, besides a ``latch()``."""

FLIP_FLOP_AREA = 8.0
CLOCK_ENERGY = 0.02
"""Of a flip-flop's clock pin, for each change."""

_TABLE = """({template}) {{
          values ("{low}, {high}", "{low}, {high}");
        }}"""


def _arc(pin: str, sense: str, low: float, kind: str = "") -> str:
    """Delays and slopes of an output, from ``low`` at no load to twice as much, nanoseconds."""
    tables = "".join(
        f"        {name} {_TABLE.format(template='plane', low=low, high=2 * low)}\n"
        for name in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    )
    power = "".join(
        f"        {name} {_TABLE.format(template='energy', low=0.01, high=0.02)}\n"
        for name in ("rise_power", "fall_power")
    )
    timing_type = f"        timing_type : {kind};\n" if kind else ""
    return f"""      timing() {{
        related_pin : "{pin}";
        timing_sense : {sense};
{timing_type}{tables}      }}
      internal_power() {{
        related_pin : "{pin}";
{power}      }}
"""


def _gate(name: str, function: str, area: float) -> str:
    pins = [pin for pin in "AB" if pin in function]
    sense = {"INV": "negative_unate", "BUF": "positive_unate"}.get(name, "non_unate")
    inputs = "".join(
        f"    pin({pin}) {{ direction : input; capacitance : 0.01; }}\n" for pin in pins
    )
    arcs = "".join(_arc(pin, sense, 0.1) for pin in pins)
    return f"""  cell ({name}) {{
    area : {area};
    cell_leakage_power : 1.0;
{inputs}    pin(Y) {{
      direction : output;
      max_capacitance : 1.0;
      function : "{function}";
{arcs}    }}
  }}
"""


def flip_flop(clocked_on: str = "CLK") -> str:
    """A cell that takes D."""
    checks = "".join(
        f"""      timing() {{
        related_pin : "CLK";
        timing_type : {check}_rising;
        rise_constraint (point) {{ values ("{value}"); }}
        fall_constraint (point) {{ values ("{value}"); }}
      }}
"""
        for check, value in (("setup", 0.05), ("hold", 0.0))
    )
    return f"""  cell (DFF) {{
    area : {FLIP_FLOP_AREA};
    cell_leakage_power : 2.0;
    ff (IQ, IQN) {{ next_state : "D"; clocked_on : "{clocked_on}"; }}
    pin(CLK) {{ direction : input; clock : true; capacitance : 0.01;
      internal_power() {{
        rise_power (clock_energy) {{ values ("{CLOCK_ENERGY}, {CLOCK_ENERGY}"); }}
        fall_power (clock_energy) {{ values ("{CLOCK_ENERGY}, {CLOCK_ENERGY}"); }}
      }}
    }}
    pin(D) {{ direction : input; capacitance : 0.01;
{checks}    }}
    pin(Q) {{
      direction : output;
      max_capacitance : 1.0;
      function : "IQ";
{_arc("CLK", "non_unate", 0.2, "rising_edge")}    }}
  }}
"""


def latch() -> str:
    """A cell that is transparent while its clock is high."""
    return f"""  cell (LATCH) {{
    area : 5.0;
    cell_leakage_power : 2.0;
    latch (IQ, IQN) {{ data_in : "D"; enable : "CLK"; }}
    pin(CLK) {{ direction : input; clock : true; capacitance : 0.01; }}
    pin(D) {{ direction : input; capacitance : 0.01; }}
    pin(Q) {{
      direction : output;
      max_capacitance : 1.0;
      function : "IQ";
{_arc("CLK", "non_unate", 0.2, "rising_edge")}    }}
  }}
"""


def tiny_liberty(
    *,
    gates: Mapping[str, tuple[str, float]] = GATES,
    flip_flops: str | None = None,
) -> str:
    """The file's text.

    Parameters
    ----------
    gates : mapping of (function, area) by name
    flip_flops : str
        Text of these cells instead of ``flip_flop()``.
    """
    cells = "".join(_gate(name, *about) for name, about in gates.items())
    cells += flip_flop() if flip_flops is None else flip_flops
    thresholds = "".join(
        f"  {name}_pct_{edge} : {value};\n"
        for name, value in (
            ("input_threshold", 50),
            ("output_threshold", 50),
            ("slew_lower_threshold", 20),
            ("slew_upper_threshold", 80),
        )
        for edge in ("rise", "fall")
    )
    templates = "".join(
        f"""  {kind} ({name}) {{
    variable_1 : {variable};
    variable_2 : total_output_net_capacitance;
    index_1 ("0.0, 1.0");
    index_2 ("0.0, 1.0");
  }}
"""
        for kind, name, variable in (
            ("lu_table_template", "plane", "input_net_transition"),
            ("power_lut_template", "energy", "input_transition_time"),
        )
    )
    return f"""/* a library
   of round figures */
library (tiny) {{
  delay_model : table_lookup;
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1uA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW";
  capacitive_load_unit (1, pf);
{thresholds}  nom_voltage : 1.2;
  nom_temperature : 25.0;
  nom_process : 1.0;
  operating_conditions (typical) {{ process : 1; voltage : 1.2; temperature : 25; }}
  default_operating_conditions : typical;
  lu_table_template (point) {{ variable_1 : related_pin_transition; index_1 ("1.0"); }}
  power_lut_template (clock_energy) {{
    variable_1 : input_transition_time;
    index_1 ("0.0, 1.0");
  }}
{templates}{cells}}}
"""
