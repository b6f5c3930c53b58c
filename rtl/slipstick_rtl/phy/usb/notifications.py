"""The endpoint that has nothing to say, and that starts the others anew."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal

from .descriptors import DATA_ENDPOINT, NOTIFICATION_ENDPOINT
from .luna import part


class Notifications(Elaboratable):
    """Answers every poll of the notifications' endpoint with NAK.

    luna's endpoints return to DATA0 only when the host clears their halt feature, not when it
    configures the device, as USB 2.0 (9.1.1.5) asks; the first packet of either direction was lost
    after every second enumeration. This endpoint tells them so by the wires that every endpoint has
    for clearing a halt.

    Members
    -------
    restart : Signal, in
        Strobe: the data endpoints begin with DATA0 again. What they hold stays.
    interface : luna's EndpointInterface
    """

    def __init__(self) -> None:
        self.restart = Signal()
        self.interface = part("EndpointInterface")()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tokenizer = self.interface.tokenizer
        polled = tokenizer.is_in & (tokenizer.endpoint == NOTIFICATION_ENDPOINT)
        outgoing, incoming = Signal(), Signal()
        m.d.usb += [outgoing.eq(self.restart), incoming.eq(outgoing)]
        clear = self.interface.clear_endpoint_halt_out
        m.d.comb += [
            self.interface.handshakes_out.nak.eq(polled & tokenizer.ready_for_response),
            # these wires are ORed with those of the other endpoints
            clear.enable.eq(outgoing | incoming),
            clear.direction.eq(incoming),
            clear.number.eq(Mux(outgoing | incoming, DATA_ENDPOINT, 0)),
        ]
        return m
