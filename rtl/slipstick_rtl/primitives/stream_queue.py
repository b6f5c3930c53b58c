"""A queue between two streams."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamQueue(wiring.Component):
    """First in, first out: takes payloads while there is room, and gives them in order.

    A payload can leave two cycles after it came; reading and writing in the same cycle run at
    full speed.

    Parameters
    ----------
    shape : ShapeLike
        Of the payload.
    depth : int
        Payloads that the queue holds, at least 2.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    level : Out(range(depth + 1))
        Payloads in the queue.
    some : Out(1)
        There is one at least; a register, where ``level`` is a sum.

    Raises
    ------
    TypeError
        If ``depth`` is not an integer.
    ValueError
        If ``depth`` is less than 2.
    """

    i: stream.Interface
    o: stream.Interface
    level: Signal
    some: Signal

    def __init__(self, *, shape: ShapeLike, depth: int) -> None:
        if not isinstance(depth, int):
            raise TypeError(f"depth must be an integer, not {depth!r}")
        if depth < 2:
            raise ValueError(f"depth must be at least 2, not {depth}")
        self._shape = shape
        self._depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "some": Out(1),
            }
        )

    @property
    def depth(self) -> int:
        """Payloads that the queue holds."""
        return self._depth

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(
            width=Shape.cast(self._shape).width, depth=self._depth
        )
        m.d.comb += [
            queue.w_data.eq(self.i.payload),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
            self.level.eq(queue.w_level),
        ]
        given, taken = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        count, last = Signal.like(self.level), Signal()
        with m.If(given & ~taken):
            m.d.sync += [count.eq(count + 1), self.some.eq(1), last.eq(count == 0)]
        with m.Elif(taken & ~given):
            m.d.sync += [count.eq(count - 1), self.some.eq(~last), last.eq(count == 2)]
        return m
