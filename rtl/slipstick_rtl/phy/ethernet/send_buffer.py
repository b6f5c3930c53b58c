"""Collects the link's bytes until they are worth a datagram."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .datagrams import LONGEST_SEND

SEND_WORDS = LONGEST_SEND // 4


class SendBuffer(wiring.Component):
    """Two halves of ``LONGEST_SEND`` bytes: one is filled while the other one leaves.

    A half is ready when it is full, or when ``i`` pauses.

    Parameters
    ----------
    quiet_cycles : int
        Cycles without a byte that are a pause, at least 1.

    Members
    -------
    i : In(stream of bytes)
    enable : In
        Bytes are kept; otherwise they are taken and lost.
    clear : In
        Strobe: forgets all bytes but those of a half that leaves.
    ready : Out
        A half can leave.
    count : Out
        Its bytes, 1..LONGEST_SEND.
    leaves : In
        From the cycle that takes ``count`` until ``left``.
    left : In
        Strobe: the half has left.
    place : In
        Of a word of it.
    fetch : In
        Strobe: takes ``place``, and ``word`` becomes that of the ``fetch`` before.
    word : Out(32)
        First byte in the lowest bits; bytes beyond ``count`` are anything.

    Raises
    ------
    ValueError
        If ``quiet_cycles`` is less than 1.
    """

    i: stream.Interface
    enable: Signal
    clear: Signal
    ready: Signal
    count: Signal
    leaves: Signal
    left: Signal
    place: Signal
    fetch: Signal
    word: Signal

    def __init__(self, *, quiet_cycles: int) -> None:
        if quiet_cycles < 1:
            raise ValueError(f"quiet_cycles must be at least 1, not {quiet_cycles}")
        self._quiet_cycles = quiet_cycles
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "enable": In(1),
                "clear": In(1),
                "ready": Out(1),
                "count": Out(range(LONGEST_SEND + 1)),
                "leaves": In(1),
                "left": In(1),
                "place": In(range(SEND_WORDS)),
                "fetch": In(1),
                "word": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(
            # an 85F's engine leaves four block RAMs, and others need them more
            shape=32,
            depth=2 * SEND_WORDS,
            init=[],
            attrs={"ram_style": "distributed"},
        )
        write, read = memory.write_port(granularity=8), memory.read_port()
        half = Signal()  # that is filled; the other one leaves
        filled = Signal.like(self.count)
        quiet = Signal(range(self._quiet_cycles + 1))
        full = filled == LONGEST_SEND
        paused = quiet == self._quiet_cycles
        close = Signal()
        takes = self.i.valid & self.i.ready & self.enable
        m.d.comb += [
            close.eq((full | paused) & ~self.ready),
            self.i.ready.eq(~full & ~close | ~self.enable),
            write.addr.eq(Cat(filled[2:-1], half)),
            write.data.eq(self.i.payload.replicate(4)),
            write.en.eq(takes << filled[:2]),
            read.addr.eq(Cat(self.place, ~half)),
            read.en.eq(self.fetch),
        ]
        with m.If(self.fetch):
            m.d.sync += self.word.eq(read.data)
        with m.If(takes):
            m.d.sync += [filled.eq(filled + 1), quiet.eq(0)]
        with m.Elif(~paused & (filled != 0)):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(close):
            m.d.sync += [self.count.eq(filled), half.eq(~half), self.ready.eq(1)]
        with m.If(close | self.clear):
            m.d.sync += [filled.eq(0), quiet.eq(0)]
        with m.If(self.left | self.clear & ~self.leaves):
            m.d.sync += self.ready.eq(0)
        return m
