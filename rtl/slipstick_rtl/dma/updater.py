"""UPDATE: reads master rows, takes a step of training off them, and writes them back."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..dram.burst_port import burst_layout
from ..dram.ddr3 import Ddr3Settings
from ..dram.litedram import LiteDramSettings
from ..primitives.delay import delay
from ..primitives.stream_queue import StreamQueue
from .box_walker import COUNT_BITS
from .transfer import GROUP_CELLS, MASTER_WORDS, SHIFT_BITS, SUM_BYTES, WORD_BYTES
from .update_arithmetic import MASTER_PLACES, UpdateArithmetic

_WORD = 8 * WORD_BYTES
_DDR3_ROWS, _SDR_ROWS = 8, 4
"""Master rows of a block: a compromise between turns of the DRAM's bus and the queue of results.
The memory's queue of words has room for a block, which ``Updater`` relies on."""

_MASTER_BITS = 16
_WORD_MASTERS = _WORD // _MASTER_BITS


class SumTransposer(wiring.Component):
    """Turns ``SUM_BYTES`` words, the byte planes of eight sums, into the sums.

    A sum leaves per cycle, and then the next words come, one per cycle: 12 cycles per row.

    Members
    -------
    words : In(stream of WORD_BYTES)
        The plane of the lowest bytes first.
    sums : Out(stream of signed(32))
    idle : Out
        No word has come of which sums have not left.
    """

    words: stream.Interface
    sums: stream.Interface
    idle: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "words": In(stream.Signature(_WORD)),
                "sums": Out(stream.Signature(signed(8 * SUM_BYTES))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        planes = Signal(SUM_BYTES * _WORD, reset_less=True)
        count, place, full = Signal(range(SUM_BYTES)), Signal(range(GROUP_CELLS)), Signal()
        chosen = (planes.word_select(k, _WORD).word_select(place, 8) for k in range(SUM_BYTES))
        m.d.comb += [
            self.words.ready.eq(~full),
            self.sums.valid.eq(full),
            self.sums.payload.eq(Cat(chosen)),
            self.idle.eq(~full & (count == 0)),
        ]
        with m.If(self.words.valid & ~full):
            m.d.sync += [
                planes.eq(Cat(planes[_WORD:], self.words.payload)),
                count.eq(count + 1),
                full.eq(count == SUM_BYTES - 1),
            ]
        with m.If(full & self.sums.ready):
            m.d.sync += [place.eq(place + 1), full.eq(place != GROUP_CELLS - 1)]
        return m


class UpdateBursts(wiring.Component):
    """Gives the bursts that read and write blocks of master rows, side by side in DRAM.

    A block is read before the one in front of it is written, so that the DRAM's latency passes
    meanwhile: R0 R1 W0 R2 W1 ... Rn Wn-1 Wn.

    Parameters
    ----------
    settings : LiteDramSettings or Ddr3Settings
    block_rows : int
        Rows of a block, a power of two; the last block may have fewer.

    Members
    -------
    start : In
        Strobe: begins with ``origin``; only while not ``busy``.
    origin : In
        The first word.
    rows : In
        Less one; it holds until ``busy`` ends.
    o : Out(stream of burst_layout)
    busy : Out
        Not all bursts have been taken.
    """

    start: Signal
    origin: Signal
    rows: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, *, settings: LiteDramSettings | Ddr3Settings, block_rows: int) -> None:
        self._block_rows = block_rows
        layout = burst_layout(settings)
        super().__init__(
            {
                "start": In(1),
                "origin": In(layout["address"].shape),
                "rows": In(COUNT_BITS),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, burst = exact_log2(self._block_rows), self.o.payload
        # where the next one is read and written; blocks that are to be read and written, less one
        places = [Signal.like(self.origin, name=f"place_{k}") for k in range(2)]
        left = [Signal(COUNT_BITS - bits, name=f"left_{k}") for k in range(2)]
        lasts = [Signal(name=f"last_{k}") for k in range(2)]
        write, first, all_read = Signal(), Signal(), Signal()
        is_last, taken = Signal(), Signal()
        # words less one, of a whole block and of the last one
        words = Array(Const(MASTER_WORDS * (k + 1) - 1) for k in range(self._block_rows))
        last_words = Signal(range(MASTER_WORDS * self._block_rows))
        m.d.sync += last_words.eq(words[self.rows[:bits]])
        m.d.comb += [
            is_last.eq(Mux(write, lasts[1], lasts[0])),
            burst.write.eq(write),
            burst.address.eq(Mux(write, places[1], places[0])),
            burst.last.eq(Mux(is_last, last_words, words[-1])),
            self.o.valid.eq(self.busy),
            taken.eq(self.o.valid & self.o.ready),
        ]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), first.eq(1), all_read.eq(0), write.eq(0)]
            for k in range(2):
                m.d.sync += [
                    places[k].eq(self.origin),
                    left[k].eq(self.rows >> bits),
                    lasts[k].eq(self.rows >> bits == 0),
                ]
        with m.Elif(taken):
            for k in range(2):
                with m.If(write == k):
                    m.d.sync += [
                        places[k].eq(places[k] + MASTER_WORDS * self._block_rows),
                        left[k].eq(left[k] - 1),
                        lasts[k].eq(left[k] == 1),
                    ]
            m.d.sync += [
                first.eq(0),
                all_read.eq(all_read | (~write & is_last)),
                # a second read comes behind the first one
                write.eq(Mux(write, all_read, ~first | is_last)),
                self.busy.eq(~(write & is_last)),
            ]
        return m


class ResultPacker(wiring.Component):
    """Packs eight masters into a master row: masters of two words, and a word of their weights.

    A weight is the upper byte of its master, rounded, ties up: ``(master + 128) >> 8``. A row takes
    11 cycles if no stream stalls.

    Members
    -------
    i : In(stream of signed(16))
    o : Out(stream of WORD_BYTES)
    idle : Out
        No master has come of which the row has not left.
    """

    i: stream.Interface
    o: stream.Interface
    idle: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(signed(_MASTER_BITS))),
                "o": Out(stream.Signature(_WORD)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        masters, weights = Signal(_WORD, reset_less=True), Signal(_WORD, reset_less=True)
        count, whole, ends = Signal(range(GROUP_CELLS)), Signal(), Signal()
        master = self.i.payload
        weight = (master[MASTER_PLACES:] + master[MASTER_PLACES - 1])[:8]
        m.d.comb += [
            self.i.ready.eq(~whole & ~ends),
            self.o.valid.eq(whole | ends),
            self.o.payload.eq(Mux(whole, masters, weights)),
            self.idle.eq(~whole & ~ends & (count == 0)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                masters.eq(Cat(masters[_MASTER_BITS:], master)),
                weights.eq(Cat(weights[8:], weight)),
                count.eq(count + 1),
                whole.eq(count[: exact_log2(_WORD_MASTERS)].all()),
                ends.eq(count == GROUP_CELLS - 1),
            ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [whole.eq(0), ends.eq(ends & whole)]
        return m


class Updater(wiring.Component):
    """Executes UPDATEs (:mod:`.transfer`): a weight per 1.5 cycles, if no stream stalls.

    DDR3 allows a weight per 3.0 cycles of its controller's clock (simulated, 2048 weights).

    It stands behind the activation memory's reader. The words of a STORE pass through it; those of
    an UPDATE are byte planes of sums. Two blocks of master rows are under way at once: one that
    has been read, before the write burst in front of it, and waits in the memory's queue of words,
    and one whose results wait in a queue of this. So neither queue can stop the other.

    Parameters
    ----------
    settings : LiteDramSettings or Ddr3Settings

    Members
    -------
    begins : In
        Strobe: a transfer begins; only while ``idle``.
    updates : In
        With ``begins``: it is an UPDATE.
    origin, rows, shift : In
        The first word; rows less one; ``Transfer.shift``. They hold until it is done.
    words : In(stream of WORD_BYTES)
        What was read of the activation memory: ``SUM_BYTES`` per row of an UPDATE.
    masters : In(stream of WORD_BYTES)
        Words of master rows that were read. None is taken without an UPDATE.
    bursts : Out(stream of burst_layout)
    writes : Out(stream of WORD_BYTES)
    idle : Out
        All bursts were taken, and the results of all ``words`` that came.
    """

    begins: Signal
    updates: Signal
    origin: Signal
    rows: Signal
    shift: Signal
    words: stream.Interface
    masters: stream.Interface
    bursts: stream.Interface
    writes: stream.Interface
    idle: Signal

    def __init__(self, *, settings: LiteDramSettings | Ddr3Settings) -> None:
        block_rows = _DDR3_ROWS if isinstance(settings, Ddr3Settings) else _SDR_ROWS
        self._bursts = UpdateBursts(settings=settings, block_rows=block_rows)
        # a block, and one: a queue has a power of two of places, and a register
        self._depth = GROUP_CELLS * block_rows + 1
        layout = burst_layout(settings)
        super().__init__(
            {
                "begins": In(1),
                "updates": In(1),
                "origin": In(layout["address"].shape),
                "rows": In(COUNT_BITS),
                "shift": In(SHIFT_BITS),
                "words": In(stream.Signature(_WORD)),
                "masters": In(stream.Signature(_WORD)),
                "bursts": Out(stream.Signature(layout)),
                "writes": Out(stream.Signature(_WORD)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bursts = bursts = self._bursts
        m.submodules.transposer = transposer = SumTransposer()
        m.submodules.arithmetic = arithmetic = UpdateArithmetic()
        m.submodules.results = results = StreamQueue(shape=signed(16), depth=self._depth)
        m.submodules.packer = packer = ResultPacker()
        connect(m, results.o, packer.i)
        connect(m, bursts.o, flipped(self.bursts))
        active, enters, leaves = Signal(), Signal(), Signal()
        with m.If(self.begins):
            m.d.sync += active.eq(self.updates)
        # results that are being computed or wait; whether there is room is known a cycle later
        owed, room = Signal(range(self._depth + 1)), Signal()
        m.d.sync += [owed.eq(owed + enters - leaves), room.eq(owed < self._depth - 1)]
        sums, place, weights = transposer.sums, Signal(range(GROUP_CELLS)), Signal()
        word, within = self.masters.payload, place[: exact_log2(_WORD_MASTERS)]
        m.d.comb += [
            bursts.start.eq(self.begins & self.updates),
            bursts.origin.eq(self.origin),
            bursts.rows.eq(self.rows),
            arithmetic.shift.eq(self.shift),
            arithmetic.sum.eq(sums.payload),
            arithmetic.master.eq(word.word_select(within, _MASTER_BITS).as_signed()),
            enters.eq(sums.valid & sums.ready),
            sums.ready.eq(self.masters.valid & room & ~weights),
            # behind the masters come their weights, which nobody needs
            self.masters.ready.eq(weights | (enters & within.all())),
            results.i.payload.eq(arithmetic.updated),
            results.i.valid.eq(delay(m, enters, arithmetic.latency, "came")),
            leaves.eq(results.o.valid & results.o.ready),
            self.idle.eq(~bursts.busy & transposer.idle & (owed == 0) & ~weights & packer.idle),
        ]
        with m.If(enters):
            m.d.sync += [place.eq(place + 1), weights.eq(place == GROUP_CELLS - 1)]
        with m.Elif(weights & self.masters.valid):
            m.d.sync += weights.eq(0)
        self._route(m, active, transposer.words, packer.o)
        return m

    def _route(self, m: Module, active: Signal, planes: Any, results: Any) -> None:
        """Words become sums, and results are written; without an UPDATE words pass through."""
        m.d.comb += [
            planes.payload.eq(self.words.payload),
            planes.valid.eq(self.words.valid & active),
            self.words.ready.eq(Mux(active, planes.ready, self.writes.ready)),
            results.ready.eq(self.writes.ready & active),
            self.writes.valid.eq(Mux(active, results.valid, self.words.valid)),
            self.writes.payload.eq(Mux(active, results.payload, self.words.payload)),
        ]
