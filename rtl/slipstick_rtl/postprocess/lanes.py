"""The post engine's datapath: L lanes, their parameters, and the choice of accumulators."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..layouts import POST_INSTRUCTION
from ..primitives.delay import delay
from .lane import PostLane
from .multiplier import VALUE_BITS
from .parameters import PARAMETER_WRITE, ParameterMemory
from .table import TABLE_WRITE

INSTRUCTION_DELAY = 4
"""Cycles, at most, until a lane has the instruction under way."""


class PostLanes(wiring.Component):
    """L lanes that work in step; fixed latency, no stall. Delays are those of :class:`PostLane`.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instruction : In(POST_INSTRUCTION)
        With ``draining``, ``INSTRUCTION_DELAY`` cycles before the lanes combine their first tap.
    draining : In(1)
    parameter_write : In(PARAMETER_WRITE)
    table_write : In(TABLE_WRITE)
    bytes : In(8 x L)
        Taps, with ``odd``.
    odd : In(1)
    accumulators : In(32 x P x C)
        ``accumulator_latency`` cycles before the lanes take them.
    pixel : In(range(P))
        Which of them, with ``slice``; with the accumulators.
    slice : In(range(C / L))
    valid, first : In(1)
    parameter_address : In(range(parameter_words))
        ``ParameterMemory.latency`` cycles before the lanes take the bias.
    results : Out(8 x L)
    """

    instruction: data.View
    draining: Signal
    parameter_write: data.View
    table_write: data.View
    bytes: data.View
    odd: Signal
    accumulators: Signal
    pixel: Signal
    slice: Signal
    valid: Signal
    first: Signal
    parameter_address: Signal
    results: data.View

    accumulator_latency = 1
    """Cycles: the register behind the choice."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        lanes, columns = configuration.lanes, configuration.columns
        super().__init__(
            {
                "instruction": In(POST_INSTRUCTION),
                "draining": In(1),
                "parameter_write": In(PARAMETER_WRITE),
                "table_write": In(TABLE_WRITE),
                "bytes": In(data.ArrayLayout(8, lanes)),
                "odd": In(1),
                "accumulators": In(configuration.pixels * columns * VALUE_BITS),
                "pixel": In(range(configuration.pixels)),
                "slice": In(range(columns // lanes)),
                "valid": In(1),
                "first": In(1),
                "parameter_address": In(range(configuration.parameter_words)),
                "results": Out(data.ArrayLayout(8, lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = self._configuration
        m.submodules.parameters = parameters = ParameterMemory(configuration=configuration)
        m.d.comb += [
            parameters.write.eq(self.parameter_write),
            parameters.address.eq(self.parameter_address),
        ]
        pixel_bits = configuration.columns * VALUE_BITS
        slice_bits = configuration.lanes * VALUE_BITS
        chosen = Signal(data.ArrayLayout(VALUE_BITS, configuration.lanes), reset_less=True)
        m.d.sync += chosen.eq(
            self.accumulators.word_select(self.pixel, pixel_bits).word_select(
                self.slice, slice_bits
            )
        )
        instruction, draining = self.instruction, self.draining
        for index in range(configuration.lanes):
            m.submodules[f"lane_{index}"] = lane = PostLane()
            # from group to group of lanes, so that no wire goes to all of them
            if index % -(-configuration.lanes // INSTRUCTION_DELAY) == 0:
                instruction = delay(m, instruction, 1, f"instruction_{index}", reset_less=True)
                draining = delay(m, draining, 1, f"draining_{index}", reset_less=True)
            m.d.comb += [
                lane.instruction.eq(instruction),
                lane.table_write.eq(self.table_write),
                lane.byte.eq(self.bytes[index]),
                lane.odd.eq(self.odd),
                lane.accumulator.eq(chosen[index]),
                lane.draining.eq(draining),
                lane.valid.eq(self.valid),
                lane.first.eq(self.first),
                lane.bias.eq(parameters.bias[index]),
                lane.multiplier.eq(parameters.multiplier[index]),
                lane.shift.eq(parameters.shift[index]),
                self.results[index].eq(lane.result),
            ]
        return m
