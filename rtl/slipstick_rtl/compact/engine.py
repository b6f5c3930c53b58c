"""The compact engine: everything behind the link, around one memory with one port."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from ..config import Configuration
from ..isa import STREAMS, Opcode
from ..layouts import EVENTS
from ..link.interfaces import ENGINE
from ..link.protocol import Space
from ..postprocess.lane import TAP_SHIFT
from ..postprocess.multiplier import VALUE_BITS
from ..primitives.delay import delay
from .accumulators import CompactAccumulators
from .convolution import Convolution
from .fetcher import TurnFetcher
from .instruction import InstructionRegister
from .memory_map import MemoryMap
from .multipliers import SUM_LATENCY, Multipliers
from .nest import CompactNest
from .parameters import CompactParameters
from .port import MemoryPort
from .requantizer import CompactRequantizer, TapSum
from .results import Results
from .run_counters import RunCounters
from .store import Store


class CompactEngine(wiring.Component):
    """Executes one instruction at a time; each cycle makes one access to the memory.

    The link's accesses come first where a window would be read, and wait for the engine's others;
    while they wait, no result is begun.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    writes, reads, read_data, run, pcs, clear, status
        As of ``ENGINE``; the next byte is read when that of ``read_data`` has been taken.
    events : Out(EVENTS)
    """

    writes: stream.Interface
    reads: stream.Interface
    read_data: stream.Interface
    run: Signal
    pcs: data.View
    clear: Signal
    status: data.View
    events: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._store = Store(words=MemoryMap(c).words, word_bytes=c.columns)
        self._port = MemoryPort(configuration=c)
        self._fetcher = TurnFetcher(configuration=c)
        self._instruction = InstructionRegister(configuration=c)
        self._nest = CompactNest(configuration=c)
        self._convolution = Convolution(configuration=c)
        self._results = Results(configuration=c)
        self._multipliers = Multipliers(configuration=c)
        sums: data.ArrayLayout = self._multipliers.sums.shape()
        self._accumulators = CompactAccumulators(configuration=c, sums=sums)
        self._parameters = CompactParameters(configuration=c)
        self._taps = TapSum()
        self._requantizer = CompactRequantizer(configuration=c, sums=sums)
        self._draining = Signal()
        # the tap that has been read is looked up
        self._uses_table = Signal()
        self._parts: dict[str, Any] = {
            "store": self._store,
            "port": self._port,
            "fetcher": self._fetcher,
            "instruction": self._instruction,
            "nest": self._nest,
            "convolution": self._convolution,
            "results": self._results,
            "multipliers": self._multipliers,
            "accumulators": self._accumulators,
            "parameters": self._parameters,
            "taps": self._taps,
            "requantizer": self._requantizer,
        }
        super().__init__({**ENGINE.members, "events": Out(EVENTS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, part in self._parts.items():
            m.submodules[name] = part
        self._connect_run(m)
        self._connect_nest(m)
        self._connect_memory(m)
        self._connect_array(m)
        self._connect_results(m)
        return m

    def _connect_run(self, m: Module) -> None:
        fetcher, fields = self._fetcher, self._instruction
        is_table = fetcher.is_post & (fetcher.opcode == Opcode.TABLE)
        start, ended = fetcher.start, self._convolution.finished | self._results.finished
        # until then the accumulators' addresses are a CONVOLVE's
        ended = delay(m, ended | start & is_table, SUM_LATENCY, "ended")
        # settled long before the instruction starts; all ends of loops hang on it
        m.d.sync += self._draining.eq(fetcher.is_post & (fetcher.opcode == Opcode.DRAIN))
        m.d.comb += [
            fetcher.run.eq(self.run),
            fetcher.clear.eq(self.clear),
            fetcher.pcs.eq(self.pcs),
            fetcher.finished.eq(ended),
            fetcher.word.eq(self._port.half_word),
            fields.word.eq(self._port.half_word),
            fields.index.eq(fetcher.index),
            fields.write.eq(fetcher.write),
            fields.is_post.eq(fetcher.is_post),
            self._convolution.start.eq(start & ~fetcher.is_post),
            self._results.start.eq(start & fetcher.is_post & ~is_table),
            self.events.matrix_start.eq(start & ~fetcher.is_post),
            self.events.post_start.eq(start & fetcher.is_post),
            self.events.matrix_done.eq(fetcher.finished & ~fetcher.is_post),
            self.events.post_done.eq(fetcher.finished & fetcher.is_post),
        ]
        with m.If(start & is_table):
            first = MemoryMap(self._configuration).weights
            m.d.sync += self._port.table.eq(fields.post.table_address + first)
        m.submodules.counters = counters = RunCounters()
        m.d.comb += [
            counters.run.eq(self.run),
            counters.active.eq(fetcher.active),
            counters.streaming.eq(self._convolution.step),
            counters.post_start.eq(self.events.post_start),
            counters.post_done.eq(self.events.post_done),
            self.status.running.eq(counters.running),
            self.status.bad_instruction.eq(fetcher.bad),
            self.status.done.eq(fetcher.done),
            self.status.cycles.eq(counters.cycles),
            # one by one: they have fewer bits here
            *(
                self.status.stream_cycles[stream].eq(counters.stream_cycles[stream])
                for stream in range(len(STREAMS))
            ),
        ]

    def _connect_nest(self, m: Module) -> None:
        nest, convolution, results = self._nest, self._convolution, self._results
        of_convolution = ("row_end", "rows_end", "kernel_end", "kernel_row_end", "end")
        of_results = ("tap_row_end", "tap_end", "rows_end", "end", "channel")
        m.d.comb += [
            nest.matrix.eq(self._instruction.matrix),
            nest.post.eq(self._instruction.post),
            nest.convolving.eq(~self._fetcher.is_post),
            nest.draining.eq(self._draining),
            nest.load.eq(self._fetcher.start),
            nest.step.eq(convolution.step | results.step),
            convolution.fields.eq(self._instruction.matrix),
            results.fields.eq(self._instruction.post),
            results.draining.eq(self._draining),
            *(getattr(convolution, name).eq(getattr(nest, name)) for name in of_convolution),
            *(getattr(results, name).eq(getattr(nest, name)) for name in of_results),
        ]

    def _connect_memory(self, m: Module) -> None:
        port, store, fetcher = self._port, self._store, self._fetcher
        convolution, results = self._convolution, self._results
        byte = self.writes.payload
        connect(m, flipped(self.writes), port.link_writes)
        self._connect_reads(m)
        m.d.comb += [
            port.fetch.eq(fetcher.request),
            port.instruction_word.eq(fetcher.address),
            port.load.eq(convolution.reading_weights),
            port.weight_word.eq(convolution.weight_word),
            port.window.eq(convolution.step),
            port.read.eq(results.reading_tap),
            port.read_address.eq(self._nest.address),
            port.look_up.eq(results.look_up & self._uses_table),
            # byte + 128, in the half of even or odd taps
            port.entry.eq(Cat(port.byte_read[:-1], ~port.byte_read[-1], results.odd)),
            port.write.eq(results.write),
            port.write_address.eq(results.address),
            port.word_read.eq(store.data),
            store.address.eq(port.address),
            store.enables.eq(port.enables),
            store.byte.eq(port.store_byte),
            convolution.stall.eq(port.waiting),
            results.hold.eq(port.waiting),
            self._parameters.write.enable.eq(self.writes.valid & (byte.space == Space.PARAMETERS)),
            self._parameters.write.address.eq(byte.address),
            self._parameters.write.offset.eq(byte.offset),
            self._parameters.write.data.eq(byte.data),
        ]

    def _connect_reads(self, m: Module) -> None:
        port = self._port
        arriving = delay(m, port.link_reading, 1, "arriving")
        room = ~arriving & ~self.read_data.valid
        m.d.comb += [
            port.link_reads.valid.eq(self.reads.valid & room),
            port.link_reads.payload.eq(self.reads.payload),
            self.reads.ready.eq(port.link_reads.ready & room),
        ]
        with m.If(arriving):
            m.d.sync += [self.read_data.valid.eq(1), self.read_data.payload.eq(port.byte_read)]
        with m.Elif(self.read_data.ready):
            m.d.sync += self.read_data.valid.eq(0)

    def _connect_array(self, m: Module) -> None:
        """Windows and weights a cycle after they were asked for; sums SUM_LATENCY later."""
        nest, convolution, results = self._nest, self._convolution, self._results
        array, accumulators = self._multipliers, self._accumulators
        convolving = ~self._fetcher.is_post
        fields = self._instruction.matrix
        inside = delay(m, convolution.inside, 1, "inside", reset_less=True)
        load = delay(m, convolution.load, 1, "load")
        for r in range(self._configuration.rows):
            operand = array.operands[r]
            byte = Mux(inside, self._port.operands[r], fields.padding_value)
            m.d.comb += operand.eq(Mux(convolving, byte, self._requantizer.operands[r]))
        m.d.comb += [
            array.load.eq(load | results.load_digits.replicate(len(load))),
            array.weights.eq(self._store.data),
            array.diagonal.eq(fields.diagonal),
            array.digits.eq(self._parameters.digits),
            array.use_digits.eq(~convolving),
            accumulators.sums.eq(array.sums),
            # the words are read in the cycle before their sums come
            accumulators.add.eq(delay(m, convolution.step, SUM_LATENCY, "step")),
            accumulators.first.eq(
                delay(m, convolution.first, SUM_LATENCY, "first", reset_less=True)
            ),
            accumulators.address.eq(
                Mux(
                    convolving,
                    delay(m, nest.place, SUM_LATENCY, "place", reset_less=True),
                    nest.place,
                )
            ),
            accumulators.column.eq(results.column),
        ]

    def _connect_results(self, m: Module) -> None:
        results, taps, requantizer = self._results, self._taps, self._requantizer
        fields = self._instruction.post
        byte = Signal(signed(VALUE_BITS), reset_less=True)
        result = Signal(8, reset_less=True)
        read = self._port.byte_read.as_signed()
        m.d.sync += byte.eq(Mux(fields.shift_taps, read << TAP_SHIFT, read))
        with m.If(requantizer.done):
            m.d.sync += result.eq(requantizer.result)
        looked_up = Mux(self._uses_table, self._port.half_word.as_signed(), byte)
        m.d.comb += [
            self._uses_table.eq(Mux(results.odd, fields.use_table[1], fields.use_table[0])),
            taps.tap.eq(Mux(self._draining, self._accumulators.word, looked_up)),
            taps.valid.eq(results.combine),
            taps.first.eq(results.combine_first),
            taps.maximum.eq(fields.take_maximum & ~self._draining),
            requantizer.value.eq(taps.value),
            requantizer.valid.eq(delay(m, results.complete, 1, "complete")),
            self._parameters.address.eq(results.parameter),
            requantizer.bias.eq(self._parameters.bias),
            requantizer.shift.eq(self._parameters.shift),
            requantizer.rounding.eq(fields.rounding),
            requantizer.zero_point.eq(fields.zero_point),
            requantizer.minimum.eq(fields.minimum),
            requantizer.maximum.eq(fields.maximum),
            requantizer.sums.eq(self._multipliers.sums),
            results.done.eq(requantizer.done),
            self._port.byte.eq(result),
        ]
