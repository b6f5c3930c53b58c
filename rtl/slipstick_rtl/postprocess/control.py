"""The post engine's control path: what is read, combined and written in every cycle."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..layouts import POST_INSTRUCTION
from ..memory.latencies import ACCUMULATOR_READ_LATENCY, ACTIVATION_READ_LATENCY
from ..primitives.delay import delay
from .addresses import AccumulatorCursor, AddressGenerator
from .lane import PostLane
from .lanes import PostLanes
from .loops import COUNTS, STEP, LoopNest
from .parameters import ParameterMemory

TAP = data.StructLayout({"valid": 1, "first": 1})
"""A tap to combine, and whether it begins a result."""


def accumulator_read_layout(configuration: Configuration) -> data.StructLayout:
    """The read port of the accumulators; the address counts groups of P pixels."""
    return data.StructLayout(
        {"enable": 1, "bank": 1, "address": range(configuration.accumulator_depth)}
    )


def activation_read_layout(configuration: Configuration) -> data.StructLayout:
    """Port B of the activation memory; the address counts bytes and is a multiple of L."""
    return data.StructLayout({"enable": 1, "address": range(configuration.activation_bytes)})


class PostControl(wiring.Component):
    """The loop nest and the addresses that follow it, each at its distance in cycles.

    Only MAP's reads share a port with the writes: the nest pauses in cycles that a write takes, and
    nothing behind it ever stalls.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    start : In(1)
        A pulse, in the first cycle of ``instruction``.
    instruction : In(POST_INSTRUCTION)
        Constant until ``written``; DRAIN has one tap.
    draining : In(1)
        It is DRAIN, not MAP.
    activation_read : Out(enable, address)
    odd : Out(1)
        Of the tap whose bytes arrive.
    accumulator_read : Out(enable, bank, address)
    pixel : Out(range(P))
        Of the accumulators that arrive.
    slice : Out(range(C / L))
    tap : Out(TAP)
        What the lanes combine.
    parameter_address : Out(range(parameter_words))
    write : Out(enable, address)
        Of the results that leave the lanes.
    written : Out(1)
        A pulse, with the last write.
    """

    start: Signal
    instruction: data.View
    draining: Signal
    activation_read: data.View
    odd: Signal
    accumulator_read: data.View
    pixel: Signal
    slice: Signal
    tap: data.View
    parameter_address: Signal
    write: data.View
    written: Signal

    read_distance = 1
    """Cycles from a step to the read of its tap: the addresses follow the loops' ends."""

    combine_distance = read_distance + ACTIVATION_READ_LATENCY + PostLane.combine_delay
    """Cycles from a step to the combination of its tap."""

    accumulator_distance = (
        read_distance
        + ACTIVATION_READ_LATENCY
        + PostLane.accumulator_delay
        - PostLanes.accumulator_latency
        - ACCUMULATOR_READ_LATENCY
    )
    """Cycles from a step to the read of its accumulators: they are combined when a tap would be."""

    parameter_distance = (
        read_distance + ACTIVATION_READ_LATENCY + PostLane.value_delay - ParameterMemory.latency
    )
    """Cycles from a result's last step to the read of its parameters."""

    latency = read_distance + ACTIVATION_READ_LATENCY + PostLane.latency
    """Cycles from a result's last step to its write."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self._unit_bits = exact_log2(configuration.lanes)
        self._unit_address_bits = exact_log2(configuration.activation_bytes) - self._unit_bits
        super().__init__(
            {
                "start": In(1),
                "instruction": In(POST_INSTRUCTION),
                "draining": In(1),
                "activation_read": Out(activation_read_layout(configuration)),
                "odd": Out(1),
                "accumulator_read": Out(accumulator_read_layout(configuration)),
                "pixel": Out(range(configuration.pixels)),
                "slice": Out(range(configuration.columns // configuration.lanes)),
                "tap": Out(TAP),
                "parameter_address": Out(range(configuration.parameter_words)),
                "write": Out(activation_read_layout(configuration)),
                "written": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.loops = loops = LoopNest()
        instruction, step = self.instruction, loops.step
        m.d.comb += [
            loops.load.eq(self.start),
            *(loops.counts[name].eq(instruction[name]) for name in COUNTS.members),
        ]
        # the nest's steps, and those of them that complete a result, as they were n cycles ago
        steps = [step]
        results = [Signal(STEP, name="result")]
        m.d.comb += [results[0].eq(step), results[0].valid.eq(step.valid & step.last)]
        for _ in range(self.combine_distance):
            steps.append(delay(m, steps[-1], 1, f"step_{len(steps)}"))
        for _ in range(self.latency):
            results.append(delay(m, results[-1], 1, f"result_{len(results)}"))
        # a register that is 1 when the step's read would meet a write
        stall_distance = self.latency - self.read_distance
        m.d.sync += loops.stall.eq(~self.draining & results[stall_distance - 1].valid)

        self._follow_source(m, steps[self.read_distance])
        self._follow_accumulators(m, results[self.accumulator_distance])
        self._follow_parameters(m, results[self.parameter_distance])
        self._follow_destination(m, results[self.latency])
        m.d.comb += [
            self.odd.eq(steps[self.read_distance + ACTIVATION_READ_LATENCY].odd),
            self.tap.valid.eq(steps[self.combine_distance].valid),
            self.tap.first.eq(steps[self.combine_distance].first),
        ]
        return m

    def _units(self, field: Value) -> Value:
        """A byte address or step in units of L bytes; what lies above the memory is cut off."""
        return field[self._unit_bits : self._unit_bits + self._unit_address_bits]

    def _follow_source(self, m: Module, step: data.View) -> None:
        m.submodules.source = source = AddressGenerator(width=self._unit_address_bits, levels=5)
        instruction = self.instruction
        m.d.comb += [
            source.load.eq(self.start),
            source.origin.eq(self._units(instruction.source)),
            source.steps[0].eq(self._units(instruction.tap_step_x)),
            source.steps[1].eq(self._units(instruction.tap_step_y)),
            source.steps[2].eq(1),
            source.steps[3].eq(self._units(instruction.source_column_step)),
            source.steps[4].eq(self._units(instruction.source_row_step)),
            source.advance.eq(step.valid),
            source.ends.eq(Cat(step.tap_row_end, step.last, step.pixel_end, step.row_end)),
            self.activation_read.enable.eq(step.valid & ~self.draining),
            self.activation_read.address[self._unit_bits :].eq(source.address),
        ]

    def _follow_accumulators(self, m: Module, result: data.View) -> None:
        m.submodules.cursor = cursor = AccumulatorCursor(configuration=self._configuration)
        m.d.comb += [
            cursor.load.eq(self.start),
            cursor.advance.eq(result.valid),
            cursor.pixel_end.eq(result.pixel_end),
            cursor.row_end.eq(result.row_end),
            self.accumulator_read.enable.eq(result.valid & self.draining),
            self.accumulator_read.bank.eq(self.instruction.bank),
            self.accumulator_read.address.eq(cursor.address),
            self.pixel.eq(delay(m, cursor.pixel, ACCUMULATOR_READ_LATENCY, "pixel")),
            self.slice.eq(delay(m, cursor.slice, ACCUMULATOR_READ_LATENCY, "slice")),
        ]

    def _follow_parameters(self, m: Module, result: data.View) -> None:
        width = len(self.parameter_address)
        m.submodules.parameters = parameters = AddressGenerator(width=width, levels=2)
        m.d.comb += [
            parameters.load.eq(self.start),
            parameters.origin.eq(self.instruction.parameter_address),
            parameters.steps[0].eq(self.draining | self.instruction.parameter_step),
            parameters.steps[1].eq(0),  # every pixel begins with the first word again
            parameters.advance.eq(result.valid),
            parameters.ends.eq(result.pixel_end),
            self.parameter_address.eq(parameters.address),
        ]

    def _follow_destination(self, m: Module, result: data.View) -> None:
        m.submodules.destination = destination = AddressGenerator(
            width=self._unit_address_bits, levels=3
        )
        instruction = self.instruction
        m.d.comb += [
            destination.load.eq(self.start),
            destination.origin.eq(self._units(instruction.destination)),
            destination.steps[0].eq(1),
            destination.steps[1].eq(self._units(instruction.destination_column_step)),
            destination.steps[2].eq(self._units(instruction.destination_row_step)),
            destination.advance.eq(result.valid),
            destination.ends.eq(Cat(result.pixel_end, result.row_end)),
            self.write.enable.eq(result.valid),
            self.write.address[self._unit_bits :].eq(destination.address),
            self.written.eq(result.valid & result.end),
        ]
