"""Memories around the DMA in Python, which stall at random, and the same in the golden model."""

import copy
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.activation_writer import chunk_write_layout
from slipstick_rtl.dma.dma_unit import dram_settings
from slipstick_rtl.dma.layouts import (
    INSTRUCTION_PART,
    INSTRUCTION_WORD,
    WEIGHT_GROUP,
    chunk_bytes,
)
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    SUM_BYTES,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Transfer,
)
from slipstick_rtl.dram.burst_port import burst_layout

from ...golden.dma import GoldenDma
from .streams import pack, start, unpack

_DRAM_BYTES = 1 << 16
LIST = 0x1C00
"""The word of DRAM where the instructions are: data lie before them."""
_RUN_CYCLES = 60


@dataclass
class ArrayChip:
    """The chip's memories as arrays.

    Parameters
    ----------
    activations : array of uint8
    cells : array of uint8, (groups, 8)
        Of the weight memory.
    ninth : array of uint8, (groups,)
        The ninth bits of a group's cells.
    instructions : array of uint32
    bad_runs : set of int
        Which runs meet a bad instruction, from 0 on.
    runs : list of (int, int)
        Where the streams of each run began.
    """

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

    def copy(self) -> "ArrayChip":
        return copy.deepcopy(self)


class _CheckedDma(GoldenDma):
    """Refuses an UPDATE with a sum of -2^31, which is not defined."""

    def _update(self, transfer: Transfer) -> None:
        for row in range(transfer.rows):
            first = transfer.chip + row * transfer.chip_row_pitch
            places = (first + k * transfer.chip_run_pitch for k in range(SUM_BYTES))
            planes = np.stack([self.chip.read_activations(at, WORD_BYTES) for at in places])
            if (planes.T == (0, 0, 0, 0x80)).all(1).any():
                raise ArithmeticError("a sum must not be -2^31")
        super()._update(transfer)


class DmaSurroundings:
    """Memories in Python behind the engine's ports, with random stalls.

    Parameters
    ----------
    dut : DmaEngine in cocotb
    configuration : Configuration
    seed : int
        Of memories and stalls.
    stall : float
        Share of the cycles in which a port waits.

    Members
    -------
    dram : array of uint8
    chip : ArrayChip
    draw : Random
    """

    def __init__(self, dut: Any, configuration: Configuration, seed: int, stall: float) -> None:
        self.dut, self.draw, self.stall = dut, random.Random(seed), stall
        self.configuration = c = configuration
        self.generator = np.random.default_rng(seed)
        groups = c.weight_words * c.weight_word_bytes // GROUP_CELLS
        self.dram = self.generator.integers(0, 256, _DRAM_BYTES, np.uint8)
        self.chip = ArrayChip(
            activations=self.generator.integers(0, 256, c.activation_bytes, np.uint8),
            cells=np.zeros((groups, GROUP_CELLS), np.uint8),
            ninth=np.zeros(groups, np.uint8),
            instructions=np.zeros(c.instruction_words, np.uint32),
            bad_runs=set(),
        )
        self.runs = self.chip.runs

    def golden(self) -> GoldenDma:
        """Returns the golden model with copies of the memories."""
        chip = self.chip.copy()
        self.golden_runs = chip.runs
        c = self.configuration
        return _CheckedDma(self.dram.copy(), chip, bool(c.ninth_bits), bool(c.training))

    def place(self, transfers: list[Transfer], first: int = LIST) -> None:
        """Puts a list of instructions into DRAM."""
        packed = b"".join(transfer.pack() for transfer in transfers)
        self.dram[first * WORD_BYTES :][: len(packed)] = np.frombuffer(packed, np.uint8)

    async def start(self) -> None:
        """Resets the engine, and lets the memories answer from now on."""
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

    async def execute(self, first: int = LIST) -> DmaStatus:
        """Executes the list that begins at a word of DRAM."""
        return await self.give(jump_to(first))

    async def give(self, packed: bytes) -> DmaStatus:
        """Gives an instruction as the link does, a word at a time with pauses between."""
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
        """Ends what is under way."""
        self.dut.clear.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.clear.value = 0


def jump_to(first: int = LIST) -> bytes:
    """Returns the JUMP to a list, packed."""
    return Transfer(operation=Operation.JUMP, dram=first).pack()
