"""Control requests: the standard ones, which luna answers, and those of a serial port."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, ResetInserter, Signal

from .descriptors import PACKET_BYTES
from .luna import part

STANDARD = 0
CLASS = 1 << 8
"""Types of request; the second as it stands above a request's number."""

SET_LINE_CODING, GET_LINE_CODING = 0x20, 0x21
SET_CONTROL_LINE_STATE, SEND_BREAK = 0x22, 0x23

LINE_CODING_BYTES = 7
DEFAULT_LINE_CODING = (115_200).to_bytes(4, "little") + bytes([0, 0, 8])
"""Baud rate u32, stop bits, parity, data bits: all without a meaning here."""


class StandardRequests(Elaboratable):
    """luna's standard requests, guarded against what would leave them waiting for ever.

    luna's handler takes every ACK for an answer to its own packet, also that of another endpoint
    between the stages of a request; and a request that the host gave up, by a new SETUP or by a bus
    reset, it still waits for. Here it hears ACKs for endpoint 0 alone, and begins anew with every
    SETUP.

    Parameters
    ----------
    descriptors
        As of ``serial_port_descriptors``.

    Members
    -------
    interface : luna's RequestHandlerInterface
    """

    def __init__(self, descriptors: Any) -> None:
        self.interface = part("RequestHandlerInterface")()
        self._handler = part("StandardRequestHandler")(descriptors, max_packet_size=PACKET_BYTES)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outer, inner = self.interface, self._handler.interface
        abandoned = outer.tokenizer.new_token & outer.tokenizer.is_setup
        m.submodules.handler = ResetInserter({"usb": abandoned})(self._handler)
        for name in ("setup", "tokenizer", "data_requested", "status_requested", "active_config"):
            m.d.comb += getattr(inner, name).eq(getattr(outer, name))
        m.d.comb += [
            inner.handshakes_in.ack.eq(outer.handshakes_in.ack & (outer.tokenizer.endpoint == 0)),
            inner.tx.attach(outer.tx),
            outer.tx_data_pid.eq(inner.tx_data_pid),
            outer.handshakes_out.eq(inner.handshakes_out),
            # luna answers no data of a request that it refuses, and it knows none that has some
            outer.handshakes_out.stall.eq(inner.handshakes_out.stall | outer.rx_ready_for_response),
            outer.claim.eq(inner.claim),
            outer.address_changed.eq(inner.address_changed),
            outer.new_address.eq(inner.new_address),
            outer.config_changed.eq(inner.config_changed),
            outer.new_config.eq(inner.new_config),
            outer.clear_endpoint_halt.eq(inner.clear_endpoint_halt),
        ]
        return m


class NoRequests(Elaboratable):
    """Refuses every request that is not a standard one, also one with data.

    luna itself answers the data of a request that no one claims with silence.

    Members
    -------
    interface : luna's RequestHandlerInterface
    """

    def __init__(self) -> None:
        self.interface = part("RequestHandlerInterface")()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        interface = self.interface
        asked = interface.data_requested | interface.status_requested
        m.d.comb += [
            interface.claim.eq(interface.setup.type != STANDARD),
            interface.handshakes_out.stall.eq(asked | interface.rx_ready_for_response),
        ]
        return m


class LineRequests(Elaboratable):
    """A serial port's requests: all are accepted, and none does anything. Any other is refused.

    A line coding is kept and given back, for hosts that look whether it was taken. DTR, RTS and
    breaks are ignored.

    Members
    -------
    interface : luna's RequestHandlerInterface
    """

    def __init__(self) -> None:
        self.interface = part("RequestHandlerInterface")()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        interface = self.interface
        setup = interface.setup
        coding = Signal(8 * LINE_CODING_BYTES, init=int.from_bytes(DEFAULT_LINE_CODING, "little"))
        m.submodules.serializer = serializer = part("StreamSerializer")(
            data_length=LINE_CODING_BYTES,
            domain="usb",
            stream_type=part("USBInStreamInterface"),
            max_length_width=range(LINE_CODING_BYTES + 1),
        )
        shorter = setup.length < LINE_CODING_BYTES
        asked = interface.data_requested | interface.status_requested
        m.d.comb += [
            Cat(*serializer.data).eq(coding),
            serializer.max_length.eq(Mux(shorter, setup.length, LINE_CODING_BYTES)),
            interface.claim.eq(setup.type != STANDARD),
        ]
        empty_packet = [interface.tx.valid.eq(1), interface.tx.last.eq(1)]
        with m.Switch(Cat(setup.request, setup.type)):
            with m.Case(SET_LINE_CODING | CLASS):
                m.d.comb += interface.handshakes_out.ack.eq(interface.rx_ready_for_response)
                with m.If(interface.rx.valid & interface.rx.next):
                    m.d.usb += coding.eq(Cat(coding[8:], interface.rx.payload))
                with m.If(interface.status_requested):
                    m.d.comb += empty_packet
            with m.Case(GET_LINE_CODING | CLASS):
                m.d.comb += [
                    serializer.stream.attach(interface.tx),
                    serializer.start.eq(interface.data_requested),
                    interface.handshakes_out.ack.eq(interface.status_requested),
                ]
            with m.Case(SET_CONTROL_LINE_STATE | CLASS, SEND_BREAK | CLASS):
                with m.If(interface.status_requested):
                    m.d.comb += empty_packet
            with m.Default():
                stall = interface.handshakes_out.stall
                m.d.comb += stall.eq(asked | interface.rx_ready_for_response)
        return m
