"""Memory macros for static timing: a liberty file with a cell for each."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .macros import WRAPPERS, Macro
from .memory_model import SETUP_NS, MemoryCost, memory_cost
from .pdk import Pdk

_PIN_CAPACITANCE = 0.005
"""Picofarads of an input, as of the memories that :mod:`.memory_model` goes by; clocks 0.025."""
_CLOCK_CAPACITANCE = 0.025
_SLOPE_NS = (0.009, 0.227)
"""Slopes of an output with 5 and 500 femtofarads, at 45 nm."""

_HEADER = """library (slipstick_macros) {
  delay_model : table_lookup;
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1uA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1mW";
  capacitive_load_unit (1, pf);
  input_threshold_pct_rise : 50;
  input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50;
  output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20;
  slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80;
  slew_upper_threshold_pct_fall : 80;
  lu_table_template (load) {
    variable_1 : total_output_net_capacitance;
    index_1 ("0.005, 0.5");
  }
"""


def macro_cell(macro: Macro) -> str:
    """The name of a macro's cell: ``slipstick_sram_1rw_512x32_w32``."""
    return f"{WRAPPERS[macro.ports]}_{macro.words}x{macro.bits}_w{macro.write_bits}"


def macro_liberty(macros: Iterable[Macro], pdk: Pdk) -> str:
    """A liberty file with a cell for each shape of macro.

    Inputs have a setup time, words come an access time after the clock; energy is counted by
    accesses, not here.
    """
    shapes = {macro_cell(macro): replace(macro, path="") for macro in macros}
    cells = (_cell(name, macro, memory_cost(macro, pdk)) for name, macro in shapes.items())
    types = {width for macro in shapes.values() for width in _buses(macro).values()}
    return _HEADER + "".join(map(_type, sorted(types))) + "".join(cells) + "}\n"


def _buses(macro: Macro) -> Mapping[str, int]:
    """Bits of the buses of a wrapper, by name."""
    address = macro.shape.address_bits
    buses = {
        "wmask0": macro.bits // macro.write_bits,
        "addr0": address,
        "din0": macro.bits,
        "dout0": macro.bits,
    }
    return buses | ({"addr1": address, "dout1": macro.bits} if macro.ports == 2 else {})


def _type(width: int) -> str:
    return (
        f"  type (bits{width}) {{\n    base_type : array;\n    data_type : bit;\n"
        f"    bit_width : {width};\n    bit_from : {width - 1};\n    bit_to : 0;\n"
        "    downto : true;\n  }\n"
    )


def _cell(name: str, macro: Macro, cost: MemoryCost) -> str:
    text = f"  cell ({name}) {{\n    area : {cost.area:.1f};\n    interface_timing : true;\n"
    for port in range(macro.ports):
        text += (
            f"    pin (clk{port}) {{ direction : input; clock : true;"
            f" capacitance : {_CLOCK_CAPACITANCE}; }}\n"
        )
        for pin in ("csb", "web")[: 2 - port]:
            text += f"    pin ({pin}{port}) {{\n{_input(port, cost)}    }}\n"
    for bus, width in _buses(macro).items():
        port = int(bus[-1])
        body = _output(port, cost) if bus.startswith("dout") else _input(port, cost)
        text += f"    bus ({bus}) {{\n      bus_type : bits{width};\n{body}    }}\n"
    return text + "  }\n"


def _input(port: int, cost: MemoryCost) -> str:
    checks = "".join(
        f"      timing () {{\n        related_pin : clk{port};\n"
        f"        timing_type : {check}_rising;\n"
        f'        rise_constraint (scalar) {{ values ("{value:.4f}"); }}\n'
        f'        fall_constraint (scalar) {{ values ("{value:.4f}"); }}\n      }}\n'
        for check, value in (("setup", cost.setup_ns), ("hold", 0.0))
    )
    return f"      direction : input;\n      capacitance : {_PIN_CAPACITANCE};\n{checks}"


def _output(port: int, cost: MemoryCost) -> str:
    # slopes grow with the feature size, as the setup time does
    low, high = (slope * cost.setup_ns / SETUP_NS for slope in _SLOPE_NS)
    tables = "".join(
        f'        cell_{edge} (scalar) {{ values ("{cost.access_ns:.4f}"); }}\n'
        f'        {edge}_transition (load) {{ values ("{low:.4f}, {high:.4f}"); }}\n'
        for edge in ("rise", "fall")
    )
    return (
        "      direction : output;\n      max_capacitance : 0.5;\n"
        f"      timing () {{\n        related_pin : clk{port};\n"
        f"        timing_type : rising_edge;\n        timing_sense : non_unate;\n{tables}      }}\n"
    )
