"""The DMA against its golden model: random lists of instructions, memories that stall."""

import copy
import random
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.activation_writer import chunk_write_layout
from slipstick_rtl.dma.dma_unit import dram_settings
from slipstick_rtl.dma.engine import DmaEngine
from slipstick_rtl.dma.layouts import (
    INSTRUCTION_PART,
    INSTRUCTION_WORD,
    WEIGHT_GROUP,
    chunk_bytes,
    crc_bits,
)
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    SUM_BYTES,
    TRANSFER_BYTES,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
    Transfer,
)
from slipstick_rtl.dram.burst_port import burst_layout

from ..golden import training
from ..golden.dma import GoldenDma
from .drivers.streams import pack, start, unpack
from .registry import Bench, parameters
from .stimulus.random_update import random_master, random_sum

_DRAM_BYTES = 1 << 16
_LIST = 0x1C00
"""The word of DRAM where the instructions are: data lie before them."""
_RUN_CYCLES = 60
_LARGEST_SHIFT = 40
"""Of UPDATEs: from 32 on nothing is learned."""


def make(**shape: Any) -> DmaEngine:
    """The DMA of a small configuration of this shape."""
    configuration = _configuration(shape)
    return DmaEngine(configuration=configuration, settings=dram_settings(configuration))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 12,
        instruction_words=1 << 9,
        accumulator_depth=64,
        **shape,
    )


BENCH = Bench(
    name="bench_dma",
    component=make,
    test_module=__name__,
    parameters=(
        # words of 16 and of 32 bits, and DDR3: the CRC takes as many per cycle, and whole words
        {"rows": 16, "columns": 8, "lanes": 8, "ninth_bits": 1, "dram": "MT48LC16M16"},
        {"rows": 16, "columns": 8, "lanes": 8, "ninth_bits": 1, "dram": "MT41K256M16"},
        {"rows": 4, "columns": 4, "lanes": 4, "dram": "MT48LC16M16"},
        # training hardware: blocks of 32 and of 16 master words, chunks of a word and of half a one
        {"rows": 16, "columns": 8, "lanes": 8, "dram": "MT41K256M16", "training": 1},
        {"rows": 4, "columns": 4, "lanes": 4, "dram": "MT48LC16M16", "training": 1},
    ),
    thorough=({"rows": 16, "columns": 8, "lanes": 8, "dram": "M12L16161A"},),
)


@dataclass
class _Chip:
    """The chip's memories as arrays: ``cells`` are groups of eight, ``ninth`` a byte for each."""

    activations: np.ndarray
    cells: np.ndarray
    ninth: np.ndarray
    instructions: np.ndarray
    bad_runs: set[int]
    runs: list[tuple[int, int]] = field(default_factory=list)

    def _places(self, address: int, count: int) -> np.ndarray:
        return (address + np.arange(count)) % len(self.activations)

    def write_activations(self, address: int, values: np.ndarray) -> None:
        self.activations[self._places(address, len(values))] = values

    def read_activations(self, address: int, count: int) -> np.ndarray:
        return self.activations[self._places(address, count)]

    def write_groups(self, first: int, cells: np.ndarray, ninth: np.ndarray | None) -> None:
        self.cells[first : first + len(cells)] = cells
        if ninth is not None:
            self.ninth[first : first + len(cells)] = ninth

    def write_instructions(self, first: int, words: np.ndarray) -> None:
        self.instructions[(first + np.arange(len(words))) % len(self.instructions)] = words

    def run_streams(self, pcs: tuple[int, int]) -> bool:
        self.runs.append(pcs)
        return len(self.runs) - 1 not in self.bad_runs

    def copy(self) -> "_Chip":
        return copy.deepcopy(self)


class _Golden(GoldenDma):
    """Refuses an UPDATE with a sum of -2^31, which is not defined."""

    def _update(self, transfer: Transfer) -> None:
        for row in range(transfer.rows):
            first = transfer.chip + row * transfer.chip_row_pitch
            places = (first + k * transfer.chip_run_pitch for k in range(SUM_BYTES))
            planes = np.stack([self.chip.read_activations(at, WORD_BYTES) for at in places])
            if (planes.T == (0, 0, 0, 0x80)).all(1).any():
                raise ArithmeticError("a sum must not be -2^31")
        super()._update(transfer)


class _Surroundings:
    """Memories in Python behind the engine's ports, with random stalls."""

    def __init__(self, dut: Any, seed: int, stall: float) -> None:
        self.dut, self.draw, self.stall = dut, random.Random(seed), stall
        self.configuration = c = _configuration(parameters())
        self.generator = np.random.default_rng(seed)
        groups = c.weight_words * c.weight_word_bytes // GROUP_CELLS
        self.dram = self.generator.integers(0, 256, _DRAM_BYTES, np.uint8)
        self.chip = _Chip(
            activations=self.generator.integers(0, 256, c.activation_bytes, np.uint8),
            cells=np.zeros((groups, GROUP_CELLS), np.uint8),
            ninth=np.zeros(groups, np.uint8),
            instructions=np.zeros(c.instruction_words, np.uint32),
            bad_runs=set(),
        )
        self.runs = self.chip.runs

    def golden(self) -> GoldenDma:
        """The same memories in the golden model."""
        chip = self.chip.copy()
        self.golden_runs = chip.runs
        c = self.configuration
        return _Golden(self.dram.copy(), chip, bool(c.ninth_bits), bool(c.training))

    def place(self, transfers: list[Transfer], first: int = _LIST) -> None:
        """Puts a list of instructions into DRAM."""
        packed = b"".join(transfer.pack() for transfer in transfers)
        self.dram[first * WORD_BYTES :][: len(packed)] = np.frombuffer(packed, np.uint8)

    async def start(self) -> None:
        dut = self.dut
        for name in (
            "given__valid",
            "given__payload",
            "clear",
            "faulty",
            "running",
            "bad_instruction",
        ):
            getattr(dut, name).value = 0
        for name in ("activation_read_valid", "activation_chunk", "reads__valid"):
            getattr(dut, name).value = 0
        for name in ("bursts", "writes", "activation_writes", "activation_reads"):
            getattr(dut, f"{name}__ready").value = 0
        dut.activations_settled.value = 1
        dut.reads__payload.value = 0
        await start(dut)
        for part in (self._dram, self._chip_writes, self._chip_reads, self._streams):
            cocotb.start_soon(part())

    def _stalls(self) -> bool:
        return self.draw.random() < self.stall

    async def _dram(self) -> None:
        """Executes bursts; a word in either direction a cycle."""
        dut, layout = self.dut, burst_layout(dram_settings(self.configuration))
        waiting = deque[tuple[bool, int]]()
        latency, answers = 6, deque[tuple[int, int]]()
        cycle, taking_burst, taking_word = 0, False, False
        while True:
            taking_burst = len(waiting) < 64 and not self._stalls()
            taking_word = bool(waiting) and waiting[0][0] and not self._stalls()
            dut.bursts__ready.value = int(taking_burst)
            dut.writes__ready.value = int(taking_word)
            offered = bool(answers) and answers[0][0] <= cycle and not self._stalls()
            dut.reads__valid.value = int(offered)
            if offered:
                dut.reads__payload.value = answers[0][1]
            await RisingEdge(dut.clk)
            cycle += 1
            if offered and dut.reads__ready.value == 1:
                answers.popleft()
            if taking_word and dut.writes__valid.value == 1:
                place = waiting.popleft()[1] * WORD_BYTES
                word = int(dut.writes__payload.value).to_bytes(WORD_BYTES, "little")
                self.dram[place : place + WORD_BYTES] = np.frombuffer(word, np.uint8)
            while waiting and not waiting[0][0] and len(answers) < 32:
                place = waiting.popleft()[1] * WORD_BYTES
                word = self.dram[place : place + WORD_BYTES].tobytes()
                answers.append((cycle + latency, int.from_bytes(word, "little")))
            if taking_burst and dut.bursts__valid.value == 1:
                burst = unpack(layout, int(dut.bursts__payload.value))
                words = range(burst["address"], burst["address"] + burst["last"] + 1)
                waiting.extend((bool(burst["write"]), word) for word in words)

    async def _chip_writes(self) -> None:
        dut, size = self.dut, chunk_bytes(self.configuration)
        layout = chunk_write_layout(self.configuration)
        while True:
            ready = not self._stalls()
            dut.activation_writes__ready.value = int(ready)
            dut.weight_writes__ready.value = int(ready)
            dut.instruction_writes__ready.value = int(ready)
            await RisingEdge(dut.clk)
            if not ready:
                continue
            if dut.activation_writes__valid.value == 1:
                write = unpack(layout, int(dut.activation_writes__payload.value))
                assert write["address"] % size == 0
                for k in range(size):
                    if write["mask"] >> k & 1:
                        place = (write["address"] + k) % len(self.chip.activations)
                        self.chip.activations[place] = write["data"] >> 8 * k & 0xFF
            if dut.weight_writes__valid.value == 1:
                group = unpack(WEIGHT_GROUP, int(dut.weight_writes__payload.value))
                cells = group["cells"].to_bytes(GROUP_CELLS, "little")
                self.chip.cells[group["address"]] = np.frombuffer(cells, np.uint8)
                if self.configuration.ninth_bits:
                    self.chip.ninth[group["address"]] = group["ninth"]
            if dut.instruction_writes__valid.value == 1:
                word = unpack(INSTRUCTION_WORD, int(dut.instruction_writes__payload.value))
                place = word["address"] % len(self.chip.instructions)
                self.chip.instructions[place] = word["data"]

    async def _chip_reads(self) -> None:
        """A chunk comes four cycles after its request."""
        dut, size = self.dut, chunk_bytes(self.configuration)
        line = deque[int | None]([None] * 4)
        while True:
            ready = not self._stalls()
            dut.activation_reads__ready.value = int(ready)
            came = line.popleft()
            dut.activation_read_valid.value = int(came is not None)
            if came is not None:
                places = (came + np.arange(size)) % len(self.chip.activations)
                chunk = self.chip.activations[places].tobytes()
                dut.activation_chunk.value = int.from_bytes(chunk, "little")
            await RisingEdge(dut.clk)
            asked = ready and dut.activation_reads__valid.value == 1
            line.append(int(dut.activation_reads__payload.value) if asked else None)

    async def _streams(self) -> None:
        """A run takes some cycles."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if dut.run.value == 1:
                pcs = int(dut.pcs.value)
                self.runs.append((pcs & 0xFFFF, pcs >> 16))
                dut.running.value = 1
                for _ in range(self.draw.randrange(1, _RUN_CYCLES)):
                    await RisingEdge(dut.clk)
                    assert dut.run.value == 0, "a run begins in a run"
                dut.bad_instruction.value = int(len(self.runs) - 1 in self.chip.bad_runs)
                dut.running.value = 0

    async def execute(self, first: int = _LIST) -> DmaStatus:
        """The list that begins at a word of DRAM."""
        return await self.give(_jump(first))

    async def give(self, packed: bytes) -> DmaStatus:
        """An instruction from the link, a word at a time with pauses between."""
        dut = self.dut
        for place in range(0, len(packed), WORD_BYTES):
            while self._stalls():
                await RisingEdge(dut.clk)
            word = int.from_bytes(packed[place : place + WORD_BYTES], "little")
            last = place + WORD_BYTES == len(packed)
            dut.given__payload.value = pack(INSTRUCTION_PART, {"last": int(last), "data": word})
            dut.given__valid.value = 1
            await RisingEdge(dut.clk)
            while dut.given__ready.value != 1:
                await RisingEdge(dut.clk)
            dut.given__valid.value = 0
        await RisingEdge(dut.clk)
        for _ in range(200_000):
            await RisingEdge(dut.clk)
            if dut.busy.value == 0:
                return DmaStatus(int(dut.status.value))
        raise AssertionError("the list does not end")

    async def clear(self) -> None:
        self.dut.clear.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.clear.value = 0


def _jump(first: int = _LIST) -> bytes:
    return Transfer(operation=Operation.JUMP, dram=first).pack()


def _random_box(s: _Surroundings, operation: Operation) -> Transfer:
    """A box of the activation memory; runs may touch, leave gaps or be bytes apart."""
    draw, c = s.draw, s.configuration
    size = chunk_bytes(c) if operation is Operation.STORE else 1
    run_bytes = draw.choice((1, 3, 7, 8, 9, 16, 24, 41, 100))
    runs, rows = draw.choice(((1, 1), (1, 4), (5, 1), (3, 3)))
    run_pitch = -(-run_bytes // size) * size + size * draw.randrange(3)
    row_pitch = run_pitch * runs + size * draw.randrange(4)
    span = row_pitch * rows
    words = -(-run_bytes // WORD_BYTES)
    dram_run_pitch = words + draw.randrange(2)
    dram_row_pitch = dram_run_pitch * runs + draw.randrange(3)
    return Transfer(
        operation=operation,
        chip=draw.randrange((c.activation_bytes - span) // size) * size,
        dram=draw.randrange(_LIST - dram_row_pitch * rows),
        run_bytes=run_bytes,
        runs=runs,
        rows=rows,
        chip_run_pitch=run_pitch,
        chip_row_pitch=row_pitch,
        dram_run_pitch=dram_run_pitch,
        dram_row_pitch=dram_row_pitch,
    )


def _random_weights(s: _Surroundings) -> Transfer:
    groups = len(s.chip.cells)
    count = s.draw.randrange(1, 40)
    kinds = [Target.WEIGHTS, Target.CELLS]
    size = count * WORD_BYTES
    if s.configuration.ninth_bits:
        kinds.append(Target.NINTHS)
    target = s.draw.choice(kinds)
    if target is Target.NINTHS:
        size = count
    elif target is Target.WEIGHTS and s.configuration.ninth_bits:
        size += -(-count // GROUP_CELLS) * WORD_BYTES
    return Transfer(
        operation=Operation.LOAD,
        target=target,
        chip=s.draw.randrange(groups - count),
        dram=s.draw.randrange(_LIST - size // WORD_BYTES - 1),
        run_bytes=size,
    )


def _random_update(s: _Surroundings) -> Transfer:
    draw, c = s.draw, s.configuration
    size = chunk_bytes(c)
    rows = draw.randrange(1, 21)
    gap = size * draw.randrange(3)
    # planes behind planes, or rows behind rows
    run_pitch, row_pitch = WORD_BYTES * rows + gap, WORD_BYTES
    if draw.random() < 0.5:
        run_pitch = WORD_BYTES + gap
        row_pitch = SUM_BYTES * run_pitch + size * draw.randrange(3)
    span = SUM_BYTES * run_pitch + row_pitch * rows
    return _update(
        chip=draw.randrange((c.activation_bytes - span) // size) * size,
        dram=draw.randrange(_LIST - GROUP_CELLS * rows),
        rows=rows,
        chip_run_pitch=run_pitch,
        chip_row_pitch=row_pitch,
        shift=draw.randrange(_LARGEST_SHIFT + 1),
    )


def _update(**fields: Any) -> Transfer:
    return Transfer(operation=Operation.UPDATE, run_bytes=WORD_BYTES, runs=SUM_BYTES, **fields)


def _random_updates(s: _Surroundings, count: int) -> list[Transfer]:
    """UPDATEs with their sums and masters; they may lie upon each other, the last one above all."""
    updates = [_random_update(s) for _ in range(count)]
    for update in updates:
        _prepare_update(s, update)
    return updates


def _prepare_update(s: _Surroundings, update: Transfer) -> None:
    """Sums and masters of an UPDATE: corners, random ones, and such as make steps near them."""
    count = GROUP_CELLS * update.rows
    sums = np.array([random_sum(s.draw, update.shift) for _ in range(count)], np.int32)
    masters = np.array([random_master(s.draw) for _ in range(count)], np.int32)
    planes = sums.astype("<i4").view(np.uint8).reshape(update.rows, GROUP_CELLS, SUM_BYTES)
    for row in range(update.rows):
        for k in range(SUM_BYTES):
            at = update.chip + row * update.chip_row_pitch + k * update.chip_run_pitch
            s.chip.write_activations(at, planes[row, :, k])
    words = s.dram.reshape(-1, WORD_BYTES)
    words[update.dram : update.dram + count] = training.pack_masters(masters)


def _random_instructions(s: _Surroundings) -> Transfer:
    count = s.draw.randrange(1, 30)
    return Transfer(
        operation=Operation.LOAD,
        target=Target.INSTRUCTIONS,
        chip=s.draw.randrange(s.configuration.instruction_words - count),
        dram=s.draw.randrange(_LIST - 16),
        run_bytes=4 * count,
    )


def _words_of(transfer: Transfer) -> list[int]:
    """The words of DRAM that are moved, in their order."""
    if transfer.operation is Operation.UPDATE:
        return list(range(transfer.dram, transfer.dram + GROUP_CELLS * transfer.rows))
    return [
        transfer.dram + row * transfer.dram_row_pitch + run * transfer.dram_run_pitch + word
        for row in range(transfer.rows)
        for run in range(transfer.runs)
        for word in range(transfer.run_words)
    ]


def _random_list(s: _Surroundings, count: int) -> list[Transfer]:
    """One that is defined: UPDATEs may read what other instructions have left."""
    while True:
        transfers, golden = _draw_list(s, count), s.golden()
        try:
            for transfer in transfers:
                golden.execute(transfer.pack())
        except ArithmeticError:
            continue
        return transfers


def _draw_list(s: _Surroundings, count: int) -> list[Transfer]:
    """Ends with an END; no run begins while another one goes on.

    LOADs of what no STORE or UPDATE before them has touched may have a CRC.
    """
    transfers, running, stored = list[Transfer](), False, set[int]()
    updates = _random_updates(s, count // 4) if s.configuration.training else []

    def load(transfer: Transfer) -> Transfer:
        known = stored.isdisjoint(_words_of(transfer))
        return _with_crc(s, transfer) if known and s.draw.random() < 0.7 else transfer

    for _ in range(count):
        kind = s.draw.randrange(10 if updates else 8)
        if kind < 3:
            transfers.append(load(_random_box(s, Operation.LOAD)))
        elif kind < 5:
            transfers.append(_random_box(s, Operation.STORE))
            stored.update(_words_of(transfers[-1]))
        elif kind == 5:
            transfers.append(load(_random_weights(s)))
        elif kind == 6:
            transfers.append(load(_random_instructions(s)))
        elif kind > 7:
            transfers.append(updates.pop())
            stored.update(_words_of(transfers[-1]))
        else:
            if running:
                transfers.append(Transfer(operation=Operation.WAIT))
            pcs = s.draw.randrange(1 << 16), s.draw.randrange(1 << 16)
            transfers.append(Transfer(operation=Operation.RUN, pcs=pcs))
            running = True
    transfers.append(Transfer(operation=Operation.WAIT))
    transfers.append(Transfer(operation=Operation.END))
    return transfers


def _check(s: _Surroundings, golden: GoldenDma) -> None:
    for name in ("activations", "cells", "ninth", "instructions"):
        assert np.array_equal(getattr(s.chip, name), getattr(golden.chip, name)), name
    assert np.array_equal(s.dram, golden.dram)
    assert s.runs == s.golden_runs
    assert int(s.dut.executed.value) == golden.executed


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.7], seed=[1, 2, 3, 4])
async def does_what_the_model_does(dut: Any, stall: float, seed: int) -> None:
    s = _Surroundings(dut, seed, stall)
    s.place(_random_list(s, 40))
    golden = s.golden()
    expected = golden.execute(_jump())
    await s.start()
    assert await s.execute() is expected is DmaStatus.OK
    _check(s, golden)


def _with_crc(s: _Surroundings, transfer: Transfer) -> Transfer:
    words = s.dram.reshape(-1, WORD_BYTES)[_words_of(transfer)].tobytes()
    return Transfer(**{**vars(transfer), "checked": True, "crc": zlib.crc32(words)})


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def learns_with_each_shift(dut: Any, stall: float) -> None:
    s = _Surroundings(dut, 21, stall)
    await s.start()
    if not s.configuration.training:
        return
    for shift in range(_LARGEST_SHIFT + 1):
        update = Transfer(**{**vars(_random_update(s)), "shift": shift})
        _prepare_update(s, update)
        golden = s.golden()
        packed = update.pack()
        assert await s.give(packed) is golden.execute(packed) is DmaStatus.OK
        assert np.array_equal(s.dram, golden.dram), f"shift {shift}"


@cocotb.test()
@cocotb.parametrize(kind=["activations", "weights", "instructions"], seed=[1, 2, 3])
async def sees_a_bit_that_flips(dut: Any, kind: str, seed: int) -> None:
    """First all is right; then a bit of the words is another, and nothing behind is executed."""
    s = _Surroundings(dut, seed, 0.2)
    if kind == "activations":
        load = _random_box(s, Operation.LOAD)
    else:
        load = _random_weights(s) if kind == "weights" else _random_instructions(s)
    load = _with_crc(s, load)
    run = Transfer(operation=Operation.RUN, pcs=(3, 4))
    ends = [Transfer(operation=Operation.WAIT), Transfer(operation=Operation.END)]
    s.place([load, run, *ends])
    await s.start()
    assert await s.execute() is DmaStatus.OK
    assert s.runs == [(3, 4)]
    s.dram[load.dram * WORD_BYTES + s.draw.randrange(load.run_words * WORD_BYTES)] ^= (
        1 << s.draw.randrange(8)
    )
    golden = s.golden()
    assert golden.execute(_jump()) is DmaStatus.MEMORY_CORRUPT
    assert await s.execute() is DmaStatus.MEMORY_CORRUPT
    assert s.runs == [(3, 4)]
    # nothing is executed before a reset, and then everything is
    assert await s.give(run.pack()) is golden.execute(run.pack()) is DmaStatus.MEMORY_CORRUPT
    assert s.runs == [(3, 4)]
    await s.clear()
    s.place([run, *ends], first=_LIST + 100)
    assert await s.execute(_LIST + 100) is DmaStatus.OK
    assert s.runs == [(3, 4)] * 2


@cocotb.test()
async def executes_no_constants_of_a_dram_that_cannot_be_read(dut: Any) -> None:
    """A LOAD with a CRC ends with an error; one without still comes, for tests of the memory."""
    s = _Surroundings(dut, 8, 0.2)
    load = _random_box(s, Operation.LOAD)
    ends = [Transfer(operation=Operation.END)]
    s.place([load, *ends])
    s.place([_with_crc(s, load), *ends], first=_LIST + 100)
    await s.start()
    dut.faulty.value = 1
    assert await s.execute() is DmaStatus.OK
    assert await s.execute(_LIST + 100) is DmaStatus.MEMORY_CORRUPT


@cocotb.test()
async def refuses_what_there_is_none_of(dut: Any) -> None:
    s = _Surroundings(dut, 7, 0.1)
    await s.start()
    good = Transfer(operation=Operation.END).pack()
    boxes = bytearray(_random_weights(s).pack())
    boxes[WORD_BYTES + 2] = 1
    # a target is behind the operation's four bits
    operations = [6, 7, 15, 5 << 4 | 1, 7 << 4 | 1]
    if not s.configuration.ninth_bits:
        operations.append(Target.NINTHS << 4 | Operation.LOAD)
    refused = [bytes([first]) + good[1:] for first in operations]
    for bad in (*refused, bytes(boxes), *_bad_updates(s)):
        s.dram[_LIST * WORD_BYTES :][:TRANSFER_BYTES] = np.frombuffer(bad, np.uint8)
        assert s.golden().execute(_jump()) is DmaStatus.BAD_TRANSFER
        assert await s.execute() is DmaStatus.BAD_TRANSFER
        await s.clear()
        assert await s.give(bad) is DmaStatus.BAD_TRANSFER
        await s.clear()


def _bad_updates(s: _Surroundings) -> list[bytes]:
    """Without training hardware all; with it those of another shape or target."""
    packed = _update(chip=0, rows=1, chip_run_pitch=WORD_BYTES).pack()
    if not s.configuration.training:
        return [packed]

    def changed(place: int, value: int) -> bytes:
        return packed[:place] + bytes([value]) + packed[place + 1 :]

    # the bytes of a run and the runs, less one; a target is behind the operation's four bits
    shapes = [(WORD_BYTES, 6), (WORD_BYTES, 15), (WORD_BYTES + 2, 2), (WORD_BYTES + 2, 7)]
    shapes += [(WORD_BYTES + 1, 1), (WORD_BYTES + 3, 1)]
    targets = [(0, target << 4 | Operation.UPDATE) for target in Target if target]
    return [changed(*change) for change in shapes + targets]


@cocotb.test()
async def ends_with_a_bad_instruction(dut: Any) -> None:
    s = _Surroundings(dut, 8, 0.1)
    s.chip.bad_runs = {1}
    run, wait = Transfer(operation=Operation.RUN), Transfer(operation=Operation.WAIT)
    s.place([run, wait, run, wait, run, wait, Transfer(operation=Operation.END)])
    golden = s.golden()
    await s.start()
    assert await s.execute() is golden.execute(_jump()) is DmaStatus.BAD_INSTRUCTION
    assert len(s.runs) == len(s.golden_runs) == 2


@cocotb.test()
@cocotb.parametrize(seed=[1, 2])
async def takes_instructions_from_the_link(dut: Any, seed: int) -> None:
    s = _Surroundings(dut, seed, 0.2)
    await s.start()
    transfers = _random_list(s, 15)
    golden = s.golden()
    for transfer in transfers:
        assert await s.give(transfer.pack()) is golden.execute(transfer.pack())
    _check(s, golden)


@cocotb.test()
async def leaves_a_list(dut: Any) -> None:
    """A list that never ends ends with ``clear``."""
    s = _Surroundings(dut, 11, 0.0)
    s.place([Transfer(operation=Operation.JUMP, dram=_LIST)])
    await s.start()
    giving = cocotb.start_soon(s.execute())
    for _ in range(300):
        await RisingEdge(dut.clk)
    assert dut.busy.value == 1
    await s.clear()
    assert await giving is DmaStatus.OK


@cocotb.test()
async def ends_an_update_that_is_left(dut: Any) -> None:
    """With ``clear`` all weights of the instruction at hand learn, and none of the next one."""
    s = _Surroundings(dut, 12, 0.0)
    await s.start()
    if not s.configuration.training:
        return
    first, second = (_long_update(dram=place, rows=40) for place in (0, 1000))
    _prepare_update(s, first)
    s.place([first, second, Transfer(operation=Operation.END)])
    golden = s.golden()
    golden.execute(first.pack())
    giving = cocotb.start_soon(s.execute())
    for _ in range(200):
        await RisingEdge(dut.clk)
    assert dut.busy.value == 1
    await s.clear()
    assert await giving is DmaStatus.OK
    assert np.array_equal(s.dram, golden.dram)


def _long_update(*, dram: int, rows: int) -> Transfer:
    """Its sums lie dense, each plane behind the other."""
    pitch = WORD_BYTES * rows
    return _update(dram=dram, rows=rows, chip_run_pitch=pitch, chip_row_pitch=WORD_BYTES, shift=9)


@cocotb.test()
async def learns_while_it_reads_and_writes(dut: Any) -> None:
    """Of DRAM's latency only the first words' is seen."""
    s = _Surroundings(dut, 13, 0.0)
    await s.start()
    if not s.configuration.training:
        return
    update = _long_update(dram=3, rows=128)
    _prepare_update(s, update)
    golden, cycles = s.golden(), 0
    golden.execute(update.pack())
    giving = cocotb.start_soon(s.give(update.pack()))
    while not giving.done():
        await RisingEdge(dut.clk)
        cycles += 1
    assert np.array_equal(s.dram, golden.dram)
    # the sums of a row take 12 cycles, and each master word as long as its CRC
    each = max(12, GROUP_CELLS * 8 * WORD_BYTES // crc_bits(s.configuration))
    s.dut._log.info("%d rows took %d cycles", update.rows, cycles)
    assert cycles < each * update.rows + 60, f"{update.rows} rows took {cycles} cycles"


@cocotb.test()
async def fills_the_wire(dut: Any) -> None:
    """Loads of 64 words that follow each other keep the rate of the memory, or of the slices."""
    s = _Surroundings(dut, 9, 0.0)
    loads = [
        Transfer(operation=Operation.LOAD, chip=512 * k + 3, dram=64 * k, run_bytes=512)
        for k in range(6)
    ]
    s.place([*loads, Transfer(operation=Operation.END)])
    await s.start()
    cycles = 0

    async def count() -> None:
        nonlocal cycles
        while True:
            await RisingEdge(dut.clk)
            cycles += 1

    counting = cocotb.start_soon(count())
    assert await s.execute() is DmaStatus.OK
    counting.cancel()
    # Python's memory brings more than the chip can; a burst's first word comes seven cycles late
    per_cycle = min(chunk_bytes(s.configuration), crc_bits(s.configuration) // 8)
    moving = (6 * 64 * WORD_BYTES + 7 * TRANSFER_BYTES) // per_cycle
    assert cycles < moving + 7 * 24, f"6 x 64 words took {cycles} cycles"
