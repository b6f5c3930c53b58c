"""DDR3 behind its PHY: contents, and every rule of timing checked in every cycle of the chip."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.dram.ddr3 import PHASES, Ddr3Settings
from slipstick_rtl.dram.ddr3_initialiser import mode_registers
from slipstick_rtl.dram.ddr3_signals import Ddr3Signature
from slipstick_rtl.primitives.delay import delay

from .ddr3_reads import WINDOW, Ddr3Reads
from .violation import Ddr3Violation as Rule

CELLS = "ddr3_cells"
ROWS_HELD = 64
"""Rows held of each bank: half are its first, half its last. All rows are 512 MB and more."""
_REFRESHES_OWED = 8
"""So many may be late: then no row is open for more than nine intervals either; JEDEC 79-3F, 4.13
and 13.3."""
_ALL_BANKS = 10
"""Bit of the address."""
_LONG_CALIBRATION = 512
_MODE_CYCLES, _NEXT_MODE_CYCLES = 12, 4
_DLL_CYCLES = 512
_TIME_BITS = 32
_BEGIN = 1 << 16
"""First value of the time: events that never were are longer ago than any rule asks."""

_LEVELS = {
    "active": (0, 1, 1),
    "read": (1, 0, 1),
    "write": (1, 0, 0),
    "precharge": (0, 1, 0),
    "refresh": (0, 0, 1),
    "mode": (0, 0, 0),
    "calibrate": (1, 1, 0),
}


def ddr3_cells_verilog(settings: Ddr3Settings, rows_held: int = ROWS_HELD) -> str:
    """Returns the Verilog of a chip's contents: a memory that starts with zeros."""
    bits, address = settings.word_bits, _cell_address_bits(settings, rows_held)
    return f"""\
module {CELLS} (
    input wire clk, input wire [{bits // 8 - 1}:0] enable,
    input wire [{address - 1}:0] write_address, input wire [{bits - 1}:0] written,
    input wire [{address - 1}:0] read_address, output reg [{bits - 1}:0] read
);
    reg [{bits - 1}:0] cells [0:{(1 << address) - 1}];
    integer k;
    always @(posedge clk) begin
        for (k = 0; k < {bits // 8}; k = k + 1)
            if (enable[k]) cells[write_address][8 * k +: 8] <= written[8 * k +: 8];
        read <= cells[read_address];
    end
endmodule
"""


def _cell_address_bits(settings: Ddr3Settings, rows_held: int) -> int:
    return settings.word_address_bits - (settings.chip.rows // rows_held).bit_length() + 1


@dataclass
class _State:
    """A register that the commands of one cycle change one after the other."""

    register: Signal
    value: Value

    def set(self, when: Value, value: Any) -> None:
        self.value = Mux(when, value, self.value)


@dataclass
class _Command:
    """The command of one phase, and its time."""

    now: Value
    bank: Value
    address: Value
    kinds: Mapping[str, Value]

    def __getattr__(self, kind: str) -> Value:
        return self.kinds[kind]


class Ddr3Model(wiring.Component):
    """The chip, and the PHY as its latencies.

    Parameters
    ----------
    settings : Ddr3Settings
    rows_held : int
        Of each bank, half of them at either end; a power of two. ACTIVE of another one is
        ``Ddr3Violation.ROW_NOT_HELD``.

    Members
    -------
    pins : In(Ddr3Signature)
    windows : In(array of WINDOW)
        Of each byte: where its delay must be.
    violation : Out
        The first ``Ddr3Violation``; it stays.
    refreshes : Out
        REFRESHes so far.
    """

    pins: Any
    windows: data.View
    violation: Signal
    refreshes: Signal

    def __init__(self, *, settings: Ddr3Settings, rows_held: int = ROWS_HELD) -> None:
        self._settings, self._rows_held = settings, rows_held
        self._violations = list[tuple[Value, Rule]]()
        self._states = dict[str, _State]()
        self._reads = Ddr3Reads(settings=settings)
        super().__init__(
            {
                "pins": In(Ddr3Signature(settings)),
                "windows": In(data.ArrayLayout(WINDOW, settings.chip.groups)),
                "violation": Out(range(max(Rule) + 1)),
                "refreshes": Out(32),
            }
        )

    @property
    def verilog(self) -> str:
        """Returns what goes beside the Verilog of this."""
        return ddr3_cells_verilog(self._settings, self._rows_held)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        now = Signal(_TIME_BITS, init=_BEGIN)
        m.d.sync += now.eq(now + PHASES)
        commands = [self._command(now + k, getattr(self.pins, f"phase{k}")) for k in range(PHASES)]
        for command in commands:
            self._rest(command)
            self._banks(command)
            self._columns(command)
            self._initialise(command)
        self._wake(m, now)
        self._refresh(m, now, commands)
        self._contents(m, commands)
        for state in self._states.values():
            m.d.sync += state.register.eq(state.value)
        wrong, number = Const(0, 1), Const(0, len(self.violation))
        for broken, violation in self._violations:
            wrong, number = wrong | broken, Mux(broken, violation, number)
        with m.If((self.violation == 0) & wrong):
            m.d.sync += self.violation.eq(number)
        return m

    def _command(self, now: Value, pins: Any) -> _Command:
        code = Cat(pins.ras_n, pins.cas_n, pins.we_n)
        kinds = {name: code == Cat(*map(Const, levels)) for name, levels in _LEVELS.items()}
        return _Command(now, pins.bank, pins.address, kinds | {"some": code != 0b111})

    def _state(self, name: str, shape: Any = _TIME_BITS) -> _State:
        if name not in self._states:
            register = Signal(shape, name=name)
            self._states[name] = _State(register, register)
        return self._states[name]

    def _require(self, when: Value, rule: Value, violation: Rule) -> None:
        self._violations.append((when & ~rule, violation))

    def _since(self, command: _Command, event: str, when: Value, cycles: int, rule: Rule) -> None:
        """Requires that an event is so long ago."""
        passed = (command.now - self._state(event).value)[:_TIME_BITS]
        self._require(when, passed >= cycles, rule)

    def _cycles(self, time: str) -> int:
        return self._settings.chip.chip_cycles(time, self._settings.chip_hertz)

    def _rest(self, command: _Command) -> None:
        """After what the whole chip must rest."""
        some = command.some
        self._since(command, "refreshed", some, self._cycles("t_rfc"), Rule.T_RFC)
        self._since(command, "mode_set", some & ~command.mode, _MODE_CYCLES, Rule.T_MOD)
        self._since(command, "mode_set", command.mode, _NEXT_MODE_CYCLES, Rule.T_MOD)
        self._since(command, "calibrated", some, self._cycles("t_zqcs"), Rule.T_ZQ)
        self._since(command, "long_calibrated", some, _LONG_CALIBRATION, Rule.T_ZQ)
        self._state("refreshed").set(command.refresh, command.now)
        self._state("mode_set").set(command.mode, command.now)
        long = command.address[_ALL_BANKS]
        self._state("calibrated").set(command.calibrate, command.now)
        self._state("long_calibrated").set(command.calibrate & long, command.now)

    def _banks(self, command: _Command) -> None:
        chip = self._settings.chip
        closes_all = command.address[_ALL_BANKS]
        since, cycles = self._since, self._cycles
        since(command, "activated", command.active, cycles("t_rrd"), Rule.T_RRD)
        since(command, "activated_3", command.active, cycles("t_faw"), Rule.T_FAW)
        for k in range(chip.banks):
            here = command.bank == k
            is_open, row = self._state(f"open_{k}", 1), self._state(f"row_{k}", range(chip.rows))
            active = command.active & here
            used = (command.read | command.write) & here
            closes = command.precharge & (closes_all | here) & is_open.value
            resting = command.refresh | command.mode | command.calibrate
            self._require(active | resting, ~is_open.value, Rule.OPEN)
            since(command, f"closed_{k}", active | resting, cycles("t_rp"), Rule.T_RP)
            since(command, f"activated_{k}", active, cycles("t_rc"), Rule.T_RC)
            self._require(used, is_open.value, Rule.CLOSED)
            since(command, f"activated_{k}", used, cycles("t_rcd"), Rule.T_RCD)
            since(command, f"activated_{k}", closes, cycles("t_ras"), Rule.T_RAS)
            since(command, f"read_{k}", closes, cycles("t_rtp"), Rule.T_RTP)
            since(command, f"wrote_{k}", closes, cycles("t_wr") + self._write_ends, Rule.T_WR)
            row.set(active, command.address)
            is_open.set(active, 1)
            is_open.set(closes, 0)
            self._state(f"activated_{k}").set(active, command.now)
            self._state(f"closed_{k}").set(closes, command.now)
            self._state(f"read_{k}").set(command.read & here, command.now)
            self._state(f"wrote_{k}").set(command.write & here, command.now)
        for newer, older in (("2", "3"), ("1", "2"), ("", "1")):
            before = self._state(f"activated_{newer}" if newer else "activated").value
            self._state(f"activated_{older}").set(command.active, before)
        self._state("activated").set(command.active, command.now)
        ends = command.address[self._row_bits - 1 : chip.rows.bit_length() - 1]
        self._require(command.active, (ends == 0) | ends.all(), Rule.ROW_NOT_HELD)

    @property
    def _row_bits(self) -> int:
        return self._rows_held.bit_length() - 1

    @property
    def _interval(self) -> int:
        """Returns the interval of refreshes, in cycles of the chip."""
        return int(1e-9 * self._settings.chip.refresh_ns * self._settings.chip_hertz)

    @property
    def _write_ends(self) -> int:
        """Cycles from WRITE to the end of its data."""
        chip = self._settings.chip
        return chip.cas_write_latency + chip.BURST // chip.transfers_per_clock

    def _columns(self, command: _Command) -> None:
        """Rules between READs and WRITEs of all banks: they share the data pins."""
        chip = self._settings.chip
        used, burst = command.read | command.write, chip.BURST // chip.transfers_per_clock
        turn = chip.cas_latency + burst + 2 - chip.cas_write_latency
        wait = self._cycles("t_wtr") + self._write_ends
        self._require(used, ~command.address[_ALL_BANKS], Rule.AUTO_PRECHARGE)
        self._since(command, "read", command.read, burst, Rule.T_CCD)
        self._since(command, "wrote", command.write, burst, Rule.T_CCD)
        self._since(command, "wrote", command.read, wait, Rule.T_WTR)
        self._since(command, "read", command.write, turn, Rule.T_RTW)
        self._since(command, "dll_reset", used, _DLL_CYCLES, Rule.T_DLLK)
        self._state("read").set(command.read, command.now)
        self._state("wrote").set(command.write, command.now)

    def _initialise(self, command: _Command) -> None:
        """The order after power-up: mode registers 2, 3, 1, 0, and the long calibration."""
        step = self._state("step", 3)
        order = (2, 3, 1, 0)
        values = mode_registers(self._settings.chip, self._settings.chip_hertz)
        for k, number in enumerate(order):
            this = command.mode & (command.bank == number)
            self._require(this, command.address == values[number], Rule.MODE)
            self._require(this, step.value == k, Rule.NOT_INITIALISED)
        self._state("dll_reset").set(command.mode & (command.bank == 0), command.now)
        calibrates = command.calibrate & command.address[_ALL_BANKS]
        self._require(command.calibrate, step.value >= len(order), Rule.NOT_INITIALISED)
        begun = step.value > len(order)
        self._require(command.active | command.refresh, begun, Rule.NOT_INITIALISED)
        step.set(command.mode, step.value + 1)
        step.set(calibrates, len(order) + 1)
        self._require(command.some, self.pins.cke & self.pins.reset_n, Rule.CKE)
        # in a cycle of the controller CKE is the same in all phases
        passed = (command.now - self._state("woken").value)[:_TIME_BITS]
        chip = self._settings.chip
        wakes = chip.cycles(chip.t_rfc + 10, self._settings.chip_hertz)
        self._require(command.some, self._state("awake", 1).value & (passed >= wakes), Rule.T_XPR)

    def _wake(self, m: Module, now: Value) -> None:
        awake, woken = self._state("awake", 1), self._state("woken")
        wakes = self.pins.cke & ~awake.register
        self._require(awake.register, self.pins.cke & self.pins.reset_n, Rule.CKE)
        self._require(wakes, self.pins.reset_n, Rule.CKE)
        woken.set(wakes, now)
        awake.set(wakes, 1)

    def _refresh(self, m: Module, now: Value, commands: list[_Command]) -> None:
        refreshes = Cat(command.refresh for command in commands).any()
        begun = self._state("step", 3).register > 4
        cycles = self._interval // PHASES
        passed, owed = Signal(range(cycles)), Signal(range(_REFRESHES_OWED + 2))
        due = passed == cycles - 1
        m.d.sync += [
            passed.eq(Mux(due, 0, passed + 1)),
            self.refreshes.eq(self.refreshes + refreshes),
        ]
        with m.If(begun & due & ~refreshes):
            m.d.sync += owed.eq(owed + 1)
        with m.Elif(refreshes & ~due & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        self._require(begun, owed <= _REFRESHES_OWED, Rule.REFRESH_LATE)

    def _contents(self, m: Module, commands: list[_Command]) -> None:
        settings, chip, pins = self._settings, self._settings.chip, self.pins
        # rows do not change in the cycle that uses them: tRCD
        rows: Any = Array(self._state(f"row_{k}").register for k in range(chip.banks))
        for k, command in enumerate(commands):
            reads = pins.read if k == settings.read_phase else Const(0)
            writes = pins.write if k == settings.write_phase else Const(0)
            self._violations += [
                (command.read ^ reads, Rule.PHASE),
                (command.write ^ writes, Rule.PHASE),
            ]
        skipped = chip.BURST.bit_length() - 1

        def cell(command: _Command) -> Value:
            row: Value = rows[command.bank]
            column = command.address[skipped : chip.column_bits]
            held = self._row_bits
            return Cat(column, command.bank, row[: held - 1], row[chip.rows.bit_length() - 2])

        read, write = commands[settings.read_phase], commands[settings.write_phase]
        wait = settings.write_latency
        writes = delay(m, write.write, wait, "writes")
        m.submodules.reads = reads = self._reads
        m.submodules.cells = Instance(
            CELLS,
            i_clk=ClockSignal(),
            i_enable=Mux(writes, ~pins.mask, 0),
            i_write_address=delay(m, cell(write), wait, "write_address"),
            i_written=pins.written,
            i_read_address=cell(read),
            o_read=reads.burst,
        )
        m.d.sync += reads.valid.eq(read.read)
        connect(m, flipped(pins.delays), reads.delays)
        m.d.comb += [reads.windows.eq(self.windows), pins.read_data.eq(reads.read_data)]
