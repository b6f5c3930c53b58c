"""LiteDRAM's controller for DDR3 with what it needs around it: words here, DFI there."""

from typing import Any

from amaranth.hdl import ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .ddr3 import PHASES, Ddr3Settings, ddr3_verilog
from .ddr3_initialiser import Ddr3Initialiser
from .ddr3_leveller import LEVEL, Ddr3Leveller
from .ddr3_signals import Ddr3Signature, command_layout

COMMAND_PINS = ("ras_n", "cas_n", "we_n", "address", "bank")


class Ddr3Controller(wiring.Component):
    """Reads and writes words of ``word_bits``, one in two cycles if they lie side by side.

    Commands are executed in their order. Refreshes go between them.

    Parameters
    ----------
    settings : Ddr3Settings
    power_up_seconds : float, optional
        As of ``Ddr3Initialiser``.

    Members
    -------
    commands : In(stream of command_layout)
        None is taken before the chip is initialised.
    written : In
        ``data, enable``: what the oldest WRITE that is not done writes, with an enable per byte. It
        must be there from the cycle after its command was taken on.
    write_taken : Out
        That word has been written; the next is wanted two cycles later, or after that.
    read_valid, read_data : Out
        What was read, in the order of the commands; it does not wait.
    ready : Out
        The chip is initialised, and its read delays are set or have failed.
    failed : Out
        With ``ready``: a bit for each byte of the data pins that cannot be read.
    levels : Out(array of LEVEL)
        What was found for each byte.
    chip : Out(Ddr3Signature)

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    """

    commands: stream.Interface
    written: data.View
    write_taken: Signal
    read_valid: Signal
    read_data: Signal
    ready: Signal
    failed: Signal
    levels: data.View
    chip: Any

    def __init__(self, *, settings: Ddr3Settings, power_up_seconds: float | None = None) -> None:
        self.settings = settings
        self.verilog = ddr3_verilog(settings)
        seconds = {} if power_up_seconds is None else {"power_up_seconds": power_up_seconds}
        self._initialiser = Ddr3Initialiser(settings=settings, **seconds)
        self._leveller = Ddr3Leveller(settings=settings)
        bits, groups = settings.word_bits, settings.chip.groups
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout(settings))),
                "written": In(data.StructLayout({"data": bits, "enable": bits // 8})),
                "write_taken": Out(1),
                "read_valid": Out(1),
                "read_data": Out(bits),
                "ready": Out(1),
                "failed": Out(groups),
                "levels": Out(data.ArrayLayout(LEVEL, groups)),
                "chip": Out(Ddr3Signature(settings)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if platform is not None:
            platform.add_file(f"{self.settings.name}.v", self.verilog)
        m.submodules.initialiser = first = self._initialiser
        m.submodules.leveller = leveller = self._leveller
        initialised, chip, own = Signal(), self.chip, leveller.commands
        m.d.sync += [initialised.eq(first.done), self.ready.eq(leveller.done)]
        connect(m, leveller.delays, flipped(chip.delays))
        phases = [getattr(chip, f"phase{k}") for k in range(PHASES)]
        given = [
            {name: Signal.like(getattr(phase, name)) for name in COMMAND_PINS} for phase in phases
        ]
        taken, data_taken = Signal(), Signal()
        whole = Const((1 << len(self.written.enable)) - 1)
        m.submodules.controller = Instance(
            self.settings.name,
            i_sys_clk=ClockSignal(),
            i_sys_rst=~initialised,
            i_command_valid=Mux(self.ready, self.commands.valid, own.valid),
            o_command_ready=taken,
            i_command_write=Mux(self.ready, self.commands.payload.write, own.payload.write),
            i_command_address=Mux(self.ready, self.commands.payload.address, own.payload.address),
            o_written_ready=data_taken,
            i_written_data=Mux(self.ready, self.written.data, leveller.written),
            i_written_enable=Mux(self.ready, self.written.enable, whole),
            o_read_valid=leveller.read_valid,
            o_read_data=self.read_data,
            **{
                f"o_phase{k}_{name}": signal
                for k, pins in enumerate(given)
                for name, signal in pins.items()
            },
            o_dfi_read=chip.read,
            o_dfi_write=chip.write,
            o_dfi_written=chip.written,
            o_dfi_mask=chip.mask,
            i_answer_data=chip.read_data,
        )
        m.d.comb += [
            self.commands.ready.eq(taken & self.ready),
            own.ready.eq(taken & ~self.ready),
            leveller.start.eq(initialised),
            leveller.write_taken.eq(data_taken),
            leveller.read_data.eq(self.read_data),
            self.write_taken.eq(data_taken & self.ready),
            self.read_valid.eq(leveller.read_valid & self.ready),
            self.failed.eq(leveller.failed),
            self.levels.eq(leveller.levels),
            chip.reset_n.eq(first.reset_n),
            chip.cke.eq(first.cke),
            chip.odt.eq(initialised),
        ]
        for k, (phase, pins) in enumerate(zip(phases, given, strict=True)):
            for name, signal in pins.items():
                before = getattr(first.phase, name) if k == 0 else signal
                m.d.comb += getattr(phase, name).eq(Mux(initialised, signal, before))
        return m
