"""The endpoint that has nothing to say."""

from amaranth.hdl import Elaboratable, Module

from .descriptors import NOTIFICATION_ENDPOINT
from .luna import part


class Notifications(Elaboratable):
    """Answers every poll of the notifications' endpoint with NAK.

    Members
    -------
    interface : luna's EndpointInterface
    """

    def __init__(self) -> None:
        self.interface = part("EndpointInterface")()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tokenizer = self.interface.tokenizer
        polled = tokenizer.is_in & (tokenizer.endpoint == NOTIFICATION_ENDPOINT)
        nak = self.interface.handshakes_out.nak
        m.d.comb += nak.eq(polled & tokenizer.ready_for_response)
        return m
