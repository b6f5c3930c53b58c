"""The core on AXI: registers on AXI4-Lite, the link's frames on AXI4-Stream as well."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accelerator import Accelerator
from ..config import Configuration
from .axi_lite import AxiLite, AxiLiteSubordinate
from .axi_stream import AxiStream, AxiStreamInput, AxiStreamOutput, Word
from .register_map import MAP_BYTES
from .registered_accelerator import RegisteredAccelerator
from .registers import RegisterMap


class AxiAccelerator(wiring.Component):
    """Registers, two streams and an interrupt; any of the streams may stay unconnected.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    s_axil : In(AxiLite)
        The registers.
    s_axis : In(AxiStream)
        Requests: a packet holds whole frames, and bytes between them are skipped.
    m_axis : Out(AxiStream)
        Responses, each a packet, while the register ``control`` has it so.
    irq : Out
        High while there is a reason.
    """

    s_axil: Any
    s_axis: Any
    m_axis: Any
    irq: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._inner = RegisteredAccelerator(configuration=configuration)
        super().__init__(
            {
                "s_axil": In(AxiLite((MAP_BYTES - 1).bit_length())),
                "s_axis": In(AxiStream(Word)),
                "m_axis": Out(AxiStream(Word)),
                "irq": Out(1),
            }
        )

    @property
    def accelerator(self) -> Accelerator:
        """The core."""
        return self._inner.accelerator

    @property
    def registers(self) -> RegisterMap:
        """Returns the registers on ``s_axil``."""
        return self._inner.registers

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = self._inner
        m.submodules.subordinate = subordinate = AxiLiteSubordinate(
            address_bits=self.registers.address_bits
        )
        m.submodules.received = received = AxiStreamInput(Word)
        m.submodules.sent = sent = AxiStreamOutput(Word)
        connect(m, flipped(self.s_axil), subordinate.axi)
        connect(m, subordinate.bus, inner.bus)
        connect(m, flipped(self.s_axis), received.axi)
        connect(m, received.o, inner.requests)
        connect(m, inner.responses, sent.i)
        connect(m, sent.axi, flipped(self.m_axis))
        m.d.comb += self.irq.eq(inner.irq)
        return m
