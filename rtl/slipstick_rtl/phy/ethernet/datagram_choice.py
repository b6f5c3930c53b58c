"""Chooses what the board sends next: an answer to a host, or a SEND to the owner."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .board_owner import REPLY_KIND
from .datagrams import Kind
from .packet_words import HEAD

SEND = Kind.SEND & (1 << REPLY_KIND) - 1


class DatagramChoice(wiring.Component):
    """Keeps one answer, and whether a SEND is wanted. Where both wait, they take turns.

    An answer that waits gives way to a later one.

    Members
    -------
    reply : In(3)
        Strobe, unless 0: low bits of the kind of an answer to ``head``.
    head : In(HEAD)
    present, owner : In
        As of ``BoardOwner``.
    clear : In
        Strobe: the owner changes. SENDs begin at number 0, and none is wanted.
    report : In
        Strobe: a SEND is wanted, with bytes or without.
    ready : In
        There are bytes for a SEND.
    available : Out
        There is something to send; a cycle after it came.
    kind : Out(3), to : Out(HEAD)
        What, and to whom, with its number and lease.
    take : In
        Strobe, while ``available``: it begins. The next is available two cycles later at the
        earliest.
    left : In
        Strobe: the bytes that are ``ready`` have left.
    """

    reply: Signal
    head: data.View
    present: Signal
    owner: data.View
    clear: Signal
    report: Signal
    ready: Signal
    available: Signal
    kind: Signal
    to: data.View
    take: Signal
    left: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "reply": In(REPLY_KIND),
                "head": In(HEAD),
                "present": In(1),
                "owner": In(HEAD),
                "clear": In(1),
                "report": In(1),
                "ready": In(1),
                "available": Out(1),
                "kind": Out(REPLY_KIND),
                "to": Out(HEAD),
                "take": In(1),
                "left": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        answer, answer_kind = Signal(HEAD), Signal(REPLY_KIND)
        wanted, sent_last = Signal(), Signal()
        number = Signal(16)
        answers, sends = answer_kind != 0, self.present & (wanted | self.ready)
        answers_next = Signal()
        m.d.comb += [
            self.kind.eq(Mux(answers_next, answer_kind, SEND)),
            self.to.eq(Mux(answers_next, answer, self.owner)),
        ]
        with m.If(~answers_next):
            m.d.comb += self.to.number.eq(number)
        m.d.sync += [
            self.available.eq((answers | sends) & ~(self.take | self.left | self.clear)),
            answers_next.eq(answers & (sent_last | ~sends)),
        ]
        with m.If(self.take):
            m.d.sync += sent_last.eq(~answers_next)
            with m.If(answers_next):
                m.d.sync += answer_kind.eq(0)
            with m.Else():
                m.d.sync += [wanted.eq(0), number.eq(number + self.ready)]
        with m.If(self.reply != 0):
            m.d.sync += [answer.eq(self.head), answer_kind.eq(self.reply)]
        with m.If(self.report):
            m.d.sync += wanted.eq(1)
        with m.If(self.clear):
            m.d.sync += [wanted.eq(0), number.eq(0)]
        return m
