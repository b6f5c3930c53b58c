"""Decodes what a judged request asks for."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .layouts import JudgedRequest, RegionArgument, RunArguments, SpaceArguments
from .protocol import RUN_CLEARS_COUNTERS, STATUS_BYTES, Command, Status
from .response_sender import IDENTITY_BYTES

_TRANSFERS = ("write", "put", "define", "read", "get")
_FLAGS = ("identify", "run", "clear", "after", "reset", "open", "sealed", "transfers", *_TRANSFERS)

MEANING = data.StructLayout({**dict.fromkeys(_FLAGS, 1), "length": 16})
"""Actions that a request asks for, a bit each, and the bytes of its answer's payload."""


class RequestDecoder(wiring.Component):
    """Tells what is to be done for a judged request; without delay.

    Members
    -------
    request : In(JudgedRequest)
    identify, write, put, define, read, get, run, reset, open : Out
        What is to be done; nothing unless the request is OK, and none of ``write``, ``put`` and
        ``run`` for a request that is ``repeated``; nothing is read for a silent one. RUN_GET is
        ``run`` and ``get``.
    clear : Out
        The counters begin anew with the ``run``.
    after : Out
        The ``get`` is of what the run leaves.
    transfers : Out
        Any of ``write``, ``put``, ``define``, ``read`` and ``get``.
    sealed : Out
        The answer is sealed with the session.
    length : Out
        Bytes of the answer's payload, but for a ``get``.
    """

    request: data.View
    identify: Signal
    write: Signal
    put: Signal
    define: Signal
    read: Signal
    get: Signal
    run: Signal
    clear: Signal
    after: Signal
    reset: Signal
    open: Signal
    transfers: Signal
    length: Signal
    sealed: Signal

    def __init__(self) -> None:
        fields = {name: Out(field.shape) for name, field in MEANING}
        super().__init__({"request": In(JudgedRequest), **fields})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arguments, new = self.request.arguments.as_value(), ~self.request.repeated
        target = data.View(SpaceArguments, arguments[: SpaceArguments.size])
        region = data.View(RegionArgument, arguments[: RegionArgument.size])
        run = data.View(RunArguments, arguments[: RunArguments.size])
        code = self.request.header.command.code
        heard = ~self.request.header.command.silent
        m.d.comb += [
            self.sealed.eq((self.request.verdict != Status.BAD_CRC) & (code != Command.IDENTIFY)),
            self.transfers.eq(Cat(getattr(self, name) for name in _TRANSFERS).any()),
        ]
        with m.If(self.request.verdict == Status.OK):
            with m.Switch(code):
                with m.Case(Command.IDENTIFY):
                    m.d.comb += [self.length.eq(IDENTITY_BYTES), self.identify.eq(1)]
                with m.Case(Command.WRITE):
                    m.d.comb += self.write.eq(new)
                with m.Case(Command.READ):
                    m.d.comb += [self.read.eq(heard), self.length.eq(target.count)]
                with m.Case(Command.RUN):
                    m.d.comb += [self.run.eq(new), self.clear.eq(run.flags & RUN_CLEARS_COUNTERS)]
                with m.Case(Command.STATUS):
                    m.d.comb += self.length.eq(STATUS_BYTES)
                with m.Case(Command.RESET):
                    m.d.comb += self.reset.eq(1)
                with m.Case(Command.OPEN):
                    m.d.comb += [self.reset.eq(1), self.open.eq(1)]
                with m.Case(Command.DEFINE):
                    m.d.comb += self.define.eq(1)
                with m.Case(Command.PUT):
                    m.d.comb += self.put.eq(new)
                with m.Case(Command.GET):
                    m.d.comb += self.get.eq(heard)
                with m.Case(Command.RUN_GET):
                    m.d.comb += [self.run.eq(new), self.clear.eq(1)]
                    m.d.comb += [self.get.eq(heard), self.after.eq(region.flag)]
        return m
