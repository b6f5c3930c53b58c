"""The core on byte streams with the names of AXI4-Stream."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accelerator import Accelerator
from ..config import Configuration
from .axi_stream import AxiStream, AxiStreamInput, AxiStreamOutput, Byte


class StreamAccelerator(wiring.Component):
    """The framed link as it is; nothing but queues between it and the ports.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    s_axis, m_axis : In(AxiStream), Out(AxiStream)
        Bytes of requests, bytes of responses.
    running : Out
        A program runs; a cycle late.
    """

    s_axis: Any
    m_axis: Any
    running: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self.accelerator = Accelerator(configuration=configuration)
        super().__init__(
            {
                "s_axis": In(AxiStream(Byte)),
                "m_axis": Out(AxiStream(Byte)),
                "running": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules.received = received = AxiStreamInput(Byte)
        m.submodules.sent = sent = AxiStreamOutput(Byte)
        connect(m, flipped(self.s_axis), received.axi)
        connect(m, sent.axi, flipped(self.m_axis))
        m.d.comb += [
            core.i.payload.eq(received.o.p.data),
            core.i.valid.eq(received.o.valid),
            received.o.ready.eq(core.i.ready),
            sent.i.p.data.eq(core.o.payload),
            sent.i.valid.eq(core.o.valid),
            core.o.ready.eq(sent.i.ready),
        ]
        m.d.sync += self.running.eq(core.running)
        return m
