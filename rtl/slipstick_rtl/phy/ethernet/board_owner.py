"""The lease: which host the board listens to, and what it answers the others."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .datagrams import Kind
from .packet_reader import KINDS
from .packet_words import HEAD

REPLY_KIND = 3
"""Bits of a board's kind that differ."""


class BoardOwner(wiring.Component):
    """Grants and refuses the board, by the rules of :mod:`.datagrams`.

    Parameters
    ----------
    lease_cycles : int
        Cycles of silence after which the lease ends, at least 2.

    Members
    -------
    head : In(HEAD)
        The sender; stays for a cycle before ``kinds``.
    kinds : In(KINDS)
        Strobe: what it sends.
    present : Out
        There is an owner, with or without a lease.
    owned : Out
        A lease is alive.
    owner : Out(HEAD)
        Address, port and lease; zeros without an owner. Its number is 0.
    granted : Out
        Strobe: a new lease begins.
    released : Out
        Strobe: there is no owner from now on.
    data, poll : Out
        Strobe: of the owner.
    reply : Out(3)
        Low bits of the kind of the answer to the sender, or 0: none.

    Raises
    ------
    ValueError
        If ``lease_cycles`` is less than 2.
    """

    head: data.View
    kinds: data.View
    present: Signal
    owned: Signal
    owner: data.View
    granted: Signal
    released: Signal
    data: Signal
    poll: Signal
    reply: Signal

    def __init__(self, *, lease_cycles: int) -> None:
        if lease_cycles < 2:
            raise ValueError(f"lease_cycles must be at least 2, not {lease_cycles}")
        self._lease_cycles = lease_cycles
        super().__init__(
            {
                "head": In(HEAD),
                "kinds": In(KINDS),
                "present": Out(1),
                "owned": Out(1),
                "owner": Out(HEAD),
                "granted": Out(1),
                "released": Out(1),
                "data": Out(1),
                "poll": Out(1),
                "reply": Out(REPLY_KIND),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        head, kinds, owner = self.head, self.kinds, self.owner
        same_address, same_port, same_lease = Signal(), Signal(), Signal()
        m.d.sync += [
            same_address.eq(head.address == owner.address),
            same_port.eq(head.port == owner.port),
            same_lease.eq(head.lease == owner.lease),
        ]
        same_host = self.present & same_address & same_port
        is_owner, grant, refuse = Signal(), Signal(), Signal()
        m.d.comb += [
            is_owner.eq(same_host & same_lease),
            grant.eq(kinds.take | kinds.claim & (same_host | ~self.owned)),
            refuse.eq(kinds.claim & ~grant | (kinds.data | kinds.poll) & ~is_owner),
            self.granted.eq(grant & ~is_owner),
            self.released.eq(kinds.release & is_owner),
            self.data.eq(kinds.data & is_owner),
            self.poll.eq(kinds.poll & is_owner),
        ]
        for strobe, kind in (
            (kinds.discover, Kind.HERE),
            (grant, Kind.GRANTED),
            (refuse, Kind.REFUSED),
        ):
            with m.If(strobe):
                m.d.comb += self.reply.eq(kind & (1 << REPLY_KIND) - 1)
        with m.If(self.granted):
            m.d.sync += [self.present.eq(1), owner.eq(head), owner.number.eq(0)]
        with m.If(self.released):
            m.d.sync += [self.present.eq(0), owner.eq(0)]
        self._count(m, grant | self.data | self.poll)
        return m

    def _count(self, m: Module, heard: Value) -> None:
        """Cycles until the lease ends; negative without one."""
        left = Signal(range(-1, self._lease_cycles), init=-1)
        # the sign: synthesis makes a comparison of all bits
        m.d.comb += self.owned.eq(~left[-1])
        with m.If(heard | self.released):
            m.d.sync += left.eq(Mux(self.released, -1, self._lease_cycles - 1))
        with m.Elif(self.owned):
            m.d.sync += left.eq(left - 1)
