"""A UART: bytes of 8 bits, no parity and one stop bit, as streams."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from ..primitives.stream_queue import StreamQueue
from .uart_rates import BITS_PER_BYTE, MINIMUM_DIVISOR

SYNCHRONISER_STAGES = 2


def _checked_divisor(divisor: int) -> int:
    if not isinstance(divisor, int):
        raise TypeError(f"divisor must be an integer, not {divisor!r}")
    if divisor < MINIMUM_DIVISOR:
        raise ValueError(f"divisor must be at least {MINIMUM_DIVISOR}, not {divisor}")
    return divisor


class UartReceiver(wiring.Component):
    """Finds bytes on a line by looking at the middle of each bit.

    A start bit that is over by its middle was noise. After a byte with a wrong stop bit the line
    must have been high before another start bit counts. The next start bit is looked for from the
    middle of the stop bit on, so a sender may be faster than this end.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit, at least ``MINIMUM_DIVISOR``.

    Members
    -------
    rx : In
        The line, high at rest; asynchronous.
    data : Out(8)
        A byte, while ``done``.
    done : Out
        Strobe, ``latency`` cycles after the start bit began; it cannot be stalled.
    framing_error : Out
        Strobe instead of ``done``: the stop bit was low, and the byte is dropped.

    Raises
    ------
    TypeError
        If ``divisor`` is not an integer.
    ValueError
        If ``divisor`` is below ``MINIMUM_DIVISOR``.
    """

    rx: Signal
    data: Signal
    done: Signal
    framing_error: Signal

    def __init__(self, *, divisor: int) -> None:
        self._divisor = _checked_divisor(divisor)
        super().__init__({"rx": In(1), "data": Out(8), "done": Out(1), "framing_error": Out(1)})

    @property
    def latency(self) -> int:
        """Cycles from the edge that could first see the start bit to the one that sees ``done``."""
        return SYNCHRONISER_STAGES + self._divisor // 2 + (BITS_PER_BYTE - 1) * self._divisor

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.synchroniser = FFSynchronizer(
            self.rx, line, init=1, stages=SYNCHRONISER_STAGES
        )
        left = Signal(range(self._divisor))  # cycles to the middle of the next bit
        bit = Signal(range(BITS_PER_BYTE))
        middle, stop = left == 0, bit == BITS_PER_BYTE - 1
        m.d.sync += left.eq(left - 1)
        with m.FSM():
            with m.State("line at rest"):
                m.d.sync += [left.eq(self._divisor // 2 - 1), bit.eq(0)]
                with m.If(~line):
                    m.next = "in a byte"
            with m.State("in a byte"), m.If(middle):
                m.d.sync += [left.eq(self._divisor - 1), bit.eq(bit + 1)]
                with m.If((bit == 0) & line):
                    m.next = "line at rest"
                with m.Elif(stop):
                    m.d.comb += [self.done.eq(line), self.framing_error.eq(~line)]
                    m.next = "line at rest"
                    with m.If(~line):
                        m.next = "waiting for rest"
                with m.Else():
                    m.d.sync += self.data.eq(Cat(self.data[1:], line))
            with m.State("waiting for rest"), m.If(line):
                m.next = "line at rest"
        return m


class UartTransmitter(wiring.Component):
    """Sends bytes, one after the other without a pause: one in ``10 * divisor`` cycles.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit, at least ``MINIMUM_DIVISOR``.

    Members
    -------
    i : In(stream of bytes)
        Stalls while a byte is sent, up to the last cycle of its stop bit.
    tx : Out
        The line, high at rest, from a register; a start bit begins a cycle after its byte came.

    Raises
    ------
    TypeError, ValueError
        As for ``UartReceiver``.
    """

    i: stream.Interface
    tx: Signal

    def __init__(self, *, divisor: int) -> None:
        self._divisor = _checked_divisor(divisor)
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = Signal(init=1)
        left = Signal(range(self._divisor))  # cycles left of this bit
        bits = Signal(range(BITS_PER_BYTE))  # bits left after this one
        rest = Signal(BITS_PER_BYTE - 1)
        bit_over, free = Signal(), Signal(init=1)  # in its last cycle; and that of the last bit
        m.d.comb += [self.tx.eq(line), self.i.ready.eq(free)]
        m.d.sync += [
            left.eq(left - 1),
            bit_over.eq(left == 1),
            free.eq((left == 1) & (bits == 0)),
        ]
        with m.If(free):
            m.d.sync += free.eq(~self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [
                    bit_over.eq(0),
                    line.eq(0),
                    rest.eq(Cat(self.i.payload, 1)),
                    left.eq(self._divisor - 1),
                    bits.eq(BITS_PER_BYTE - 1),
                ]
        with m.Elif(bit_over):
            m.d.sync += [
                Cat(line, rest).eq(Cat(rest, 1)),
                left.eq(self._divisor - 1),
                bits.eq(bits - 1),
            ]
        return m


class Uart(wiring.Component):
    """Both directions, with a queue for what is received while no one takes it.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit, at least ``MINIMUM_DIVISOR``.
    depth : int
        Received bytes that wait at most, at least 2.

    Members
    -------
    rx : In
    tx : Out
        The lines, high at rest.
    i : In(stream of bytes)
        To be sent, one in ``10 * divisor`` cycles.
    o : Out(stream of bytes)
        Received; the queue adds two cycles.
    framing_error : Out
        Strobe: a byte without its stop bit was dropped.
    overflow : Out
        Strobe: a byte came while the queue was full, and was dropped.

    Raises
    ------
    TypeError, ValueError
        As for ``UartReceiver`` and ``StreamQueue``.
    """

    rx: Signal
    tx: Signal
    i: stream.Interface
    o: stream.Interface
    framing_error: Signal
    overflow: Signal

    def __init__(self, *, divisor: int, depth: int) -> None:
        self._receiver = UartReceiver(divisor=divisor)
        self._transmitter = UartTransmitter(divisor=divisor)
        self._queue = StreamQueue(shape=8, depth=depth)
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1),
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "framing_error": Out(1),
                "overflow": Out(1),
            }
        )

    @property
    def receive_latency(self) -> int:
        """Cycles from the start bit, at the edge that could first see it, to the byte on ``o``."""
        return self._receiver.latency + 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = self._receiver
        m.submodules.transmitter = transmitter = self._transmitter
        m.submodules.queue = queue = self._queue
        connect(m, flipped(self.i), transmitter.i)
        connect(m, queue.o, flipped(self.o))
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            queue.i.payload.eq(receiver.data),
            queue.i.valid.eq(receiver.done),
            self.framing_error.eq(receiver.framing_error),
            self.overflow.eq(receiver.done & ~queue.i.ready),
        ]
        return m
