"""Decodes what a judged request asks for."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .layouts import JudgedRequest, SpaceArguments
from .protocol import Command, Status
from .response_sender import IDENTITY_BYTES, STATUS_BYTES

_FLAGS = ("identify", "write", "read", "run", "reset", "open", "sealed")

MEANING = data.StructLayout({**dict.fromkeys(_FLAGS, 1), "length": 16})
"""What a request asks for, and the length of its answer."""


class RequestDecoder(wiring.Component):
    """Tells what is to be done for a judged request; without delay.

    Members
    -------
    request : In(JudgedRequest)
    identify, write, read, run, reset, open : Out
        What is to be done; nothing unless the request is OK, and no RUN that is ``repeated``.
    sealed : Out
        The answer is sealed with the session.
    length : Out
        Bytes of the answer's payload.
    """

    request: data.View
    identify: Signal
    write: Signal
    read: Signal
    run: Signal
    reset: Signal
    open: Signal
    length: Signal
    sealed: Signal

    def __init__(self) -> None:
        fields = {name: Out(field.shape) for name, field in MEANING}
        super().__init__({"request": In(JudgedRequest), **fields})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        target = data.View(SpaceArguments, self.request.arguments.as_value()[: SpaceArguments.size])
        m.d.comb += self.sealed.eq(
            (self.request.verdict != Status.BAD_CRC)
            & (self.request.header.command != Command.IDENTIFY)
        )
        with m.If(self.request.verdict == Status.OK):
            with m.Switch(self.request.header.command):
                with m.Case(Command.IDENTIFY):
                    m.d.comb += [self.length.eq(IDENTITY_BYTES), self.identify.eq(1)]
                with m.Case(Command.WRITE):
                    m.d.comb += self.write.eq(1)
                with m.Case(Command.READ):
                    m.d.comb += [self.read.eq(1), self.length.eq(target.count)]
                with m.Case(Command.RUN):
                    m.d.comb += self.run.eq(~self.request.repeated)
                with m.Case(Command.STATUS):
                    m.d.comb += self.length.eq(STATUS_BYTES)
                with m.Case(Command.RESET):
                    m.d.comb += self.reset.eq(1)
                with m.Case(Command.OPEN):
                    m.d.comb += [self.reset.eq(1), self.open.eq(1)]
        return m
