"""Wishbone B4: its signals, and a target in front of registers.

The package amaranth-soc, where these should come from, is an empty placeholder on PyPI.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .register_file import Outcome, RegisterBus
from .registers import WORD_BITS, WORD_BYTES


class Wishbone(wiring.Signature):
    """Classic cycles with 32 bits of data in bytes, from the initiator's side.

    Parameters
    ----------
    address_bits : int
        Of byte addresses; ``adr`` counts words, so it has two bits less.
    """

    def __init__(self, address_bits: int) -> None:
        super().__init__(
            {
                "cyc": Out(1),
                "stb": Out(1),
                "we": Out(1),
                "adr": Out(address_bits - 2),
                "sel": Out(WORD_BYTES),
                "dat_w": Out(WORD_BITS),
                "dat_r": In(WORD_BITS),
                "ack": In(1),
                "err": In(1),
            }
        )


PORT_NAMES = {
    "cyc": "cyc_i",
    "stb": "stb_i",
    "we": "we_i",
    "adr": "adr_i",
    "sel": "sel_i",
    "dat_w": "dat_i",
    "dat_r": "dat_o",
    "ack": "ack_o",
    "err": "err_o",
}
"""The names that the specification gives to a target's ports."""


class WishboneTarget(wiring.Component):
    """Turns classic Wishbone cycles into accesses to registers.

    Each is answered one cycle after its strobe, by ``ack`` or ``err`` for one cycle, from
    registers: two cycles a transfer. ``err`` ends a cycle that no register takes.

    Parameters
    ----------
    address_bits : int
        Of byte addresses, at least 3.

    Members
    -------
    wishbone : In(Wishbone)
    bus : Out(RegisterBus)
    """

    wishbone: Any
    bus: Any

    def __init__(self, *, address_bits: int) -> None:
        super().__init__(
            {"wishbone": In(Wishbone(address_bits)), "bus": Out(RegisterBus(address_bits))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wishbone, bus = self.wishbone, self.bus
        answered = Signal()
        access = wishbone.cyc & wishbone.stb & ~answered
        m.d.sync += answered.eq(access)
        m.d.comb += [
            bus.address.eq(wishbone.adr),
            bus.write.eq(access & wishbone.we),
            bus.read.eq(access & ~wishbone.we),
            bus.write_data.eq(wishbone.dat_w),
            bus.write_strobes.eq(wishbone.sel),
            wishbone.dat_r.eq(bus.read_data),
            wishbone.ack.eq(answered & (bus.outcome == Outcome.OKAY)),
            wishbone.err.eq(answered & (bus.outcome != Outcome.OKAY)),
        ]
        return m
