"""The DMA: takes its instructions from the link or from DRAM, and executes one after the other."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import Configuration
from ..dram.burst_port import burst_layout
from ..dram.ddr3 import Ddr3Settings
from ..dram.litedram import LiteDramSettings
from ..link.layouts import ProgramCounters
from ..primitives.stream_queue import StreamQueue
from .activation_reader import ActivationReader
from .activation_writer import ActivationWriter, chunk_write_layout
from .block_turner import BlockTurner
from .box_walker import BoxWalker
from .layouts import (
    INSTRUCTION_PART,
    INSTRUCTION_WORD,
    TRANSFER,
    WEIGHT_GROUP,
    chunk_bytes,
    crc_bits,
)
from .read_checker import ReadChecker
from .transfer import (
    GROUP_CELLS,
    SHIFT_BITS,
    SUM_BYTES,
    TRANSFER_WORDS,
    TURNED_WORDS,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
)
from .updater import Updater

_WORD = 8 * WORD_BYTES
_BEGIN_CYCLES = 8
"""Cycles from ``run`` until ``running`` is to be believed."""
_LANDING_CYCLES = 8
"""Cycles from the last write of a LOAD until it is in its memory."""
_GROUPS_WAITING = 3
"""For the weight memory: fewer would let a burst stall."""


class DmaEngine(wiring.Component):
    """Executes instructions (:mod:`.transfer`).

    While one of a list in DRAM is executed, the next one is read: behind the data of a LOAD, before
    those of a STORE, and while it waits for the array; but behind an UPDATE, when all that it
    writes has been handed on.

    Parameters
    ----------
    configuration : Configuration
    settings : LiteDramSettings

    Members
    -------
    given : In(stream of INSTRUCTION_PART)
        Instructions from the link. After an error they are dropped.
    clear : In
        Forgets an error. A list that is under way ends behind the instruction at hand.
    faulty : In
        The DRAM cannot be read. Every LOAD with a CRC ends with MEMORY_CORRUPT.
    busy : Out
        An instruction or a list is under way.
    status : Out
        A ``DmaStatus``.
    executed : Out
        Instructions that were executed since ``clear``.
    listing : Out
        A list is being executed.
    cycles : Out
        Of the last list, or of the one that is being executed.
    bursts, writes, reads
        Towards :class:`..dram.burst_port.BurstPort`.
    activation_writes : Out(stream of chunk_write_layout)
    activation_reads : Out(stream of addresses)
    activation_read_valid, activation_chunk : In
        The chunk of each, in order.
    activations_settled : In
        All of ``activation_writes`` that was taken is in the memory.
    weight_writes : Out(stream of WEIGHT_GROUP)
    instruction_writes : Out(stream of INSTRUCTION_WORD)
    run : Out
        Strobe: the instruction streams begin at ``pcs``.
    pcs : Out
    running, bad_instruction : In
    """

    given: stream.Interface
    clear: Signal
    faulty: Signal
    busy: Signal
    status: Signal
    executed: Signal
    listing: Signal
    cycles: Signal
    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
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
        self, *, configuration: Configuration, settings: LiteDramSettings | Ddr3Settings
    ) -> None:
        self._configuration = configuration
        self._writer = ActivationWriter(configuration=configuration)
        self._reader = ActivationReader(configuration=configuration)
        self._dram = BoxWalker(width=32)
        self._chip = BoxWalker(width=24)
        self._instruction: data.View = Signal(TRANSFER, name="instruction")
        self._linear_ready, self._held = Signal(), Signal(name="held")
        self._checker = ReadChecker(crc_bits=crc_bits(configuration))
        self._updater = Updater(settings=settings) if configuration.training else None
        self._turner = BlockTurner() if configuration.training else None
        size = chunk_bytes(configuration)
        super().__init__(
            {
                "given": In(stream.Signature(INSTRUCTION_PART)),
                "clear": In(1),
                "faulty": In(1),
                "busy": Out(1),
                "status": Out(2),
                "executed": Out(32),
                "listing": Out(1),
                "cycles": Out(32),
                "bursts": Out(stream.Signature(burst_layout(settings))),
                "writes": Out(stream.Signature(_WORD)),
                "reads": In(stream.Signature(_WORD)),
                "activation_writes": Out(stream.Signature(chunk_write_layout(configuration))),
                "activation_reads": Out(stream.Signature(24)),
                "activation_read_valid": In(1),
                "activation_chunk": In(8 * size),
                "activations_settled": In(1),
                "weight_writes": Out(stream.Signature(WEIGHT_GROUP)),
                "instruction_writes": Out(stream.Signature(INSTRUCTION_WORD)),
                "run": Out(1),
                "pcs": Out(ProgramCounters),
                "running": In(1),
                "bad_instruction": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.writer, m.submodules.reader = self._writer, self._reader
        m.submodules.dram, m.submodules.chip = self._dram, self._chip
        m.submodules.checker = self._checker
        if self._updater is not None:
            m.submodules.updater = self._updater
        if self._turner is not None:
            m.submodules.turner = self._turner
        told = self._instruction
        loading, storing, begins = Signal(), Signal(), Signal()
        into_activations = self._boxed
        # known from the cycle in which a LOAD or STORE begins, for the clock
        boxes = Signal()
        with m.If(begins):
            m.d.sync += boxes.eq(into_activations)
        self._move(m, begins, loading, storing)
        ends = self._load_linear(m, begins)
        self._check(m, begins)
        # the next instruction has been asked for, behind the data of this one
        asked, receiving, received = Signal(), Signal(), Signal()
        fetching, following, idle = Signal(), Signal(32), Signal()
        self._fetch(m, fetching, following)
        self._receive(m, receiving, received)
        with m.If(fetching & ~self._dram.busy & ~self._held):
            m.d.sync += [asked.eq(1), following.eq(following + TRANSFER_WORDS)]
        with m.Elif(received):
            m.d.sync += asked.eq(0)
        moved = Mux(boxes, ~self._chip.busy & self._writer.idle, ends)
        pause = Signal(range(max(_BEGIN_CYCLES, _LANDING_CYCLES) + 1))
        with m.If(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        m.d.comb += self.pcs.as_value().eq(Cat(told.pc_0, told.pc_1))

        listing, leaving, bad = self.listing, Signal(), Signal()
        ahead, result = listing & ~asked, Signal.like(self.status)
        done = "next"

        def end(status: Any) -> None:
            m.d.sync += result.eq(status)
            m.next = "end"

        m.d.comb += self.busy.eq(~idle)
        with m.If(listing):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += idle.eq(~self.given.valid)
                m.d.sync += leaving.eq(0)
                with m.If(self.given.valid):
                    m.next = "receive"
                    with m.If(self.status != DmaStatus.OK):
                        m.next = "drop"
            with m.State("drop"):
                m.d.comb += receiving.eq(1)
                with m.If(received):
                    m.next = "idle"
            with m.State(done):
                m.next = "idle"
                with m.If(listing):
                    m.d.comb += fetching.eq(~asked)
                    m.next = done
                    with m.If(asked):
                        m.next = "receive"
            with m.State("receive"):
                m.d.comb += receiving.eq(1)
                with m.If(received):
                    m.next = "decode"
            with m.State("decode"):
                # a cycle of its own, for the clock
                m.d.sync += [self.executed.eq(self.executed + 1), bad.eq(self._bad)]
                m.next = "begin"
            with m.State("begin"):
                with m.If(bad):
                    end(DmaStatus.BAD_TRANSFER)
                with m.Elif(leaving | (told.operation == Operation.END)):
                    end(self.status)
                with m.Elif(ahead & (told.operation == Operation.STORE)):
                    # behind what it writes, the DRAM would bring it much later
                    m.d.comb += fetching.eq(1)
                with m.Else():
                    self._begin(m, begins)
                    with m.If(told.operation == Operation.JUMP):
                        m.d.sync += [listing.eq(1), following.eq(told.dram)]
                        with m.If(~listing):
                            m.d.sync += self.cycles.eq(0)
                        m.next = done
            with m.State("load"):
                m.d.comb += [loading.eq(1), fetching.eq(ahead)]
                with m.If(moved):
                    m.d.sync += pause.eq(_LANDING_CYCLES)
                    m.next = "check"
            with m.State("check"):
                m.next = done
                with m.If(told.checked & ((self._checker.crc != told.crc) | self.faulty)):
                    end(DmaStatus.MEMORY_CORRUPT)
            with m.State("store"):
                m.d.comb += storing.eq(1)
                with m.If(self._stored):
                    m.next = done
            with m.State("run"):
                m.d.comb += fetching.eq(ahead)
                with m.If((pause == 0) & self.activations_settled):
                    m.d.comb += self.run.eq(1)
                    m.d.sync += pause.eq(_BEGIN_CYCLES)
                    m.next = done
            with m.State("wait"):
                m.d.comb += fetching.eq(ahead)
                with m.If((pause == 0) & ~self.running):
                    m.next = done
                    with m.If(self.bad_instruction):
                        end(DmaStatus.BAD_INSTRUCTION)
            with m.State("end"):
                # the instruction that was asked for must not be there when the next list begins
                m.d.comb += receiving.eq(asked)
                with m.If(~asked):
                    m.d.sync += [listing.eq(0), self.status.eq(Mux(leaving, DmaStatus.OK, result))]
                    m.next = "idle"
        # behind the states, so that an error of the same cycle is forgotten as well
        with m.If(self.clear):
            m.d.sync += [self.status.eq(DmaStatus.OK), self.executed.eq(0), leaving.eq(listing)]
        return m

    @property
    def _turned(self) -> Value:
        """The instruction's target is TURNED; only with training hardware."""
        return self._instruction.target == Target.TURNED

    @property
    def _boxed(self) -> Value:
        """Its target is the activation memory."""
        activations = self._instruction.target == Target.ACTIVATIONS
        return activations if self._turner is None else activations | self._turned

    @property
    def _bad(self) -> Value:
        told = self._instruction
        linear = told.target != Target.ACTIVATIONS
        box = (told.runs != 0) | (told.rows != 0)
        last = Target.NINTHS if self._configuration.ninth_bits else Target.CELLS
        highest = Operation.JUMP if self._updater is None else Operation.UPDATE
        if self._updater is None:
            return (told.operation > highest) | (told.target > last) | (linear & box)
        bits = exact_log2(TURNED_WORDS)
        large = told.run_bytes[bits:].any() | told.runs[bits:].any()
        turns = (told.operation == Operation.LOAD) & ~large
        shape = (told.run_bytes == WORD_BYTES - 1) & (told.runs == SUM_BYTES - 1)
        updates = told.operation == Operation.UPDATE
        bad = (told.operation > highest) | (updates & (linear | ~shape))
        return bad | Mux(self._turned, ~turns, (told.target > last) | (linear & box))

    @property
    def _stored(self) -> Value:
        """A STORE or UPDATE has handed on all its words."""
        done = ~self._dram.busy & ~self._chip.busy & self._reader.idle
        return done if self._updater is None else done & self._updater.idle

    def _begin(self, m: Module, begins: Signal) -> None:
        states = {
            Operation.LOAD: "load",
            Operation.STORE: "store",
            Operation.RUN: "run",
            Operation.WAIT: "wait",
        }
        if self._updater is not None:
            states[Operation.UPDATE] = "store"
        with m.Switch(self._instruction.operation):
            for operation, state in states.items():
                with m.Case(operation):
                    m.d.comb += begins.eq(state in ("load", "store"))
                    m.next = state

    def _move(self, m: Module, begins: Signal, loading: Signal, storing: Signal) -> None:
        """Both walkers, and the activation memory's side of them."""
        told, dram, chip = self._instruction, self._dram, self._chip
        writer, reader = self._writer, self._reader
        for walker, side, origin in ((dram, "dram", told.dram), (chip, "chip", told.chip)):
            m.d.comb += [
                walker.origin.eq(origin),
                walker.run_pitch.eq(told[f"{side}_run_pitch"]),
                walker.row_pitch.eq(told[f"{side}_row_pitch"]),
                walker.runs.eq(told.runs if side == "chip" else self._dram_runs),
                walker.rows.eq(told.rows),
            ]
        m.d.comb += [
            dram.start.eq(begins),
            chip.start.eq(begins & self._boxed),
            chip.o.ready.eq(Mux(loading, writer.runs.ready, reader.runs.ready)),
        ]
        for unit, busy in ((writer, loading), (reader, storing)):
            m.d.comb += [
                unit.runs.valid.eq(chip.o.valid & busy),
                unit.runs.payload.chip.eq(chip.o.payload),
                unit.runs.payload.bytes.eq(told.run_bytes),
            ]
        self._turn(m, begins)
        m.d.comb += [
            reader.valid.eq(self.activation_read_valid),
            reader.chunk.eq(self.activation_chunk),
        ]
        connect(m, writer.o, flipped(self.activation_writes))
        connect(m, reader.requests, flipped(self.activation_reads))
        if self._updater is None:
            connect(m, reader.words, flipped(self.writes))
        else:
            self._update(m, self._updater, begins)

    @property
    def _dram_runs(self) -> Value:
        """Counts the runs of a row in DRAM, less one."""
        runs = self._instruction.runs
        return runs if self._turner is None else Mux(self._turned, TURNED_WORDS - 1, runs)

    def _turn(self, m: Module, begins: Signal) -> None:
        """Words go to the activation memory's writer, or by way of the turner."""
        words, read, turner = self._writer.words, self._checker.o, self._turner
        if turner is None:
            # it takes words for its runs only
            m.d.comb += [words.payload.eq(read.payload), words.valid.eq(read.valid)]
            return
        m.d.comb += [
            turner.start.eq(begins & self._turned),
            turner.blocks.eq(self._instruction.rows),
            turner.runs.eq(self._instruction.runs),
            turner.i.payload.eq(read.payload),
            turner.i.valid.eq(read.valid),
            turner.o.ready.eq(words.ready),
            words.payload.eq(Mux(turner.busy, turner.o.payload, read.payload)),
            words.valid.eq(Mux(turner.busy, turner.o.valid, read.valid)),
        ]

    def _update(self, m: Module, updater: Updater, begins: Signal) -> None:
        """The updater, between the reader and ``writes``; an UPDATE has bursts of its own."""
        told, updates = self._instruction, Signal()
        connect(m, self._reader.words, updater.words)
        connect(m, updater.writes, flipped(self.writes))
        m.d.comb += [
            updates.eq(told.operation == Operation.UPDATE),
            updater.begins.eq(begins),
            updater.updates.eq(updates),
            updater.origin.eq(told.dram),
            updater.rows.eq(told.rows),
            updater.shift.eq(told.pc_0[:SHIFT_BITS]),
            updater.masters.payload.eq(self._checker.o.payload),
            updater.masters.valid.eq(self._checker.o.valid),
        ]
        with m.If(updates):
            m.d.comb += self._dram.start.eq(0)

    def _fetch(self, m: Module, fetching: Signal, following: Signal) -> None:
        """Bursts: those of the box or the updater, behind them that of the next instruction."""
        told, walker, burst = self._instruction, self._dram, self.bursts.payload
        updater = self._updater
        m.d.comb += [self.bursts.valid.eq(self._held), walker.o.ready.eq(~self._held)]
        if updater is not None:
            m.d.comb += updater.bursts.ready.eq(~self._held)
        # held in a register: when the memory takes one does not reach the walker in the same cycle
        with m.If(~self._held):
            m.d.sync += [
                self._held.eq(walker.busy | fetching),
                burst.write.eq(walker.busy & (told.operation == Operation.STORE)),
                burst.address.eq(Mux(walker.busy, walker.o.payload, following)),
                burst.last.eq(Mux(walker.busy, told.run_bytes // WORD_BYTES, TRANSFER_WORDS - 1)),
            ]
            if updater is not None:
                with m.If(updater.bursts.valid):
                    m.d.sync += [self._held.eq(1), burst.eq(updater.bursts.payload)]
        with m.Elif(self.bursts.ready):
            m.d.sync += self._held.eq(0)

    def _receive(self, m: Module, receiving: Signal, received: Signal) -> None:
        """The words of an instruction, from a list or from the link; and which of the units takes
        what is read."""
        value, given, read = self._instruction.as_value(), self.given, self._checker.o
        count = Signal(range(TRANSFER_WORDS))
        from_list, taken, last, word = self.listing, Signal(), Signal(), Signal(_WORD)
        written = self._writer.words.ready
        if self._turner is not None:
            written = Mux(self._turner.busy, self._turner.i.ready, written)
        reads = (receiving & from_list) | written | self._linear_ready
        if self._updater is not None:
            reads |= self._updater.masters.ready
        m.d.comb += [
            taken.eq(receiving & Mux(from_list, read.valid, given.valid)),
            last.eq(Mux(from_list, count == TRANSFER_WORDS - 1, given.payload.last)),
            word.eq(Mux(from_list, read.payload, given.payload.data)),
            received.eq(taken & last),
            given.ready.eq(receiving & ~from_list),
            read.ready.eq(reads),
        ]
        with m.If(taken):
            m.d.sync += value.eq(Cat(value[_WORD:], word))
            with m.If(from_list):
                m.d.sync += count.eq(count + 1)

    def _load_linear(self, m: Module, begins: Signal) -> Value:
        """Weights and instructions; returns whether all have gone."""
        told, read = self._instruction, self._checker.o
        word, into_activations = read.payload, self._boxed
        # whether the weight memory takes a group does not reach the checker in the same cycle
        m.submodules.groups = groups = StreamQueue(shape=WEIGHT_GROUP, depth=_GROUPS_WAITING)
        connect(m, groups.o, flipped(self.weight_writes))
        weights, instructions = groups.i, self.instruction_writes
        # these are known from the cycle in which a LOAD begins
        is_weights, has_heads, only_heads = Signal(), Signal(), Signal()
        # of cells: which word of the nine; of instructions: which half
        place, ninth = Signal(range(GROUP_CELLS + 1)), Signal(_WORD)
        is_head, upper = has_heads & (place == 0), place[0]
        made = only_heads & ~is_head
        # steps less one: words, halves of them, or groups that are made, whose heads do not count
        address, left, active, final = Signal(24), Signal(16), Signal(), Signal()
        counts = ~(is_head & only_heads)
        ends = final & counts
        takes = is_weights | upper | ends
        valid = active & (read.valid | made)
        given = Signal()
        m.d.comb += [
            weights.valid.eq(valid & is_weights & ~is_head),
            weights.payload.address.eq(address),
            weights.payload.cells.eq(Mux(made, 0, word)),
            weights.payload.ninth.eq(ninth),
            instructions.valid.eq(valid & ~is_weights),
            instructions.payload.address.eq(address),
            instructions.payload.data.eq(Mux(upper, word[32:], word[:32])),
            given.eq(valid & Mux(is_weights, is_head | weights.ready, instructions.ready)),
            self._linear_ready.eq(given & ~made & takes),
        ]
        with m.If(given):
            m.d.sync += [left.eq(left - counts), final.eq(left == counts), active.eq(~ends)]
            with m.If(is_weights & is_head):
                m.d.sync += ninth.eq(word)
            with m.Else():
                m.d.sync += [address.eq(address + 1), ninth.eq(ninth[GROUP_CELLS:])]
            with m.If(is_weights):
                m.d.sync += place.eq(Mux(place == GROUP_CELLS, 0, place + 1))
            with m.Else():
                m.d.sync += place.eq(~upper)
        steps = Signal.like(left)
        with m.Switch(told.target):
            with m.Case(Target.INSTRUCTIONS):
                m.d.comb += steps.eq(told.run_bytes // (WORD_BYTES // 2))
            with m.Case(Target.NINTHS):
                m.d.comb += steps.eq(told.run_bytes)
            with m.Default():
                m.d.comb += steps.eq(told.run_bytes // WORD_BYTES)
        with m.If(begins):
            m.d.sync += [
                is_weights.eq(told.target != Target.INSTRUCTIONS),
                active.eq((told.operation == Operation.LOAD) & ~into_activations),
                place.eq(0),
                ninth.eq(0),
                address.eq(told.chip),
                left.eq(steps),
                final.eq(steps == 0),
            ]
            if self._configuration.ninth_bits:
                # a head has the ninth bits of the eight groups behind it; groups may have none, and
                # heads no groups behind them
                m.d.sync += [
                    has_heads.eq(told.target.matches(Target.WEIGHTS, Target.NINTHS)),
                    only_heads.eq(told.target == Target.NINTHS),
                ]
        return ~active & ~groups.some

    def _check(self, m: Module, begins: Signal) -> None:
        """Passes the words that are read from DRAM through the checker."""
        told, walker, checker = self._instruction, self._dram, self._checker
        connect(m, flipped(self.reads), checker.i)
        m.d.comb += [
            checker.start.eq(begins),
            checker.promise.eq(walker.busy & ~self._held & (told.operation == Operation.LOAD)),
            checker.promised_last.eq(told.run_bytes // WORD_BYTES),
        ]
