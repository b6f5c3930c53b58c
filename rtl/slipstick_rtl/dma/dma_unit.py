"""The DMA with its DRAM: instructions as bytes of the link on one side, the chip on the other."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from ..dram.chips import Ddr3Chip, SdrChip
from ..dram.ddr3 import Ddr3Settings
from ..dram.ddr3_memory import Ddr3Memory
from ..dram.litedram import LiteDramSettings
from ..dram.sdr_memory import SdrMemory
from ..link.layouts import ProgramCounters
from .activation_writer import chunk_write_layout
from .engine import DmaEngine
from .layouts import INSTRUCTION_WORD, TRANSFER, WEIGHT_GROUP, chunk_bytes
from .transfer import TRANSFER_BYTES, WORD_BYTES

INSTRUCTION_BYTE = data.StructLayout({"last": 1, "ends_word": 1, "data": 8})
"""A byte of an instruction; ``last`` with its last one."""


def dram_settings(configuration: Configuration) -> LiteDramSettings | Ddr3Settings:
    """Returns the settings of a configuration's DRAM controller; ValueError if it has no DRAM."""
    chip = configuration.dram_chip
    if isinstance(chip, SdrChip):
        return LiteDramSettings(chip=chip, hertz=configuration.clock_hz)
    if isinstance(chip, Ddr3Chip):
        return Ddr3Settings(chip=chip, hertz=configuration.ddr3_hz)
    raise ValueError("dram must name a chip, not be empty")


class DmaUnit(wiring.Component):
    """Engine and memory. With DDR3, who holds it defines the domain ``DDR3_DOMAIN``.

    Parameters
    ----------
    configuration : Configuration
        With DRAM.
    power_up_seconds : float, optional
        As of ``SdrInitialiser`` or ``Ddr3Initialiser``.

    Members
    -------
    bytes : In(stream of INSTRUCTION_BYTE)
        They wait while the instruction before them is executed.
    busy : Out
        An instruction has come, and it or its list has not ended.
    chip : Out(SdrSignature) or Out(Ddr3Signature)
    clear, status, listing, cycles, activation_writes, activation_reads, activation_read_valid,
    activation_chunk, activations_settled, weight_writes, instruction_writes, run, pcs, running,
    bad_instruction
        Of :class:`.engine.DmaEngine`.
    """

    bytes: stream.Interface
    busy: Signal
    chip: Any
    clear: Signal
    status: Signal
    listing: Signal
    cycles: Signal
    activation_writes: stream.Interface
    activation_reads: stream.Interface
    activation_read_valid: Signal
    activation_chunk: Signal
    activations_settled: Signal
    weight_writes: stream.Interface
    instruction_writes: stream.Interface
    run: Signal
    pcs: data.View
    running: Signal
    bad_instruction: Signal

    def __init__(
        self, *, configuration: Configuration, power_up_seconds: float | None = None
    ) -> None:
        self.settings = settings = dram_settings(configuration)
        self._engine = DmaEngine(configuration=configuration, settings=settings)
        self._memory: SdrMemory | Ddr3Memory
        if isinstance(settings, Ddr3Settings):
            self._memory = Ddr3Memory(settings=settings, power_up_seconds=power_up_seconds)
        else:
            self._memory = SdrMemory(settings=settings, power_up_seconds=power_up_seconds)
        super().__init__(
            {
                "bytes": In(stream.Signature(INSTRUCTION_BYTE)),
                "busy": Out(1),
                "chip": Out(self._memory.chip.signature),
                "clear": In(1),
                "status": Out(2),
                "listing": Out(1),
                "cycles": Out(32),
                "activation_writes": Out(stream.Signature(chunk_write_layout(configuration))),
                "activation_reads": Out(stream.Signature(24)),
                "activation_read_valid": In(1),
                "activation_chunk": In(8 * chunk_bytes(configuration)),
                "activations_settled": In(1),
                "weight_writes": Out(stream.Signature(WEIGHT_GROUP)),
                "instruction_writes": Out(stream.Signature(INSTRUCTION_WORD)),
                "run": Out(1),
                "pcs": Out(ProgramCounters),
                "running": In(1),
                "bad_instruction": In(1),
            }
        )

    @property
    def verilog(self) -> str:
        """LiteDRAM's, which goes beside the Verilog of this."""
        return self._memory.verilog

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.engine, m.submodules.memory = engine, memory = self._engine, self._memory
        connect(m, engine.bursts, memory.bursts)
        connect(m, engine.writes, memory.writes)
        connect(m, memory.reads, engine.reads)
        connect(m, memory.chip, flipped(self.chip))
        if isinstance(memory, Ddr3Memory):
            m.d.sync += engine.faulty.eq(memory.failed.any())
        connect(m, engine.activation_writes, flipped(self.activation_writes))
        connect(m, engine.activation_reads, flipped(self.activation_reads))
        connect(m, engine.weight_writes, flipped(self.weight_writes))
        connect(m, engine.instruction_writes, flipped(self.instruction_writes))
        word, last, whole = Signal(8 * WORD_BYTES), Signal(), Signal()
        m.d.comb += [
            self.bytes.ready.eq(~whole),
            engine.given.valid.eq(whole),
            engine.given.payload.data.eq(word),
            engine.given.payload.last.eq(last),
            self.busy.eq(whole | engine.busy),
            self.status.eq(engine.status),
            self.listing.eq(engine.listing),
            self.cycles.eq(engine.cycles),
            self.run.eq(engine.run),
            self.pcs.eq(engine.pcs),
            *(
                getattr(engine, name).eq(getattr(self, name))
                for name in (
                    "clear",
                    "activation_read_valid",
                    "activation_chunk",
                    "activations_settled",
                    "running",
                    "bad_instruction",
                )
            ),
        ]
        with m.If(self.bytes.valid & self.bytes.ready):
            m.d.sync += [
                word.eq(Cat(word[8:], self.bytes.payload.data)),
                last.eq(self.bytes.payload.last),
                whole.eq(self.bytes.payload.ends_word),
            ]
        with m.Elif(engine.given.ready):
            m.d.sync += whole.eq(0)
        return m


assert TRANSFER.size == 8 * TRANSFER_BYTES
