"""An inference replayed on the netlist after layout, with delays: how often each net changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import toolchain
from ..asic.pdk import Pdk
from ..asic.saif import Activity
from ..asic.vcd import declarations
from ..errors import TargetError
from .delays import delayed_models, input_delay, needed_period, scaled_sdf
from .inference import PortValues
from .netlist import CLOCK, Port
from .simulation import wrapper
from .timing import WireTiming

_BENCH = """`timescale 1ns/1ps
module replay;
  reg clk = 0;
  reg [{inputs}-1:0] given [0:{cycles}-1];
  reg [{outputs}-1:0] wanted [0:{cycles}-1];
  reg [{inputs}-1:0] in;
  wire [{outputs}-1:0] out;
  integer k, wrong;
  annotated dut (
    .{clock}(clk),
{pins}
  );
  initial begin
    $readmemb("in.txt", given);
    $readmemb("out.txt", wanted);
    $sdf_annotate("delays.sdf", dut.layout);
    wrong = 0;
    in = given[0];
    #{period:.3f};
    $dumpfile("activity.vcd");
    $dumpvars(1, dut.layout);
    for (k = 0; k < {cycles}; k = k + 1) begin
      clk = k != 0;
      #{late:.3f} in = given[k];
      #{high:.3f} clk = 0;
      #{low:.3f};
      if (out !== wanted[k]) wrong = wrong + 1;
    end
    $display("{mark} %0d", wrong);
    $finish;
  end
endmodule
"""
_MARK = "cycles that differ:"
_STEP_NS = 0.001
"""The simulation's smallest time."""


@dataclass(frozen=True)
class Replay:
    """Tells what a replay found.

    Parameters
    ----------
    cycles, different : int
        Cycles, and those in which an output was not what the RTL's was.
    period_ns : float
        The clock's.
    nets : mapping of Activity by net
        Changes per cycle, those before a net has settled among them, and the share of time at 1.
    """

    cycles: int
    different: int
    period_ns: float
    nets: Mapping[str, Activity]


def replay(
    values: PortValues,
    name: str,
    ports: Mapping[str, Port],
    netlist: str,
    sdf: str,
    cells: Iterable[str],
    pdk: Pdk,
    timing: WireTiming,
    folder: Path,
) -> Replay:
    """Simulates the netlist after layout, by Icarus, with the ports' values of an inference.

    Parameters
    ----------
    values : PortValues
    name : str
        The layout's.
    ports : mapping of Port by name
        The gateware's.
    netlist, sdf : str
        Verilog of the layout, and its delays.
    cells : iterable of str
        In it.
    pdk : Pdk
    timing : WireTiming
        Tells the clock's period.
    folder : Path
        For all files; made if it is missing.

    Raises
    ------
    TargetError
        If Icarus is missing or fails.
    """
    compiler, runtime = toolchain.ICARUS.find(), toolchain.ICARUS_RUNTIME.find()
    folder.mkdir(parents=True, exist_ok=True)
    text = _write_bench(values, ports, timing, folder) + wrapper("annotated", name, ports)
    text += netlist + delayed_models(pdk, cells)
    (folder / "replay.v").write_text(text, "utf-8")
    (folder / "delays.sdf").write_text(scaled_sdf(sdf, 1.0), "utf-8")
    command = [compiler, "-gspecify", "-g2012", "-Tmax", "-s", "replay", "-o", "replay.vvp"]
    log = folder / "replay.log"
    toolchain.run("the replay's build", [*command, "replay.v"], folder=folder, log=log)
    said = toolchain.run("the replay", [runtime, "replay.vvp"], folder=folder, log=log)
    _, mark, count = said.partition(_MARK)
    if not mark:
        raise TargetError(f"the replay of {name} did not come to its end: {log}")
    waveform = folder / "activity.vcd"
    nets = scalar_activity(waveform, values.cycles)
    waveform.unlink()
    return Replay(values.cycles, int(count.split()[0]), needed_period(timing), nets)


def _write_bench(
    values: PortValues, ports: Mapping[str, Port], timing: WireTiming, folder: Path
) -> str:
    """Writes the words that the bench reads; returns the bench."""
    period, late = needed_period(timing), input_delay(timing)
    sides = {"in": values.inputs, "out": values.outputs}
    pins, sizes = list[str](), dict[str, int]()
    for side, columns in sides.items():
        first = 0
        for port in columns:
            last = first + len(ports[port].nets) - 1
            pins.append(f"    .{port}({side}[{last}:{first}])")
            first = last + 1
        sizes[side] = first
        (folder / f"{side}.txt").write_text(port_words(columns, ports), "utf-8")
    return _BENCH.format(
        inputs=sizes["in"],
        outputs=sizes["out"],
        cycles=values.cycles,
        clock=CLOCK,
        pins=",\n".join(pins),
        period=period,
        late=late,
        high=max(period / 2 - late, _STEP_NS),
        low=period - max(period / 2, late + _STEP_NS),
        mark=_MARK,
    )


def port_words(columns: Mapping[str, np.ndarray], ports: Mapping[str, Port]) -> str:
    """All ports' bits as a binary number per cycle, the first port's lowest."""
    bits = [
        np.stack([(column >> bit & 1).astype(np.uint8) for bit in range(len(ports[port].nets))], 1)
        for port, column in columns.items()
    ]
    rows = np.concatenate(bits, axis=1)[:, ::-1] + ord("0")
    return "".join(f"{row.tobytes().decode()}\n" for row in rows)


def scalar_activity(path: Path, cycles: int) -> dict[str, Activity]:
    """Counts the changes of each signal of one bit in a VCD file, and the share of time it is 1.

    Here every change counts, also those within a cycle; what is unknown counts as 0.
    """
    names, values = dict[str, list[str]](), dict[str, str]()
    changes, high, since = dict[str, int](), dict[str, int](), dict[str, int]()
    begin: int | None = None
    now = 0
    with path.open(encoding="utf-8") as file:
        for variable in declarations(file):
            if variable.bits == 1:
                names.setdefault(variable.code, []).append(variable.name)
        for line in file:
            kind = line[0]
            if kind == "#":
                now = int(line[1:])
                begin = now if begin is None else begin
            elif kind in "01xz":
                code, value = line[1:-1], "1" if kind == "1" else "0"
                before = values.get(code)
                if before == value:
                    continue
                values[code] = value
                if before is not None:
                    changes[code] = changes.get(code, 0) + 1
                if value == "1":
                    since[code] = now
                elif before is not None:
                    high[code] = high.get(code, 0) + now - since[code]
    for code, value in values.items():
        if value == "1":
            high[code] = high.get(code, 0) + now - since[code]
    whole = max(1, now - (begin or 0))
    return {
        name: Activity(changes.get(code, 0) / cycles, high.get(code, 0) / whole)
        for code, alike in names.items()
        for name in alike
    }
