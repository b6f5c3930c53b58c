"""The matrix engine: executes CONVOLVE with weight loader, window reader and array."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import Configuration
from ..layouts import MATRIX_INSTRUCTION
from ..memory.latencies import ACCUMULATOR_READ_LATENCY, WEIGHT_READ_LATENCY
from ..primitives.delay import delay
from .accumulators import accumulate_layout, accumulators_latency
from .pixel_counter import PixelCounter
from .systolic_array import SystolicArray
from .weight_loader import WeightLoader
from .window_reader import WindowReader


class MatrixEngine(wiring.Component):
    """Streams windows through the array, a vector of P x R bytes a cycle.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream)
    post_done : In
        Instructions that the post stream has completed; ``wait`` counts them.
    clear : In
        Zeroes ``done``.
    done : Out
        Instructions completed: their sums can be read.
    busy, streaming, started, completed : Out
    weight_enable, weight_address, weight_data : Out, Out, In
        The weight memory, WEIGHT_READ_LATENCY cycles from address to data.
    bank_rows, bank_bytes : Out, In
        The activation memory's port A.
    control, partial_sums : Out
        For the accumulators.
    """

    post_done: Signal
    clear: Signal
    done: Signal
    busy: Signal
    streaming: Signal
    started: Signal
    completed: Signal
    weight_enable: Signal
    weight_address: Signal
    weight_data: Signal
    bank_rows: data.View
    bank_bytes: data.View
    control: data.View
    partial_sums: data.View
    instructions: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        bits = exact_log2(c.activation_bytes)
        self._loader = WeightLoader(configuration=c)
        self._reader = WindowReader(configuration=c, address_bits=bits)
        self._pixels = PixelCounter(configuration=c, address_bits=bits)
        self._array = SystolicArray(configuration=c)
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "post_done": In(16),
                "clear": In(1),
                "done": Out(16),
                "busy": Out(1),
                "streaming": Out(1),
                "started": Out(1),
                "completed": Out(1),
                "weight_enable": Out(1),
                "weight_address": Out(24),
                "weight_data": In(8 * c.columns),
                "bank_rows": Out(self._reader.bank_rows.shape()),
                "bank_bytes": In(self._reader.bank_bytes.shape()),
                "control": Out(accumulate_layout(c.accumulator_depth)),
                "partial_sums": Out(self._array.partial_sums.shape()),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a vector's address until its sums can be read in every column."""
        return self._control_cycles + accumulators_latency(self._configuration)

    @property
    def _control_cycles(self) -> int:
        return self._reader.latency + self._array.latency - ACCUMULATOR_READ_LATENCY

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.loader = loader = self._loader
        m.submodules.pixels = pixels = self._pixels
        connect(m, loader.instructions, flipped(self.instructions))
        vector = Signal(data.StructLayout({"valid": 1, "starts": 1, "first": 1, "final": 1}))
        waited, swap, ended = Signal(), Signal(), Signal()
        # registered: the first tile takes R cycles to prepare, so it is settled when it is asked
        m.d.sync += waited.eq(~(self.post_done - loader.instruction.wait)[15])
        m.d.comb += [
            swap.eq(loader.prepared & waited & (~vector.valid | pixels.last)),
            loader.swap.eq(swap),
            pixels.instruction.eq(loader.instruction),
            pixels.start.eq(swap),
            pixels.advance.eq(vector.valid),
            ended.eq(vector.valid & vector.final & pixels.last),
            self.streaming.eq(vector.valid),
            self.started.eq(swap & loader.first_tile),
        ]
        m.d.sync += vector.starts.eq(swap)
        with m.If(swap):
            m.d.sync += [
                vector.valid.eq(1),
                vector.first.eq(loader.first_tile & ~loader.instruction.accumulate),
                vector.final.eq(loader.final_tile),
            ]
        with m.Elif(pixels.last):
            m.d.sync += vector.valid.eq(0)
        self._read_windows(m, vector, swap)
        self._load_weights(m)
        self._count(m, ended)
        return m

    def _read_windows(self, m: Module, vector: Any, swap: Signal) -> None:
        """Window reader and array, and the accumulators' control beside them."""
        m.submodules.reader = reader = self._reader
        m.submodules.array = array = self._array
        loader, pixels = self._loader, self._pixels
        at_work = Signal(MATRIX_INSTRUCTION)
        with m.If(swap):
            m.d.sync += at_work.eq(loader.instruction)
        m.d.comb += [
            reader.table.instruction.eq(loader.instruction),
            reader.table.start.eq(loader.start),
            reader.table.advance.eq(loader.advance),
            reader.table.last.eq(loader.last_lane),
            reader.table.swap.eq(swap),
            reader.base.eq(pixels.base),
            reader.x.eq(pixels.x),
            reader.y.eq(pixels.y),
            reader.height.eq(at_work.height),
            reader.width.eq(at_work.width),
            reader.padding.eq(at_work.padding_value),
            self.bank_rows.eq(reader.bank_rows),
            reader.bank_bytes.eq(self.bank_bytes),
            array.activations.eq(reader.o),
            # a cycle before the windows of the tile
            array.swap.eq(delay(m, vector.valid & vector.starts, reader.latency - 1, "swap")),
            self.partial_sums.eq(array.partial_sums),
        ]
        control = Signal(accumulate_layout(self._configuration.accumulator_depth))
        m.d.comb += [
            control.valid.eq(vector.valid),
            control.first.eq(vector.first),
            control.bank.eq(at_work.bank),
            control.address.eq(pixels.index),
            self.control.eq(delay(m, control, self._control_cycles, "control")),
        ]

    def _load_weights(self, m: Module) -> None:
        """Weight words reach the array just when windows of the same cycle would."""
        loader, array = self._loader, self._array
        # one register after the memory, for the diagonal's gates
        early = self._reader.latency - WEIGHT_READ_LATENCY - 1
        m.d.comb += [
            self.weight_enable.eq(delay(m, loader.reading, early, "reading")),
            self.weight_address.eq(delay(m, loader.address, early, "address", reset_less=True)),
        ]
        late = early + WEIGHT_READ_LATENCY
        row = delay(m, loader.row, late, "row")
        diagonal = delay(m, loader.diagonal, late, "diagonal")
        capture = delay(m, loader.reading & (loader.row == 0), late, "first_row")
        m.d.sync += array.capture.eq(capture)
        for j in range(self._configuration.columns):
            keep = ~diagonal | (row == j)
            byte = Mux(keep, self.weight_data.word_select(j, 8), 0)
            m.d.sync += Value.cast(array.weights[j]).eq(byte)

    def _count(self, m: Module, ended: Signal) -> None:
        """Completions, and whether anything is still under way."""
        landed = delay(m, ended, self.latency, "ended")
        in_flight = Signal(16)
        loader = self._loader
        m.d.comb += [
            self.completed.eq(landed),
            self.busy.eq(Cat(in_flight != 0, loader.prepared, loader.reading).any()),
        ]
        m.d.sync += in_flight.eq(in_flight + self.started - landed)
        with m.If(self.clear):
            m.d.sync += self.done.eq(0)
        with m.Elif(landed):
            m.d.sync += self.done.eq(self.done + 1)
