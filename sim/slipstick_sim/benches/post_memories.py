"""Memories around the post engine as cocotb coroutines: fixed latencies, garbage when not asked."""

import random
from collections import deque
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import data
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.memory.latencies import (
    ACCUMULATOR_READ_LATENCY,
    ACTIVATION_READ_LATENCY,
    WEIGHT_READ_LATENCY,
)
from slipstick_rtl.postprocess.control import accumulator_read_layout, activation_read_layout

from .streams import unpack


class PostMemories:
    """Accumulators, activation memory and weight memory of a ``PostEngine`` under test.

    Parameters
    ----------
    dut : cocotb handle
    configuration : Configuration
    accumulators : array of int32, (2, depth, P, C)
    activations : array of int8, (bytes,)
        Changed in place.
    weights : array of int8, (words, C)
    seed : int
        Of the garbage and of the weight port's stalls.

    Members
    -------
    writes, reads : int
        Of activation memory, so far.
    """

    def __init__(
        self,
        dut: Any,
        configuration: Configuration,
        accumulators: np.ndarray,
        activations: np.ndarray,
        weights: np.ndarray,
        *,
        seed: int,
    ) -> None:
        self._dut, self._lanes = dut, configuration.lanes
        self._accumulators, self._activations = accumulators, activations
        self._weights = weights
        self._random = random.Random(seed)
        self._accumulator_read = accumulator_read_layout(configuration)
        self._activation_read = activation_read_layout(configuration)
        self._activation_write = data.StructLayout(
            {**self._activation_read.members, "data": 8 * configuration.lanes}
        )
        self.writes = self.reads = 0

    def start(self) -> None:
        """Serves all ports from now on."""
        self._dut.weight_read__ready.value = 0
        self._dut.weight_valid.value = 0
        cocotb.start_soon(self._serve_accumulators())
        cocotb.start_soon(self._serve_activations())
        cocotb.start_soon(self._serve_weights())

    def _garbage(self, port: Any) -> int:
        return self._random.getrandbits(len(port))

    async def _serve_accumulators(self) -> None:
        dut, port = self._dut, self._dut.accumulator_data
        answers: deque[int | None] = deque([None] * (ACCUMULATOR_READ_LATENCY - 1))
        while True:
            await RisingEdge(dut.clk)
            read = unpack(self._accumulator_read, dut.accumulator_read.value.to_unsigned())
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
            self.reads += read["enable"]
            if write["enable"]:
                assert write["address"] % self._lanes == 0
                place = slice(write["address"], write["address"] + self._lanes)
                word = write["data"].to_bytes(self._lanes, "little")
                self._activations[place] = np.frombuffer(word, np.int8)
                self.writes += 1

    async def _serve_weights(self) -> None:
        dut = self._dut
        answers: deque[int | None] = deque([None] * (WEIGHT_READ_LATENCY - 1))
        ready = 0
        while True:
            await RisingEdge(dut.clk)
            taken = ready and dut.weight_read__valid.value == 1
            address = dut.weight_read__payload.value.to_unsigned()
            answers.append(_bits(self._weights[address]) if taken else None)
            answer = answers.popleft()
            dut.weight_valid.value = int(answer is not None)
            dut.weight_data.value = self._garbage(dut.weight_data) if answer is None else answer
            ready = int(self._random.random() < 0.7)
            dut.weight_read__ready.value = ready


def _bits(words: np.ndarray) -> int:
    return int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")
