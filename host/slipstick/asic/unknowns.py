"""No unknown value gets anywhere that matters: a whole inference with registers that begin as X."""

import random
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.link.protocol import CRC_BYTES, FLAGS, HEADER_BYTES, SILENT, Command

from .. import toolchain as tools
from ..devices.link import LinkDevice
from ..devices.link.transport import LoopbackTransport
from ..errors import TargetError
from ..program import Program
from ..session import InferenceSession
from ..targets import Target
from .checks import control_registers

if TYPE_CHECKING:
    from slipstick_sim.netlist.portable.netlist import Bit, Netlist

RESET_CYCLES = 32
"""More than any register without a reset is behind one that has it."""

_SILENCE = 500
"""Cycles without a byte after which no more will come."""
_WORD = 32
"""Bits of a port that is watched: simulators copy a whole port whenever a bit of it changes."""

_BENCH = """
module bench;
  reg clk = 0, rst = 1, valid = 0;
  reg [7:0] bytes [0:{last}];
  reg [7:0] data = 0;
  wire ready, found_valid, running;
  wire [7:0] found;
  wire [{top}:0] watched;
  integer next = 0, silence = 0, cycles = 0, place;
  slipstick dut (.clk(clk), .rst(rst), .s_axis_tdata(data), .s_axis_tvalid(valid),
    .s_axis_tready(ready), .m_axis_tdata(found), .m_axis_tvalid(found_valid),
    .m_axis_tready(1'b1), .running(running){ports});
  initial $readmemh("bytes.hex", bytes);
  always @(posedge clk) begin
    cycles <= cycles + 1;
    rst <= cycles < {reset};
    silence <= (valid && ready) || found_valid || running ? 0 : silence + 1;
    if (valid && ready) valid <= 0;
    if (!rst && (!valid || ready) && next <= {last}) begin
      valid <= 1; data <= bytes[next]; next <= next + 1;
    end
    if (!rst && cycles > {reset} + 1) begin
      if (found_valid === 1'b1) $display("byte %02x", found);
      if (^{{ready, found_valid, running}} === 1'bx)
        $display("unknown a port in cycle %0d", cycles);
      if (^watched === 1'bx) begin
        for (place = 0; place <= {top}; place = place + 1)
          if (watched[place] === 1'bx) $display("unknown %0d in cycle %0d", place, cycles);
        $display("cycles %0d", cycles);
        $finish;
      end
    end
    if (next > {last} && !valid && silence > {silence}) begin
      $display("cycles %0d", cycles); $finish;
    end
  end
  always #1 clk = !clk;
endmodule
"""


@dataclass(frozen=True)
class Unknowns:
    """Results of a simulation with four values.

    Parameters
    ----------
    cycles : int
    watched : int
        Bits: registers of control, and enables of memories.
    unknown : tuple of str
        Which of them, or of the ports, were unknown in the first cycle after the reset in which
        any was; the simulation ends there. Behind them, the answers' bytes with unknown bits.
    frames : int
        Answers of the core.
    wrong : int
        Answers that were others than the golden model's, or unknown.
    """

    cycles: int
    watched: int
    unknown: tuple[str, ...]
    frames: int
    wrong: int


def check_unknowns(target: Target, session: Callable[[LinkDevice], None]) -> Unknowns:
    """Simulates a host's session on the exported Verilog by Icarus, all registers and memories X.

    Parameters
    ----------
    target : Target
    session : callable
        What a host does with the device; ``inference`` makes one.

    Raises
    ------
    TargetError
        If Icarus is missing or fails, or the simulation ends early.
    """
    # what is missing is told before the work
    tools.ICARUS.find()
    tools.ICARUS_RUNTIME.find()
    recorder = _Recorder(target)
    session(
        LinkDevice(
            LoopbackTransport(recorder),
            configuration=target.configuration,
            draw=random.Random(1),
            pause=lambda _: None,
        )
    )
    requests, answers = list(_frames(recorder.requests)), list(_frames(recorder.answers))
    from slipstick_rtl.soc.interfaces import INTERFACES, InterfaceTop
    from slipstick_sim.netlist.portable import flat_netlist, netlist_verilog
    from slipstick_sim.toolchain import convert_to_rtlil

    top = InterfaceTop(interface=INTERFACES["stream"], configuration=target.configuration)
    netlist = flat_netlist(convert_to_rtlil(top, "slipstick"), "slipstick")
    names = _watch(netlist)
    said = simulate(netlist_verilog(netlist, "slipstick"), len(names), requests)
    cycles = re.search(r"^cycles (\d+)$", said, re.MULTILINE)
    if cycles is None:
        raise TargetError(f"the simulation for unknown values ended early: {said[-200:]!r}")
    unknown = [
        names[int(place)] if place.isdigit() else "a port"
        for place in re.findall(r"^unknown (\d+|a port) in cycle", said, re.MULTILINE)
    ]
    data, unknown_bytes = answered_bytes(said)
    found = list(_frames(data))
    pairs = zip(_comparable(requests, answers), _comparable(requests, found), strict=False)
    wrong = sum(one != other for one, other in pairs) + abs(len(answers) - len(found))
    return Unknowns(int(cycles[1]), len(names), (*unknown, *unknown_bytes), len(found), wrong)


def inference(
    target: Target, model: Path | Program, image: np.ndarray
) -> Callable[[LinkDevice], None]:
    """A session that loads a network and runs one input, given with the batch."""

    def run(device: LinkDevice) -> None:
        session = InferenceSession(model, device=device, target=target)
        session.run(None, {session.get_inputs()[0].name: image})

    return run


class _Recorder:
    """The golden core behind its link, and what goes to it and comes from it."""

    def __init__(self, target: Target) -> None:
        from slipstick_sim.golden.core import GoldenCore
        from slipstick_sim.golden.link import Endpoint

        core = GoldenCore(target.configuration)
        self._endpoint = Endpoint(target.configuration, core)
        self.requests, self.answers = bytearray(), bytearray()

    def feed(self, data: bytes) -> bytes:
        answer = self._endpoint.feed(data)
        self.requests += data
        self.answers += answer
        return answer


def _frames(data: bytes | bytearray) -> Iterator[bytes]:
    """A stream cut into frames: start, kind, sequence, length, payload, CRC."""
    while data:
        length = int.from_bytes(data[3:5], "little")
        size = HEADER_BYTES + length + CRC_BYTES
        yield bytes(data[:size])
        data = data[size:]


def _comparable(requests: list[bytes], answers: list[bytes]) -> list[bytes]:
    """The answers whose contents do not tell of cycles; silent requests have none."""
    commands = [request[1] & ~FLAGS for request in requests if not request[1] & SILENT]
    return [
        answer
        for command, answer in zip(commands, answers, strict=False)
        if command != Command.STATUS
    ]


def _watch(netlist: "Netlist") -> list[str]:
    """Adds ports with all that must be known; returns what each of their bits is."""
    names = {bit: name for name, bits in netlist.names.items() for bit in bits}
    watched = {
        bit: names.get(bit, "a register")
        for cell in control_registers(netlist)
        for bit in cell.ports["Q"]
    }
    for cell in netlist.cells:
        if cell.kind == "$mem_v2":
            memory = cell.parameters["MEMID"]
            for port in ("WR_EN", "RD_EN"):
                watched |= {bit: f"{port} of {memory}" for bit in cell.ports[port]}
    watched = {bit: name for bit, name in watched.items() if isinstance(bit, int)}
    bits: list[Bit] = [*watched]
    for number, first in enumerate(range(0, len(bits), _WORD)):
        netlist.ports[f"watched_{number}"] = ("output", bits[first : first + _WORD])
    return list(watched.values())


def simulate(verilog: str, watched: int, requests: list[bytes]) -> str:
    """Simulates the stream interface with these requests, and returns the simulation's output.

    Parameters
    ----------
    verilog : str
        The module ``slipstick``, with ports ``watched_0``, ``watched_1`` ... besides.
    watched : int
        Their bits: 32 each, the last one's what is left.
    requests : list of bytes
        Frames, sent as fast as the core takes them.

    Raises
    ------
    TargetError
        If Icarus fails.
    """
    from slipstick_sim.toolchain import ToolError, run_tool

    data = b"".join(requests)
    places = [(first, min(_WORD, watched - first)) for first in range(0, watched, _WORD)]
    bench = _BENCH.format(
        last=len(data) - 1,
        top=watched - 1,
        ports="".join(
            f",\n    .watched_{number}(watched[{first}+:{width}])"
            for number, (first, width) in enumerate(places)
        ),
        reset=RESET_CYCLES,
        silence=_SILENCE,
    )
    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "bench.v").write_text(verilog + bench, "utf-8")
        (folder / "bytes.hex").write_text(data.hex("\n"), "utf-8")
        try:
            run_tool([tools.ICARUS.find(), "-g2005", "-o", "bench", "bench.v"], cwd=folder)
            return run_tool([tools.ICARUS_RUNTIME.find(), "-n", "bench"], cwd=folder)
        except ToolError as error:
            raise TargetError(f"unknown values cannot be looked for: {error}") from None


def answered_bytes(said: str) -> tuple[bytes, list[str]]:
    """Reads the bytes that the core answered, and names those of which a bit was unknown.

    An unknown byte becomes 0 among the bytes, so that the answers behind it are still found.
    """
    found = re.findall(r"^byte (\w\w)$", said, re.MULTILINE)
    known = [re.fullmatch("[0-9a-f]{2}", byte) is not None for byte in found]
    data = bytes(
        int(byte, 16) if is_known else 0 for byte, is_known in zip(found, known, strict=True)
    )
    return data, [f"byte {place} of the answers" for place, yes in enumerate(known) if not yes]
