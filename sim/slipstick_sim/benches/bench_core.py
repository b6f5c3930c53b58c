"""The whole core behind its link against the golden core behind the golden endpoint."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from slipstick_rtl import isa
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    AFTER,
    CONTINUES,
    REQUEST_START,
    SILENT,
    WAITING,
    Command,
    Region,
    Space,
    Status,
    encode,
)

from ..golden.arithmetic import operand_range
from .drivers.core_host import Host, pieces
from .drivers.streams import Consumer, Producer, start
from .registry import Bench, parameters
from .stimulus.random_program import random_parameter_words, random_program, random_weights


def make(**shape: Any) -> Accelerator:
    """A small core of this shape."""
    return Accelerator(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 13,
        accumulator_depth=64,
        parameter_words=32 if shape.get("engine") == "compact" else 0,
        instruction_words=1 << 10,
        payload_bytes=256,
        **shape,
    )


BENCH = Bench(
    name="bench_core",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 2, "rows": 4, "columns": 4, "lanes": 4},
        {"rows": 12, "columns": 4, "lanes": 4, "weight_rows": 2, "number_format": "lns1+2+2"},
        {"rows": 8, "columns": 8, "lanes": 4, "ninth_bits": 1, "training": 1}
        | {"drain_tables": 1, "products": 1},
        {"rows": 2, "columns": 8, "lanes": 1, "engine": "compact"},
        # two rows share their sums; stages of lanes rest, of some a cycle later
        {"rows": 12, "columns": 8, "lanes": 4, "weight_rows": 2, "halved_tables": 1, "silicon": 1},
    ),
    thorough=(
        {"rows": 8, "columns": 4, "lanes": 4, "weight_rows": 2, "number_format": "lns1+3+2"},
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4},
        {"rows": 24, "columns": 8, "lanes": 8, "weight_rows": 2, "multiplier": "lut"},
        {"rows": 8, "columns": 4, "lanes": 4, "weight_rows": 2, "products": 1, "silicon": 1},
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 2, "number_format": "lns1+3+2"},
        {"rows": 16, "columns": 8, "lanes": 8, "ninth_bits": 1, "training": 1}
        | {"drain_tables": 1, "products": 1},
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 2, "silicon": 1},
        {"rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2, "training": 1, "silicon": 1},
        {"rows": 16, "columns": 16, "lanes": 4, "weight_rows": 4, "number_format": "lns1+3+2"}
        | {"silicon": 1},
        {
            "rows": 16,
            "columns": 8,
            "lanes": 4,
            "halved_tables": 1,
            "weight_rows": 4,
            "ninth_bits": 1,
            "packed_rows": 5,
            "multiplier": "lut",
        },
        {"rows": 4, "columns": 8, "lanes": 1, "engine": "compact"},
    ),
)


_PIECE = 40
"""Bytes that are written at a time while a program runs."""


class _Round:
    """A random program, its weights and its parameters, in one half of each memory."""

    def __init__(
        self, generator: np.random.Generator, configuration: Configuration, half: int
    ) -> None:
        small = replace(
            configuration,
            weight_bytes=configuration.weight_bytes // 2,
            parameter_words=configuration.parameter_words // 2,
        )
        weights, units = random_weights(generator, small)
        program, post_pc, self.turns = random_program(
            generator,
            small,
            weights,
            first_weight=half * small.weight_words,
            first_parameter=half
            * (
                small.parameter_words
                if configuration.traits.has_parameter_memory
                else small.weight_words
            ),
        )
        self.matrix_pc = half * configuration.instruction_words // 2
        self.post_pc = self.matrix_pc + post_pc
        self.memories = (
            (Space.INSTRUCTIONS, 4, program, self.matrix_pc),
            (Space.WEIGHTS, small.weight_unit_bytes, units, half * small.weight_words),
            (
                Space.PARAMETERS,
                small.parameter_bytes,
                random_parameter_words(generator, small),
                half * small.parameter_words,
            ),
        )


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Programs leave the same bytes in activation memory; each comes in while another runs.

    One golden core for all of them: accumulators and table outlive a run, in gateware too.
    """
    configuration = _configuration(parameters())
    generator = np.random.default_rng(6)
    await start(dut)
    host = Host(dut, configuration)
    await host.request(Command.IDENTIFY)
    ends = operand_range(configuration)
    size = configuration.activation_bytes
    activations = generator.integers(*ends, size, np.int8, endpoint=True)
    await host.write(Space.ACTIVATIONS, 1, activations.tobytes())
    now = _Round(generator, configuration, 0)
    for memory in now.memories:
        await host.write(*memory)
    meanwhile = 0
    for half, stall in ((1, 0.0), (0, 0.0), (1, 0.0), (0, 0.0), (1, 0.3), (0, 0.7)):
        host.stall(stall)
        after = _Round(generator, configuration, half)
        # a whole word at least
        most = max(_PIECE, configuration.weight_word_bytes)
        writes = [pieces(*memory, most) for memory in after.memories]
        left = {piece for memory in writes for piece in memory}
        await host.run(now.matrix_pc, now.post_pc)
        while (await host.look()).running:
            # mostly parameters: an engine reads that memory in a cycle here and there
            memory = writes[min(generator.integers(6), 1 + bool(writes[2]))]
            piece = memory[generator.integers(len(memory))]
            await ClockCycles(dut.clk, int(generator.integers(1, 100)))
            await host.request(Command.WRITE, piece)
            left.discard(piece)
            meanwhile += 1
        for piece in sorted(left):
            await host.request(Command.WRITE, piece)
        status = await host.status()
        assert status.done == (now.turns, now.turns)
        assert not status.bad_instruction and 0 < status.stream_cycles[0] < status.cycles, status
        await host.compare_activations(configuration.activation_bytes)
        now = after
    assert meanwhile > 10, f"{meanwhile} writes while a program ran are too few to tell"
    for stall in (0.0, 0.5):
        host.stall(stall)
        await _submit_images(host, generator, now)
    await host.compare_activations(configuration.activation_bytes)


_INPUT = Region(address=5, run_bytes=24, runs=16, gap=9)
_RESULT = Region(address=1024, run_bytes=16, runs=3, planes=4, gap=16, plane_gap=7, count=190)


async def _submit_images(host: Host, generator: np.random.Generator, program: _Round) -> None:
    """A batch, with all its requests sent at once; every byte of memory is the program's, so that
    an image waits for the end of the run before it."""
    ends = operand_range(host.configuration)
    starts = b"".join(pc.to_bytes(2, "little") for pc in (program.matrix_pc, program.post_pc))
    requests = [
        (Command.DEFINE | SILENT, b"\0" + _INPUT.pack()),
        (Command.DEFINE, b"\1" + _RESULT.pack()),
    ]
    for _ in range(3):
        image = generator.integers(*ends, _INPUT.size, np.int8, endpoint=True).tobytes()
        requests += [
            (Command.PUT | SILENT | WAITING, b"\0" + image[:250]),
            (Command.PUT | SILENT, bytes([CONTINUES]) + image[250:]),
            (Command.RUN_GET, bytes([1 | AFTER]) + starts),
            (Command.PUT | SILENT, b"\0" + image[:100]),
            (Command.RUN | SILENT, b"\1" + starts),
            (Command.GET | WAITING, b"\1"),
        ]
    await host.stream(requests)


@cocotb.test()
async def bad_and_endless_programs(dut: Any) -> None:
    """An unknown opcode ends its stream; a program that waits for ever is stopped by RESET."""
    configuration = _configuration(parameters())
    await start(dut)
    host = Host(dut, configuration)
    halt, bad = bytes(48), bytes([9]) + bytes(47)
    await host.write(Space.INSTRUCTIONS, 4, halt + bad)
    await host.run(12, 0)
    assert (await host.status()).bad_instruction
    await host.run(0, 0)
    assert not (await host.status()).bad_instruction

    endless = isa.pack(isa.POST_FIELDS, {"opcode": isa.Opcode.TABLE, "wait": 1})
    content = bytes([0, 0, 0, 0]) + halt + endless
    frame, other = (encode(REQUEST_START, Command.WRITE, number, content) for number in (7, 9))
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    for request, size, expected in (
        (encode(REQUEST_START, Command.OPEN, 6, bytes(4)), 9, Status.OK),
        (frame, 9, Status.OK),
        (encode(REQUEST_START, Command.RUN, 8, bytes([1, 0, 0, 12, 0])), 9, Status.OK),
        (encode(REQUEST_START, Command.RUN, 9, bytes([1, 0, 0, 12, 0])), 9, Status.BUSY),
        (other, 9, Status.OK),
        (encode(REQUEST_START, Command.RESET, 10), 9, Status.OK),
    ):
        sending = producer.start(request)
        answer = await consumer.receive(size)
        await sending
        assert answer[1] == expected, f"{answer} must say {expected.name}"
    assert not (await host.status()).running
