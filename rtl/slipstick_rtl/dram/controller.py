"""LiteDRAM's controller with what it needs around it: words on one side, pins on the other."""

from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..primitives.delay import delay
from .litedram import LiteDramSettings, litedram_verilog
from .sdr_initialiser import SdrInitialiser
from .sdr_signals import SdrSignature

_PINS = ("ras_n", "cas_n", "we_n", "address")


def command_layout(settings: LiteDramSettings) -> data.StructLayout:
    """A word to be read or written."""
    return data.StructLayout({"write": 1, "address": settings.chip.word_address_bits})


class DramController(wiring.Component):
    """Reads and writes words of the chip, one a cycle if they lie side by side.

    Commands are executed in their order. Refreshes go between them.

    Parameters
    ----------
    settings : LiteDramSettings
    power_up_seconds : float, optional
        As of ``SdrInitialiser``.

    Members
    -------
    commands : In(stream of command_layout)
        None is taken before the chip is initialised.
    written : In
        ``data, enable``: what the oldest WRITE that is not done writes, with an enable per byte. It
        must be there from the cycle after its command was taken on.
    write_taken : Out
        That word has been written: the next is wanted in the next cycle.
    read_valid, read_data : Out
        What was read, in the order of the commands; it does not wait.
    ready : Out
        The chip is initialised.
    chip : Out(SdrSignature)

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
    chip: Any

    def __init__(
        self, *, settings: LiteDramSettings, power_up_seconds: float | None = None
    ) -> None:
        self.settings = settings
        self.verilog = litedram_verilog(settings)
        seconds = {} if power_up_seconds is None else {"power_up_seconds": power_up_seconds}
        self._initialiser = SdrInitialiser(settings=settings, **seconds)
        bits = settings.chip.data_bits
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout(settings))),
                "written": In(data.StructLayout({"data": bits, "enable": bits // 8})),
                "write_taken": Out(1),
                "read_valid": Out(1),
                "read_data": Out(bits),
                "ready": Out(1),
                "chip": Out(SdrSignature(settings.chip)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if platform is not None:
            platform.add_file(f"{self.settings.name}.v", self.verilog)
        m.submodules.initialiser = first = self._initialiser
        m.d.sync += self.ready.eq(first.done)
        chip, command = self.chip, self.commands
        given = {name: Signal.like(getattr(chip, name)) for name in (*_PINS, "cs_n")}
        masked, reading, taken = Signal.like(chip.mask), Signal(), Signal()
        m.submodules.controller = Instance(
            self.settings.name,
            i_sys_clk=ClockSignal(),
            i_sys_rst=~self.ready,
            i_command_valid=command.valid & self.ready,
            o_command_ready=taken,
            i_command_write=command.payload.write,
            i_command_address=command.payload.address,
            o_written_ready=self.write_taken,
            i_written_data=self.written.data,
            i_written_enable=self.written.enable,
            o_read_valid=self.read_valid,
            o_read_data=self.read_data,
            **{f"o_chip_{name}": signal for name, signal in given.items()},
            o_chip_bank=chip.bank,
            o_chip_wrdata=chip.data_o,
            o_chip_wrdata_en=chip.data_oe,
            o_chip_wrdata_mask=masked,
            o_chip_rddata_en=reading,
            i_answer_data=chip.data_i,
            i_answer_valid=delay(m, reading, self.settings.read_latency, "reading"),
        )
        m.d.comb += [
            command.ready.eq(taken & self.ready),
            chip.cke.eq(1),
            *(
                getattr(chip, name).eq(Mux(self.ready, signal, getattr(first, name)))
                for name, signal in given.items()
            ),
            # low while the chip reads
            chip.mask.eq(Mux(chip.data_oe, masked, 0)),
        ]
        return m
