"""Starts the data endpoints anew when the host configures the device."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal

from .luna import part


class EndpointRestart(Elaboratable):
    """Tells luna's endpoints to begin with DATA0 again.

    luna's endpoints return to DATA0 only when the host clears their halt feature, not when it
    configures the device, as USB 2.0 (9.1.1.5) asks; the first packet of either direction was lost
    after every second enumeration. This is an endpoint without a number. It uses the wires that
    every endpoint has for clearing a halt.

    Parameters
    ----------
    endpoint : int
        Whose two directions begin anew.

    Members
    -------
    restart : Signal, in
        Strobe: the data endpoints begin with DATA0 again. What they hold stays.
    interface : luna's EndpointInterface
    """

    def __init__(self, endpoint: int) -> None:
        self._endpoint = endpoint
        self.restart = Signal()
        self.interface = part("EndpointInterface")()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outgoing, incoming = Signal(), Signal()
        m.d.usb += [outgoing.eq(self.restart), incoming.eq(outgoing)]
        clear = self.interface.clear_endpoint_halt_out
        m.d.comb += [
            # these wires are ORed with those of the other endpoints
            clear.enable.eq(outgoing | incoming),
            clear.direction.eq(incoming),
            clear.number.eq(Mux(outgoing | incoming, self._endpoint, 0)),
        ]
        return m
