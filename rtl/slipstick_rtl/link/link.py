"""The device's end of the framed link: bytes in, bytes out, the accelerator behind."""

from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped

from ..config import Configuration
from ..primitives.stream_queue import StreamQueue
from .command_processor import CommandProcessor
from .frame_receiver import FrameReceiver
from .frame_transmitter import FrameTransmitter
from .interfaces import LinkInterface
from .protocol import DEFAULT_TIMEOUT_CYCLES
from .request_queue import RequestQueue
from .request_reader import RequestReader
from .run_patience import RunPatience


class Link(LinkInterface):
    """Executes the requests of :mod:`slipstick_rtl.link.protocol`, one after the other.

    A frame is received while the one before is executed, also behind a short one that waits. Back
    to back, maximal WRITEs pass at a byte a cycle. What a request may do is decided by
    :class:`RequestChecker`, in that order of rules, after its CRC has been found right; which one
    is next, by :class:`RequestOrder`. The golden model is ``slipstick_sim.golden.link``.

    Parameters
    ----------
    configuration : Configuration
    timeout_cycles : int
        Cycles without a byte after which a frame that has begun is forgotten; at least 1.

    Members
    -------
    i, o : In, Out(stream of bytes)
        While ``o`` is stalled requests wait, and in the end ``i``.
    writes : Out(stream of ByteWrite)
        A byte a cycle; all bytes of a unit in order, unit after unit.
    reads : Out(stream of activation byte addresses)
    read_data : In(stream of bytes)
        Answers to ``reads``, in order, any time later. ``reads`` does not wait for it: there may be
        as many reads on their way as the other side accepts.
    run : Out
        Strobe: start all instruction streams at ``pcs``, words of the instruction memory; with
        ``clear`` the completion counters start at zero. Every byte written before has been
        accepted on ``writes``.
    pcs, clear : Out
        Valid with ``run``.
    reset_run : Out
        Strobe: stop.
    status : In(RunStatus)
        ``running`` follows ``run`` and ``reset_run`` within ``SETTLE_CYCLES`` cycles.

    Raises
    ------
    ValueError
        If ``timeout_cycles`` is below 1.
    """

    def __init__(
        self, *, configuration: Configuration, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES
    ) -> None:
        self._configuration = configuration
        self._patience = RunPatience(timeout_cycles=timeout_cycles)
        self._receiver = FrameReceiver(
            payload_bytes=configuration.payload_bytes, timeout_cycles=timeout_cycles
        )
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = self._receiver
        m.submodules.reader = reader = RequestReader(configuration=self._configuration)
        m.submodules.processor = processor = CommandProcessor(configuration=self._configuration)
        m.submodules.patience = patience = self._patience
        m.submodules.transmitter = transmitter = FrameTransmitter()
        connect(m, flipped(self.i), receiver.i)
        m.submodules.queue = queue = RequestQueue()
        connect(m, receiver.requests, queue.i)
        connect(m, queue.o, reader.requests)
        connect(m, receiver.payload, reader.payload)
        connect(m, reader.judged, processor.judged)
        connect(m, reader.write_data, processor.write_data)
        connect(m, processor.responses, transmitter.responses)
        # each has its own way to the next byte, and neither waits for the other's
        m.submodules.sent = sent = StreamQueue(shape=8, depth=4)
        connect(m, processor.response_data, sent.i)
        connect(m, sent.o, transmitter.payload)
        connect(m, transmitter.o, flipped(self.o))

        connect(m, processor.writes, flipped(self.writes))
        connect(m, processor.reads, flipped(self.reads))
        connect(m, flipped(self.read_data), processor.read_data)
        m.d.comb += [
            patience.waiting.eq(reader.waiting | processor.waiting),
            reader.expired.eq(patience.expired),
            processor.expired.eq(patience.expired),
            reader.running.eq(self.status.running),
            reader.done.eq(self.status.done),
            reader.bad_instruction.eq(self.status.bad_instruction),
            reader.executed.eq(processor.executed),
            processor.next_sequence.eq(reader.next_sequence),
            processor.some_data.eq(reader.some_data),
            processor.status.eq(self.status),
            receiver.session.eq(processor.session),
            transmitter.session.eq(processor.session),
            *(
                getattr(self, name).eq(getattr(processor, name))
                for name in ("run", "pcs", "clear", "reset_run")
            ),
        ]
        return m
