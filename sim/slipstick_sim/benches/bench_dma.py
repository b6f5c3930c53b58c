"""The DMA against its golden model: random lists of instructions, memories that stall."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.dma_unit import dram_settings
from slipstick_rtl.dma.engine import DmaEngine
from slipstick_rtl.dma.layouts import chunk_bytes, crc_bits
from slipstick_rtl.dma.transfer import (
    MASTER_WORDS,
    TRANSFER_BYTES,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
    Transfer,
)

from ..golden.dma import GoldenDma
from .drivers.dma_surroundings import LIST, DmaSurroundings, jump_to
from .registry import Bench, parameters
from .stimulus.random_transfers import (
    LARGEST_SHIFT,
    prepare_update,
    random_box,
    random_instructions,
    random_list,
    random_update,
    random_weights,
    update_of,
    with_crc,
)


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
        # DDR3, and words of 16 bits: the CRC takes as many per cycle, and whole words
        {"rows": 16, "columns": 8, "lanes": 8, "ninth_bits": 1, "dram": "MT41K256M16"},
        # training hardware: blocks of 4 master rows, chunks of half a word
        {"rows": 4, "columns": 4, "lanes": 4, "dram": "MT48LC16M16", "training": 1},
    ),
    thorough=(
        {"rows": 16, "columns": 8, "lanes": 8, "ninth_bits": 1, "dram": "MT48LC16M16"},
        {"rows": 4, "columns": 4, "lanes": 4, "dram": "MT48LC16M16"},
        # words of 32 bits
        {"rows": 16, "columns": 8, "lanes": 8, "dram": "M12L16161A"},
        # blocks of 8 master rows, chunks of a word
        {"rows": 16, "columns": 8, "lanes": 8, "dram": "MT41K256M16", "training": 1},
    ),
)


def _surround(dut: Any, seed: int, stall: float) -> DmaSurroundings:
    return DmaSurroundings(dut, _configuration(parameters()), seed, stall)


def _check(s: DmaSurroundings, golden: GoldenDma) -> None:
    for name in ("activations", "cells", "ninth", "instructions"):
        assert np.array_equal(getattr(s.chip, name), getattr(golden.chip, name)), name
    assert np.array_equal(s.dram, golden.dram)
    assert s.runs == s.golden_runs
    assert int(s.dut.executed.value) == golden.executed


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.7], seed=[1, 2, 3, 4])
async def does_what_the_model_does(dut: Any, stall: float, seed: int) -> None:
    s = _surround(dut, seed, stall)
    s.place(random_list(s, 40))
    golden = s.golden()
    expected = golden.execute(jump_to())
    await s.start()
    assert await s.execute() is expected is DmaStatus.OK
    _check(s, golden)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def learns_with_each_shift(dut: Any, stall: float) -> None:
    s = _surround(dut, 21, stall)
    await s.start()
    if not s.configuration.training:
        return
    for shift in range(LARGEST_SHIFT + 1):
        update = Transfer(**{**vars(random_update(s)), "shift": shift})
        prepare_update(s, update)
        golden = s.golden()
        packed = update.pack()
        assert await s.give(packed) is golden.execute(packed) is DmaStatus.OK
        assert np.array_equal(s.dram, golden.dram), f"shift {shift}"


@cocotb.test()
@cocotb.parametrize(kind=["activations", "weights", "instructions"], seed=[1, 2, 3])
async def sees_a_bit_that_flips(dut: Any, kind: str, seed: int) -> None:
    """First all is right; then a bit of the words is another, and nothing behind is executed."""
    s = _surround(dut, seed, 0.2)
    if kind == "activations":
        load = random_box(s, Operation.LOAD)
    else:
        load = random_weights(s) if kind == "weights" else random_instructions(s)
    load = with_crc(s, load)
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
    assert golden.execute(jump_to()) is DmaStatus.MEMORY_CORRUPT
    assert await s.execute() is DmaStatus.MEMORY_CORRUPT
    assert s.runs == [(3, 4)]
    # nothing is executed before a reset, and then everything is
    assert await s.give(run.pack()) is golden.execute(run.pack()) is DmaStatus.MEMORY_CORRUPT
    assert s.runs == [(3, 4)]
    await s.clear()
    s.place([run, *ends], first=LIST + 100)
    assert await s.execute(LIST + 100) is DmaStatus.OK
    assert s.runs == [(3, 4)] * 2


@cocotb.test()
async def executes_no_constants_of_a_dram_that_cannot_be_read(dut: Any) -> None:
    """A LOAD with a CRC ends with an error; one without still comes, for tests of the memory."""
    s = _surround(dut, 8, 0.2)
    load = random_box(s, Operation.LOAD)
    ends = [Transfer(operation=Operation.END)]
    s.place([load, *ends])
    s.place([with_crc(s, load), *ends], first=LIST + 100)
    await s.start()
    dut.faulty.value = 1
    assert await s.execute() is DmaStatus.OK
    assert await s.execute(LIST + 100) is DmaStatus.MEMORY_CORRUPT


@cocotb.test()
async def refuses_what_there_is_none_of(dut: Any) -> None:
    s = _surround(dut, 7, 0.1)
    await s.start()
    good = Transfer(operation=Operation.END).pack()
    boxes = bytearray(random_weights(s).pack())
    boxes[WORD_BYTES + 2] = 1
    # a target is behind the operation's four bits
    operations = [6, 7, 15, 6 << 4 | 1, 7 << 4 | 1]
    if not s.configuration.training:
        operations.append(Target.TURNED << 4 | Operation.LOAD)
    if not s.configuration.ninth_bits:
        operations.append(Target.NINTHS << 4 | Operation.LOAD)
    refused = [bytes([first]) + good[1:] for first in operations]
    for bad in (*refused, bytes(boxes), *_bad_updates(s), *_bad_turns()):
        s.dram[LIST * WORD_BYTES :][:TRANSFER_BYTES] = np.frombuffer(bad, np.uint8)
        assert s.golden().execute(jump_to()) is DmaStatus.BAD_TRANSFER
        assert await s.execute() is DmaStatus.BAD_TRANSFER
        await s.clear()
        assert await s.give(bad) is DmaStatus.BAD_TRANSFER
        await s.clear()


def _bad_turns() -> list[bytes]:
    """Lists bad turned blocks: LOADs of too many bytes or runs; STORE, RUN, WAIT and UPDATE."""
    load = Transfer(operation=Operation.LOAD, target=Target.TURNED, run_bytes=8, runs=8).pack()
    large = [(WORD_BYTES, 8), (WORD_BYTES + 1, 1), (WORD_BYTES + 2, 8), (WORD_BYTES + 3, 1)]
    others = (Operation.STORE, Operation.RUN, Operation.WAIT, Operation.UPDATE)
    changes = large + [(0, Target.TURNED << 4 | operation) for operation in others]
    return [_changed(load, *change) for change in changes]


def _changed(packed: bytes, place: int, value: int) -> bytes:
    return packed[:place] + bytes([value]) + packed[place + 1 :]


def _bad_updates(s: DmaSurroundings) -> list[bytes]:
    """Without training hardware all; with it those of another shape or target."""
    packed = update_of(chip=0, rows=1, chip_run_pitch=WORD_BYTES).pack()
    if not s.configuration.training:
        return [packed]

    # the bytes of a run and the runs, less one; a target is behind the operation's four bits
    shapes = [(WORD_BYTES, 6), (WORD_BYTES, 15), (WORD_BYTES + 2, 2), (WORD_BYTES + 2, 7)]
    shapes += [(WORD_BYTES + 1, 1), (WORD_BYTES + 3, 1)]
    targets = [(0, target << 4 | Operation.UPDATE) for target in Target if target]
    return [_changed(packed, *change) for change in shapes + targets]


@cocotb.test()
async def ends_with_a_bad_instruction(dut: Any) -> None:
    s = _surround(dut, 8, 0.1)
    s.chip.bad_runs = {1}
    run, wait = Transfer(operation=Operation.RUN), Transfer(operation=Operation.WAIT)
    s.place([run, wait, run, wait, run, wait, Transfer(operation=Operation.END)])
    golden = s.golden()
    await s.start()
    assert await s.execute() is golden.execute(jump_to()) is DmaStatus.BAD_INSTRUCTION
    assert len(s.runs) == len(s.golden_runs) == 2
    # the instruction that was read ahead is not there when the next list begins
    await s.clear()
    s.place([run, wait, Transfer(operation=Operation.END)], first=LIST + 100)
    assert await s.execute(LIST + 100) is DmaStatus.OK
    assert len(s.runs) == 3


@cocotb.test()
async def forgets_an_error_of_a_list_that_is_left(dut: Any) -> None:
    """An error that is seen behind ``clear`` is not one of what comes next."""
    s = _surround(dut, 14, 0.0)
    load = with_crc(s, Transfer(operation=Operation.LOAD, chip=0, dram=64, run_bytes=4096))
    ends = [Transfer(operation=Operation.END)]
    s.place([load, *ends])
    s.dram[load.dram * WORD_BYTES] ^= 1
    await s.start()
    giving = cocotb.start_soon(s.execute())
    for _ in range(100):
        await RisingEdge(dut.clk)
    assert dut.busy.value == 1
    await s.clear()
    assert await giving is DmaStatus.OK
    s.place(ends, first=LIST + 100)
    assert await s.execute(LIST + 100) is DmaStatus.OK


@cocotb.test()
@cocotb.parametrize(seed=[1, 2])
async def takes_instructions_from_the_link(dut: Any, seed: int) -> None:
    s = _surround(dut, seed, 0.2)
    await s.start()
    transfers = random_list(s, 15)
    golden = s.golden()
    for transfer in transfers:
        assert await s.give(transfer.pack()) is golden.execute(transfer.pack())
    _check(s, golden)


@cocotb.test()
async def leaves_a_list(dut: Any) -> None:
    """A list that never ends ends with ``clear``."""
    s = _surround(dut, 11, 0.0)
    s.place([Transfer(operation=Operation.JUMP, dram=LIST)])
    await s.start()
    giving = cocotb.start_soon(s.execute())
    for _ in range(300):
        await RisingEdge(dut.clk)
    assert dut.busy.value == 1
    await s.clear()
    assert await giving is DmaStatus.OK


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def leaves_a_list_at_any_time(dut: Any, stall: float) -> None:
    """The instruction that was read ahead is never taken for one of the next list."""
    s = _surround(dut, 15, stall)
    run, wait = Transfer(operation=Operation.RUN, pcs=(5, 6)), Transfer(operation=Operation.WAIT)
    some = [random_box(s, operation) for operation in (Operation.STORE, Operation.LOAD) * 3]
    ends = [wait, Transfer(operation=Operation.END)]
    s.place([some[0], run, some[1], wait, *some[2:], *ends])
    # the first list's run may still be under way
    s.place([wait, Transfer(operation=Operation.RUN, pcs=(3, 4)), *ends], first=LIST + 100)
    await s.start()
    for cycles in range(5, 245, 3):
        giving = cocotb.start_soon(s.execute())
        for _ in range(cycles):
            await RisingEdge(dut.clk)
        await s.clear()
        assert await giving is DmaStatus.OK
        before = len(s.runs)
        assert await s.execute(LIST + 100) is DmaStatus.OK, f"{cycles} cycles"
        assert s.runs[before:] == [(3, 4)], f"{cycles} cycles"


@cocotb.test()
async def ends_an_update_that_is_left(dut: Any) -> None:
    """With ``clear`` all weights of the instruction at hand learn, and none of the next one."""
    s = _surround(dut, 12, 0.0)
    await s.start()
    if not s.configuration.training:
        return
    first, second = (_long_update(dram=place, rows=40) for place in (0, 1000))
    prepare_update(s, first)
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
    return update_of(dram=dram, rows=rows, chip_run_pitch=pitch, chip_row_pitch=WORD_BYTES, shift=9)


@cocotb.test()
async def learns_while_it_reads_and_writes(dut: Any) -> None:
    """Checks that only the first words of an UPDATE wait for DRAM's latency."""
    s = _surround(dut, 13, 0.0)
    await s.start()
    if not s.configuration.training:
        return
    update = _long_update(dram=3, rows=128)
    prepare_update(s, update)
    golden, cycles = s.golden(), 0
    golden.execute(update.pack())
    giving = cocotb.start_soon(s.give(update.pack()))
    while not giving.done():
        await RisingEdge(dut.clk)
        cycles += 1
    assert np.array_equal(s.dram, golden.dram)
    # the sums of a row take 12 cycles, and each word of a master row as long as its CRC
    each = max(12, MASTER_WORDS * 8 * WORD_BYTES // crc_bits(s.configuration))
    s.dut._log.info("%d rows took %d cycles", update.rows, cycles)
    assert cycles < each * update.rows + 60, f"{update.rows} rows took {cycles} cycles"


@cocotb.test()
async def fills_the_wire(dut: Any) -> None:
    """Loads of 64 words that follow each other keep the rate of the memory, or of the slices."""
    s = _surround(dut, 9, 0.0)
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
