"""The matrix engine with all memories that it touches, as a unit under test."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.array.accumulators import Accumulators, read_layout
from slipstick_rtl.array.matrix_engine import MatrixEngine
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION
from slipstick_rtl.link.layouts import ByteWrite
from slipstick_rtl.memory.activation_memory import ActivationMemory
from slipstick_rtl.memory.port_arbiter import byte_write_layout
from slipstick_rtl.memory.weight_memory import WeightMemory


class MatrixUnit(wiring.Component):
    """Everything that a CONVOLVE touches, with ports to fill and read the memories."""

    weight: data.View
    weight_enable: Signal
    post_done: Signal
    done: Signal
    busy: Signal
    streaming: Signal
    read: data.View
    read_data: Signal
    instructions: stream.Interface
    activations: stream.Interface
    parameter_reads: stream.Interface
    parameters_urgent: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "activations": In(stream.Signature(byte_write_layout(c))),
                "parameter_reads": In(stream.Signature(24)),
                "parameters_urgent": In(1),
                "weight": In(ByteWrite),
                "weight_enable": In(1),
                "post_done": In(16),
                "done": Out(16),
                "busy": Out(1),
                "streaming": Out(1),
                "read": In(read_layout(c.accumulator_depth)),
                "read_data": Out(c.pixels * c.columns * 32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        m.submodules.engine = engine = MatrixEngine(configuration=c)
        m.submodules.accumulators = accumulators = Accumulators(configuration=c)
        m.submodules.activations = activations = ActivationMemory(configuration=c)
        m.submodules.weights = weights = WeightMemory(configuration=c)
        connect(m, engine.instructions, flipped(self.instructions))
        connect(m, activations.link_writes, flipped(self.activations))
        connect(m, engine.weight_reads, weights.loader_reads)
        connect(m, weights.parameter_reads, flipped(self.parameter_reads))
        phase = Signal()
        m.d.sync += phase.eq(~phase)
        m.d.comb += [
            weights.parameters_urgent.eq(self.parameters_urgent),
            engine.phase.eq(phase),
            engine.post_done.eq(self.post_done),
            self.done.eq(engine.done),
            self.busy.eq(engine.busy),
            weights.write.eq(self.weight),
            weights.write_enable.eq(self.weight_enable),
            self.streaming.eq(engine.streaming),
            engine.weight_data.eq(weights.data),
            engine.weight_ninth.eq(weights.ninth),
            activations.window_rows.eq(engine.bank_rows),
            engine.bank_bytes.eq(activations.window_data),
            accumulators.control.eq(engine.control),
            accumulators.partial_sums.eq(engine.partial_sums),
            accumulators.even_sums.eq(engine.even_sums),
            accumulators.read.eq(self.read),
            self.read_data.eq(accumulators.read_data),
        ]
        return m
