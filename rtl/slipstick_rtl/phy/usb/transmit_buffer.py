"""Keeps the device's logic off the way from the clock to a ULPI chip's pins."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class TransmitBuffer(wiring.Component):
    """Two bytes of a packet to send, between luna's device and its translator; both of UTMI.

    Without it the pins would wait for the endpoints' decisions, and those for the chip's NXT. A
    byte per cycle of ``usb``, each a cycle later. A packet ends as before: by ``tx_valid``.

    Members
    -------
    data, valid, ready : In, In, Out
        From the device.
    keep : In
        Low: what is here when ``valid`` falls is dropped, as at the end of a chirp, whose bytes no
        one may have taken.
    tx_data, tx_valid, tx_ready : Out, Out, In
        To the translator.
    """

    data: Signal
    valid: Signal
    ready: Signal
    keep: Signal
    tx_data: Signal
    tx_valid: Signal
    tx_ready: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "data": In(8),
                "valid": In(1),
                "ready": Out(1),
                "keep": In(1),
                "tx_data": Out(8),
                "tx_valid": Out(1),
                "tx_ready": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare, has_spare = Signal(8), Signal()
        m.d.comb += self.ready.eq(~has_spare)
        with m.If(~self.tx_valid | self.tx_ready):
            m.d.usb += [
                self.tx_data.eq(self.data),
                self.tx_valid.eq(self.valid),
                has_spare.eq(0),
            ]
            with m.If(has_spare):
                m.d.usb += [self.tx_data.eq(spare), self.tx_valid.eq(1)]
        with m.Elif(~has_spare):
            m.d.usb += [spare.eq(self.data), has_spare.eq(self.valid)]
        with m.If(~self.keep & ~self.valid):
            m.d.usb += [self.tx_valid.eq(0), has_spare.eq(0)]
        return m
