"""The matrix engine: executes CONVOLVE with weight loader, window reader and array."""

from itertools import product
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import Configuration
from ..latencies import ACCUMULATOR_UPDATE_LATENCY, WEIGHT_READ_LATENCY, weight_skew
from ..layouts import MATRIX_INSTRUCTION
from ..primitives.delay import delay
from ..primitives.delay_memory import long_delay
from ..primitives.fanout import copy_of
from ..primitives.resting import resting, works_for
from .accumulators import accumulate_layout, accumulators_latency, part_origin
from .pixel_counter import PixelCounter
from .systolic_array import SystolicArray
from .tile_control import TileControl
from .weight_loader import WeightLoader
from .window_reader import WindowReader

_VECTOR = data.StructLayout(
    {
        "valid": 1,
        "starts": 1,
        "first": 1,
        "final": 1,
        "pairs": 1,
        "depthwise": 1,
        "kept_rows": 1,
    }
)
"""Flags of the vector that the engine reads in a cycle."""


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
    weight_reads : Out(stream)
        Word addresses for the weight memory.
    weight_data, weight_ninth : In
        [W][C] bytes and ninth bits, WEIGHT_READ_LATENCY + weight_skew cycles after the transfer.
    bank_rows, bank_bytes : Out, In
        The activation memory's port A.
    phase : In
        Toggles every cycle: 0 where the accumulators may get ``control`` of an even vector, if
        there is one pixel.
    control, partial_sums, even_sums : Out
        For the accumulators.
    """

    post_done: Signal
    phase: Signal
    clear: Signal
    done: Signal
    busy: Signal
    streaming: Signal
    started: Signal
    completed: Signal
    weight_data: data.View
    weight_ninth: data.View
    bank_rows: data.View
    bank_bytes: data.View
    control: data.View
    partial_sums: data.View
    even_sums: data.View
    instructions: stream.Interface
    weight_reads: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        bits = exact_log2(c.activation_bytes)
        self._loader = WeightLoader(configuration=c)
        self._kind = data.StructLayout(
            {"diagonal": 1, "from_ninth": 1, "bit": 1, "step": len(self._loader.step)}
        )
        self._tiles = TileControl()
        self._reader = WindowReader(configuration=c, address_bits=bits)
        self._pixels = PixelCounter(configuration=c, address_bits=bits)
        self._array = SystolicArray(configuration=c)
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "post_done": In(16),
                "phase": In(1),
                "clear": In(1),
                "done": Out(16),
                "busy": Out(1),
                "streaming": Out(1),
                "started": Out(1),
                "completed": Out(1),
                "weight_reads": Out(stream.Signature(24)),
                "weight_data": In(data.ArrayLayout(data.ArrayLayout(8, c.columns), c.weight_rows)),
                "weight_ninth": In(data.ArrayLayout(data.ArrayLayout(1, c.columns), c.weight_rows)),
                "bank_rows": Out(self._reader.bank_rows.shape()),
                "bank_bytes": In(self._reader.bank_bytes.shape()),
                "control": Out(accumulate_layout(c.accumulator_depth)),
                "partial_sums": Out(self._array.partial_sums.shape()),
                "even_sums": Out(self._array.even_sums.shape()),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a vector's address until its sums can be read in every column."""
        return self._control_cycles + accumulators_latency(self._configuration)

    @property
    def _control_cycles(self) -> int:
        return self._reader.latency + self._array.latency - ACCUMULATOR_UPDATE_LATENCY

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.loader = loader = self._loader
        m.submodules.tiles = tiles = self._tiles
        m.submodules.pixels = pixels = self._pixels
        self._hand_out(m)
        swap, ended = Signal(), Signal()
        # what the array hangs on is all over the chip, the pixel counter in one place of it: of the
        # two registers that decide, each has one of its own
        last = copy_of(m, platform, pixels.next_last, "last", initial=1)
        permitted = copy_of(m, platform, tiles.next_permitted, "permitted", initial=0)
        vector = self._stream(m, swap, last)
        m.d.comb += [
            loader.swap.eq(swap),
            tiles.swap.eq(swap),
            tiles.post_done.eq(self.post_done),
            pixels.instruction.eq(tiles.instruction),
            pixels.start.eq(permitted & pixels.last),
            pixels.advance.eq(vector.valid),
            ended.eq(vector.valid & vector.final & last),
            self.streaming.eq(vector.valid),
            self.started.eq(swap & tiles.first_tile),
        ]
        self._read_windows(m, vector, swap)
        self._load_weights(m)
        self._count(m, ended)
        return m

    def _stream(self, m: Module, swap: Signal, last: Signal) -> data.View:
        """The vector of this cycle, and when the next tile goes to work: ``swap``."""
        loader, tiles, pixels = self._loader, self._tiles, self._pixels
        vector = Signal(_VECTOR, name="vector")
        # the vector behind a swap is an even one, when the accumulators get to know of it
        next_in_step: Value = self.phase == self._control_cycles % 2
        if self._configuration.pixels > 1:
            next_in_step = Const(1, 1)
        pairs = tiles.first_tile & tiles.instruction.pairs
        m.d.comb += [
            tiles.in_step.eq(next_in_step),
            tiles.prepared.eq(loader.next_prepared & self._reader.table.next_prepared),
            # two registers, so a single look-up table: thousands of registers hang on it
            swap.eq(tiles.permitted & last),
            pixels.pairs.eq(pairs),
        ]
        m.d.sync += vector.starts.eq(swap)
        with m.If(swap):
            m.d.sync += [
                vector.valid.eq(1),
                vector.first.eq(tiles.first_tile & ~tiles.instruction.accumulate),
                vector.final.eq(tiles.final_tile),
                vector.pairs.eq(pairs),
                vector.depthwise.eq(tiles.instruction.depthwise),
                vector.kept_rows.eq(tiles.instruction.kept_rows),
            ]
        with m.Elif(last):
            m.d.sync += vector.valid.eq(0)
        return vector

    def _hand_out(self, m: Module) -> None:
        """Each instruction to loader and lane table as soon as they can take it, then to the tiles.

        Those two are ahead: they prepare an instruction's first tile while the last one of the
        instruction before is at work.
        """
        given, takers = self.instructions, (self._loader, self._reader.table)
        tiles = self._tiles.instructions
        held = Signal(len(takers))
        for k, taker in enumerate(takers):
            ahead = taker.instructions
            m.d.comb += [
                ahead.payload.eq(given.payload),
                ahead.valid.eq(given.valid & ~held[k]),
            ]
            with m.If(ahead.valid & ahead.ready):
                m.d.sync += held[k].eq(1)
        m.d.comb += [
            tiles.payload.eq(given.payload),
            tiles.valid.eq(given.valid & held.all()),
            given.ready.eq(tiles.ready & held.all()),
        ]
        with m.If(given.valid & given.ready):
            m.d.sync += held.eq(0)

    def _read_windows(self, m: Module, vector: Any, swap: Signal) -> None:
        """Window reader and array, and the accumulators' control beside them."""
        m.submodules.reader = reader = self._reader
        m.submodules.array = array = self._array
        tiles, pixels = self._tiles, self._pixels
        at_work = Signal(MATRIX_INSTRUCTION, reset_less=True)
        with m.If(swap):
            m.d.sync += at_work.eq(tiles.instruction)

        def late(bit: Value, name: str) -> Value:
            """Beside its vector."""
            return delay(m, bit, reader.latency, name, reset_less=True)

        m.d.comb += [
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
            array.pairs.eq(delay(m, vector.pairs, reader.latency - 1, "pairs", reset_less=True)),
            array.depthwise.eq(late(vector.depthwise, "depthwise")),
            self.partial_sums.eq(array.partial_sums),
            self.even_sums.eq(array.even_sums),
        ]
        turn = Cat(pixels.half, pixels.block, vector.kept_rows)
        m.d.comb += Cat(array.half, array.block, array.kept_rows).eq(
            long_delay(m, turn, reader.latency, "turn")
        )
        depth = self._configuration.accumulator_depth
        control, origin = Signal(accumulate_layout(depth)), Signal(range(depth), reset_less=True)
        with m.If(swap):
            m.d.sync += origin.eq(part_origin(tiles.instruction, depth))
        m.d.comb += [
            control.valid.eq(vector.valid & pixels.complete),
            control.first.eq(vector.first),
            control.pair.eq(vector.pairs),
            control.bank.eq(at_work.bank[0]),
            control.address.eq(pixels.index | Mux(vector.pairs, origin >> 1, origin)),
            self.control.eq(delay(m, control, self._control_cycles, "control")),
        ]

    def _load_weights(self, m: Module) -> None:
        """Weight words from the memory into the array.

        A tile's second word, read the cycle after a swap, is in the array when that swap frees what
        it replaces: WEIGHT_READ_LATENCY is such that it is.
        """
        c, loader, array = self._configuration, self._loader, self._array
        connect(m, loader.reads, flipped(self.weight_reads))
        taken = self.weight_reads.valid & self.weight_reads.ready
        m.d.comb += [
            array.shift.eq(delay(m, taken & loader.whole, WEIGHT_READ_LATENCY, "shift")),
            array.last.eq(delay(m, loader.last, WEIGHT_READ_LATENCY, "last", reset_less=True)),
        ]
        # what a word is, beside its bytes; a cycle ahead of them
        kind = Signal(self._kind)
        m.d.comb += [
            kind.diagonal.eq(loader.diagonal),
            kind.step.eq(loader.step),
            kind.from_ninth.eq(loader.from_ninth),
            kind.bit.eq(loader.from_ninth & taken),
        ]
        skew = weight_skew(c, c.weight_rows - 1, c.columns - 1)
        # in silicon their way rests while no word comes
        kinds = Module() if c.silicon else m
        ways = [delay(kinds, kind, WEIGHT_READ_LATENCY - 1, "kind", reset_less=True)]
        for cycles in range(skew):
            ways.append(delay(kinds, ways[-1], 1, f"kind_late_{cycles}", reset_less=True))
        if c.silicon:
            works = works_for(m, taken, WEIGHT_READ_LATENCY + skew, "kinds_work")
            m.submodules.kinds = resting(kinds, works)
        for s, j in product(range(c.weight_rows), range(c.columns)):
            kind = ways[weight_skew(c, s, j)]
            # the row of column j, as a step of this chain
            step = (j - s * c.tile_words) % c.columns
            bits = kind.step[: exact_log2(c.columns)]
            own = bits == step if step < c.tile_words else Const(0, 1)
            # as a reset of the array's registers takes it: no inverter on the way
            drop = delay(m, kind.diagonal & ~own, 1, f"drop_{s}_{j}", reset_less=True)
            byte = self.weight_data[s][j]
            if c.ninth_bits:
                byte = self._byte(m, kind, byte, self.weight_ninth[s][j], f"{s}_{j}")
            m.d.comb += Value.cast(array.weights[s][j]).eq(Mux(drop, 0, byte))

    def _byte(self, m: Module, kind: Any, byte: Any, ninth: Any, name: str) -> Value:
        """A weight as it was read, or from the ninth bits of the last eight reads."""
        from_ninth = delay(m, kind.from_ninth, 1, f"from_ninth_{name}", reset_less=True)
        bits = Signal(8, name=f"bits_{name}", reset_less=True)
        complete = Cat(bits[1:], ninth)
        with m.If(delay(m, kind.bit, 1, f"bit_{name}", reset_less=True)):
            m.d.sync += bits.eq(complete)
        return Mux(from_ninth, complete, byte)

    def _count(self, m: Module, ended: Signal) -> None:
        """Completions, and whether anything is still under way."""
        landed = delay(m, ended, self.latency, "ended")
        in_flight = Signal(16)
        m.d.comb += [
            self.completed.eq(landed),
            self.busy.eq((in_flight != 0) | self._tiles.holding),
        ]
        m.d.sync += in_flight.eq(in_flight + self.started - landed)
        with m.If(self.clear):
            m.d.sync += self.done.eq(0)
        with m.Elif(landed):
            m.d.sync += self.done.eq(self.done + 1)
