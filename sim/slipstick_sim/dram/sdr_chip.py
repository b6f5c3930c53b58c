"""SDR SDRAM as its data sheet has it: contents, and every rule of timing checked in every cycle."""

from typing import Any

from amaranth.hdl import Array, Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from slipstick_rtl.dram.chips import SdrChip
from slipstick_rtl.dram.sdr_signals import SdrSignature
from slipstick_rtl.primitives.delay import delay

from .violation import Violation

CELLS = "sdr_cells"
_REFRESHES_OWED = 8
"""So many may be late; JEDEC 21-C, 3.11.5."""
_AGE_BITS = 12
_BANKS_CLOSED_BY = 10
"""Bit of the address."""


def cells_verilog(chip: SdrChip) -> str:
    """Returns the Verilog of a chip's contents: a memory that starts with zeros."""
    bits, address = chip.data_bits, chip.word_address_bits
    return f"""\
module {CELLS} (
    input wire clk, input wire [{bits // 8 - 1}:0] enable, input wire [{address - 1}:0] address,
    input wire [{bits - 1}:0] written, output reg [{bits - 1}:0] read
);
    reg [{bits - 1}:0] cells [0:{(1 << address) - 1}];
    integer k;
    always @(posedge clk) begin
        for (k = 0; k < {bits // 8}; k = k + 1)
            if (enable[k]) cells[address][8 * k +: 8] <= written[8 * k +: 8];
        read <= cells[address];
    end
endmodule
"""


class SdrModel(wiring.Component):
    """The chip, with the registers of the FPGA's pins before and behind it.

    Parameters
    ----------
    chip : SdrChip
    hertz : int
        Of the clock: times become cycles.

    Members
    -------
    pins : In(SdrSignature)
    violation : Out
        The first ``Violation``; it stays.
    refreshes : Out
        REFRESHes so far.
    """

    pins: Any
    violation: Signal
    refreshes: Signal

    def __init__(self, *, chip: SdrChip, hertz: int) -> None:
        self._chip, self._hertz = chip, hertz
        self._violations: list[tuple[Value, Violation]] = []
        super().__init__(
            {
                "pins": In(SdrSignature(chip)),
                "violation": Out(range(max(Violation) + 1)),
                "refreshes": Out(32),
            }
        )

    @property
    def verilog(self) -> str:
        """Returns what goes beside the Verilog of this."""
        return cells_verilog(self._chip)

    def _cycles(self, nanoseconds: float) -> int:
        return self._chip.cycles(nanoseconds, self._hertz)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chip = self._chip
        latency = chip.cas_latency(self._hertz)
        pin = dict[str, Any]()
        for name in self.pins.signature.members:
            if name != "data_i":
                own = getattr(self.pins, name)
                # at first no command
                init = int(name.endswith("_n"))
                pin[name] = Signal.like(own, name=f"pin_{name}", init=init)
                m.d.sync += pin[name].eq(own)
        code = Cat(pin["ras_n"], pin["cas_n"], pin["we_n"])
        commands = {
            name: ~pin["cs_n"] & (code == Const(levels, 3))
            for name, levels in (
                ("active", 0b110),
                ("read", 0b101),
                ("write", 0b001),
                ("precharge", 0b010),
                ("refresh", 0b100),
                ("mode", 0b000),
            )
        }
        some = ~pin["cs_n"] & (code != 0b111)
        self._require(some, pin["cke"], Violation.CKE)
        rows = self._banks(m, pin, commands)
        self._initialise(m, pin, commands, latency)
        self._refreshes(m, commands)
        # contents
        column = pin["address"][: chip.columns.bit_length() - 1]
        read, written = Signal(chip.data_bits), commands["write"]
        m.submodules.cells = Instance(
            CELLS,
            i_clk=ClockSignal(),
            i_enable=Mux(written, ~pin["mask"], 0),
            i_address=Cat(column, pin["bank"], rows),
            i_written=pin["data_o"],
            o_read=read,
        )
        drives = delay(m, commands["read"], latency, "drives")
        held = delay(m, read, latency - 1, "read")
        self._require(drives, ~pin["data_oe"], Violation.CONTENTION)
        m.d.sync += self.pins.data_i.eq(Mux(drives, held, 0))
        wrong, number = Const(0, 1), Const(0, len(self.violation))
        for broken, violation in self._violations:
            wrong, number = wrong | broken, Mux(broken, violation, number)
        with m.If((self.violation == 0) & wrong):
            m.d.sync += self.violation.eq(number)
        return m

    def _require(self, when: Value, rule: Value, violation: Violation) -> None:
        self._violations.append((when & ~rule, violation))

    def _age(self, m: Module, event: Value, name: str) -> Signal:
        """Cycles since an event; the largest number stands for that and more, also at first."""
        age = Signal(_AGE_BITS, init=-1, name=name)
        with m.If(event):
            m.d.sync += age.eq(1)
        with m.Elif(~age.all()):
            m.d.sync += age.eq(age + 1)
        return age

    def _banks(self, m: Module, pin: dict[str, Any], commands: dict[str, Value]) -> Value:
        """Each bank's row, and the rules between commands; returns the row of the bank at hand."""
        chip = self._chip
        rows = list[Value]()
        closes_all = pin["address"][_BANKS_CLOSED_BY]
        any_active = self._age(m, commands["active"], "since_any_active")
        for k in range(chip.banks):
            here = pin["bank"] == k
            row = Signal(chip.rows.bit_length() - 1, name=f"row_{k}")
            is_open, closing = Signal(name=f"open_{k}"), Signal(name=f"closing_{k}")
            active = commands["active"] & here
            used = (commands["read"] | commands["write"]) & here
            ages = self._age(m, active, f"since_active_{k}")
            writes = self._age(m, commands["write"] & here, f"since_write_{k}")
            told = commands["precharge"] & (closes_all | here)
            # a PRECHARGE of its own, as soon as it may be
            itself = closing & (ages >= self._cycles(chip.t_ras))
            itself &= writes >= self._cycles(chip.t_wr)
            closes = (told | itself) & is_open
            closed = self._age(m, closes, f"since_close_{k}")
            with m.If(active):
                m.d.sync += [is_open.eq(1), row.eq(pin["address"])]
            with m.Elif(closes):
                m.d.sync += [is_open.eq(0), closing.eq(0)]
            with m.If(used & closes_all):
                m.d.sync += closing.eq(1)
            self._require(active, ~is_open, Violation.OPEN)
            self._require(active, closed >= self._cycles(chip.t_rp), Violation.T_RP)
            self._require(active, ages >= self._cycles(chip.t_rc), Violation.T_RC)
            self._require(used, is_open & ~closing, Violation.CLOSED)
            self._require(used, ages >= self._cycles(chip.t_rcd), Violation.T_RCD)
            self._require(told & is_open, ages >= self._cycles(chip.t_ras), Violation.T_RAS)
            self._require(told & is_open, writes >= self._cycles(chip.t_wr), Violation.T_WR)
            resting = commands["refresh"] | commands["mode"]
            self._require(resting, ~is_open, Violation.OPEN)
            self._require(resting, closed >= self._cycles(chip.t_rp), Violation.T_RP)
            rows.append(row)
        self._require(commands["active"], any_active >= self._cycles(chip.t_rrd), Violation.T_RRD)
        return Array(rows)[pin["bank"]]

    def _initialise(
        self, m: Module, pin: dict[str, Any], commands: dict[str, Value], latency: int
    ) -> None:
        """Requires the order of commands, and the mode, that come after power-up."""
        closed, ready, refreshes = Signal(), Signal(), Signal(2)
        with m.If(commands["precharge"] & pin["address"][_BANKS_CLOSED_BY]):
            m.d.sync += closed.eq(1)
        with m.If(commands["refresh"] & ~refreshes[1]):
            m.d.sync += refreshes.eq(refreshes + 1)
        with m.If(commands["mode"]):
            m.d.sync += ready.eq(1)
        self._require(commands["refresh"], closed, Violation.NOT_INITIALISED)
        self._require(commands["mode"], closed & refreshes[1], Violation.NOT_INITIALISED)
        self._require(commands["active"], ready, Violation.NOT_INITIALISED)
        self._require(
            commands["mode"],
            (pin["address"] == latency << 4) & (pin["bank"] == 0),
            Violation.MODE,
        )

    def _refreshes(self, m: Module, commands: dict[str, Value]) -> None:
        chip = self._chip
        some = Cat(commands.values()).any()
        with m.If(commands["refresh"]):
            m.d.sync += self.refreshes.eq(self.refreshes + 1)
        age = self._age(m, commands["refresh"], "since_refresh")
        self._require(some, age >= self._cycles(chip.t_rfc), Violation.T_RFC)
        interval = round(chip.refresh_ms * 1e-3 * self._hertz / chip.rows)
        passed, owed = Signal(range(interval)), Signal(range(_REFRESHES_OWED + 2))
        begun = Signal()
        with m.If(commands["active"]):
            m.d.sync += begun.eq(1)
        due = passed == interval - 1
        m.d.sync += passed.eq(Mux(due, 0, passed + 1))
        with m.If(begun & due & ~commands["refresh"]):
            m.d.sync += owed.eq(owed + 1)
        with m.Elif(commands["refresh"] & ~due & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        self._require(begun, owed <= _REFRESHES_OWED, Violation.REFRESH_LATE)
