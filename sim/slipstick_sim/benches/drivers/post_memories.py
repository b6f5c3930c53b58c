"""Memories around the post engine as cocotb coroutines: fixed latencies, garbage when not asked."""

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import data
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.latencies import (
    ACCUMULATOR_READ_LATENCY,
    ACCUMULATOR_WAY,
    ACTIVATION_READ_LATENCY,
    WEIGHT_READ_LATENCY,
    weight_skew,
)
from slipstick_rtl.postprocess.control import accumulator_read_layout, activation_read_layout

from .streams import unpack

_GARBAGE_WORDS = 64
"""Different ones, between the answers."""


@dataclass(frozen=True)
class Contents:
    """Holds the contents of the memories.

    Parameters
    ----------
    accumulators : array of int32, (2, depth, P, C)
    activations : array of int8, (bytes,)
        Changed in place.
    weights : array of int8, (weight_words, W, C)
    ninth : array of uint8, (weight_words, W, C)
    """

    accumulators: np.ndarray
    activations: np.ndarray
    weights: np.ndarray
    ninth: np.ndarray


class PostMemories:
    """Accumulators, activation memory and weight memory of a ``PostEngine`` under test.

    Parameters
    ----------
    dut : cocotb handle
    configuration : Configuration
    contents : Contents
    seed : int
        Of the garbage and of the weight port's stalls.

    Members
    -------
    stall : float
        Probability that the weight memory takes no read in a cycle.
    reads, writes : list of int
        Cycles in which activation memory was read and written.
    """

    def __init__(
        self,
        dut: Any,
        configuration: Configuration,
        contents: Contents,
        *,
        seed: int,
    ) -> None:
        self._dut, self._lanes, self._pixels = dut, configuration.lanes, configuration.pixels
        self._accumulators, self._activations = contents.accumulators, contents.activations
        self._weights = WeightPort(configuration, contents.weights, contents.ninth, seed)
        self.stall = 0.3
        self._random = random.Random(seed)
        self._accumulator_read = accumulator_read_layout(configuration)
        self._activation_read = activation_read_layout(configuration)
        self._activation_write = data.StructLayout(
            {**self._activation_read.members, "data": 8 * configuration.lanes}
        )
        self.reads: list[int] = []
        self.writes: list[int] = []
        self._cycle = 0

    def start(self) -> None:
        """Serves all ports from now on."""
        self._dut.parameter_reads__ready.value = 0
        self._dut.table_reads__ready.value = 0
        cocotb.start_soon(self._serve_accumulators())
        cocotb.start_soon(self._serve_activations())
        cocotb.start_soon(self._serve_weights())

    def _garbage(self, port: Any) -> int:
        return self._random.getrandbits(len(port))

    async def _serve_accumulators(self) -> None:
        dut, port = self._dut, self._dut.accumulator_data
        answers: deque[int | None] = deque([None] * (ACCUMULATOR_READ_LATENCY - 1))
        phase = 0
        while True:
            dut.phase.value = phase
            await RisingEdge(dut.clk)
            read = unpack(self._accumulator_read, dut.accumulator_read.value.to_unsigned())
            if read["enable"] and self._pixels == 1:
                # when it is at the memories, the array uses the other one
                then = (phase + ACCUMULATOR_WAY) % 2
                assert read["address"] & 1 != then, "a word is read out of turn"
            phase ^= 1
            words = self._accumulators[read["bank"], read["address"]]
            answers.append(_bits(words) if read["enable"] else None)
            answer = answers.popleft()
            port.value = self._garbage(port) if answer is None else answer

    async def _serve_activations(self) -> None:
        dut, port = self._dut, self._dut.activation_read_data
        answers: deque[int | None] = deque([None] * (ACTIVATION_READ_LATENCY - 1))
        while True:
            await RisingEdge(dut.clk)
            read = unpack(self._activation_read, dut.activation_read.value.to_unsigned())
            write = unpack(self._activation_write, dut.activation_write.value.to_unsigned())
            assert not (read["enable"] and write["enable"]), "a read and a write in one cycle"
            place = slice(read["address"], read["address"] + self._lanes)
            answers.append(_bits(self._activations[place]) if read["enable"] else None)
            answer = answers.popleft()
            port.value = self._garbage(port) if answer is None else answer
            self._cycle += 1
            if read["enable"]:
                self.reads.append(self._cycle)
            if write["enable"]:
                assert write["address"] % self._lanes == 0
                place = slice(write["address"], write["address"] + self._lanes)
                word = write["data"].to_bytes(self._lanes, "little")
                self._activations[place] = np.frombuffer(word, np.int8)
                self.writes.append(self._cycle)

    async def _serve_weights(self) -> None:
        """Parameters first; the choice is a cycle late, as a register's would be."""
        dut = self._dut
        ports = (
            (dut.parameter_reads__valid, dut.parameter_reads__ready, dut.parameter_reads__payload),
            (dut.table_reads__valid, dut.table_reads__ready, dut.table_reads__payload),
        )
        while True:
            await RisingEdge(dut.clk)
            taken = None
            for valid, ready, payload in ports:
                if valid.value == 1 and ready.value == 1:
                    assert taken is None
                    taken = payload.value.to_unsigned()
            dut.weight_data.value, dut.weight_ninth.value = self._weights.step(taken)
            chosen = int(ports[0][0].value == 0 and ports[1][0].value == 1)
            if self._random.random() < self.stall:
                chosen = len(ports)
            for index, (_, ready, _) in enumerate(ports):
                ready.value = int(index == chosen)


class WeightPort:
    """The weight memory's words, each byte as late as the array wants it; garbage between.

    Parameters
    ----------
    configuration : Configuration
    weights, ninth : arrays, (weight_words, W, C)
    seed : int
    """

    def __init__(
        self, configuration: Configuration, weights: np.ndarray, ninth: np.ndarray, seed: int
    ) -> None:
        c = configuration
        self._weights, self._ninth = weights, ninth
        generator = np.random.default_rng(seed)
        shape = _GARBAGE_WORDS, c.weight_rows, c.columns
        self._garbage = (
            generator.integers(-128, 128, shape, np.int8),
            generator.integers(0, 2, shape, np.uint8),
        )
        self._idle = [_packed(*words) for words in zip(*self._garbage, strict=True)]
        self._places = np.indices((c.weight_rows, c.columns))
        skews = [[weight_skew(c, s, j) for j in range(c.columns)] for s in range(c.weight_rows)]
        # a read that is recorded in one cycle is answered in the next at the earliest
        self._delays = np.array(skews) + WEIGHT_READ_LATENCY - 1
        depth = int(self._delays.max()) + 1
        self._reads = deque([-1] * depth, depth)
        self._cycle = self._last = 0

    def step(self, taken: int | None) -> tuple[int, int]:
        """Bytes and ninth bits of the next cycle, after a cycle with or without a read."""
        self._cycle += 1
        self._reads.appendleft(-1 if taken is None else taken)
        garbage = self._cycle % _GARBAGE_WORDS
        if taken is not None:
            self._last = self._cycle
        if self._cycle - self._last >= len(self._reads):
            return self._idle[garbage]
        words = np.array(self._reads)[self._delays]
        data, ninth = (
            np.where(words < 0, pool[garbage], memory[(np.maximum(words, 0), *self._places)])
            for memory, pool in zip((self._weights, self._ninth), self._garbage, strict=True)
        )
        return _packed(data, ninth)


def _packed(data: np.ndarray, ninth: np.ndarray) -> tuple[int, int]:
    return _bits(data), _bits(np.packbits(ninth, bitorder="little"))


def _bits(words: np.ndarray) -> int:
    return int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")
