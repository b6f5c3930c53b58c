"""The core behind its registers: what AXI and Wishbone have in common."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accelerator import Accelerator
from ..config import Configuration
from ..primitives.stream_queue import StreamQueue
from .axi_stream import Word
from .register_file import RegisterBus, RegisterFile
from .register_map import queue_words, register_map
from .word_bytes import RequestUnpacker, ResponsePacker


class RegisteredAccelerator(wiring.Component):
    """The core, its registers, and a queue of words for either direction of its link.

    A request may come over the stream or by the registers; if both give words at once the
    registers go first, and frames get mixed: software uses one way at a time. Responses go where
    the register ``control`` says.

    Parameters
    ----------
    configuration : Configuration
    streams : bool
        Whether responses may go to ``responses``; else the register cannot have it so.

    Members
    -------
    bus : In(RegisterBus)
    requests : In(stream of Word)
    responses : Out(stream of Word)
    irq : Out
        An enabled bit of ``interrupt_pending`` is set; a cycle late.
    """

    bus: Any
    requests: stream.Interface
    responses: stream.Interface
    irq: Signal

    def __init__(self, *, configuration: Configuration, streams: bool = True) -> None:
        self._streams = streams
        self.accelerator = Accelerator(configuration=configuration)
        self.registers = register_map(configuration)
        depth = queue_words(configuration)
        self._file = RegisterFile(registers=self.registers)
        self._requests = StreamQueue(shape=Word, depth=depth)
        self._responses = StreamQueue(shape=Word, depth=depth)
        super().__init__(
            {
                "bus": In(RegisterBus(self.registers.address_bits)),
                "requests": In(stream.Signature(Word)),
                "responses": Out(stream.Signature(Word)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules.registers = self._file
        m.submodules.request_queue = self._requests
        m.submodules.response_queue = self._responses
        m.submodules.unpacker = unpacker = RequestUnpacker()
        m.submodules.packer = packer = ResponsePacker()
        connect(m, flipped(self.bus), self._file.bus)
        connect(m, self._requests.o, unpacker.i)
        connect(m, unpacker.o, core.i)
        connect(m, core.o, packer.i)
        connect(m, packer.o, self._responses.i)
        self._connect_requests(m)
        self._connect_responses(m)
        self._connect_state(m, packer)
        self._connect_interrupts(m)
        return m

    def _connect_requests(self, m: Module) -> None:
        queue, file = self._requests, self._file
        m.d.comb += [
            file.port("request_data").eq(queue.i.ready),
            file.port("queues", "request_room").eq(queue.depth - queue.level),
            queue.i.valid.eq(self.requests.valid),
            queue.i.payload.eq(self.requests.payload),
            self.requests.ready.eq(queue.i.ready),
        ]
        with m.If(file.port("request_data", role="strobe")):
            m.d.comb += [
                queue.i.valid.eq(1),
                queue.i.p.data.eq(self.bus.write_data),
                queue.i.p.keep.eq(self.bus.write_strobes),
                queue.i.p.last.eq(0),
                self.requests.ready.eq(0),
            ]

    def _connect_responses(self, m: Module) -> None:
        queue, file = self._responses, self._file
        streamed = file.port("control", "stream_responses", "value") & self._streams
        m.d.comb += [
            self.responses.payload.eq(queue.o.payload),
            self.responses.valid.eq(queue.o.valid & streamed),
            file.port("response_data").eq(queue.o.p.data),
            file.port("response_data", role="available").eq(queue.o.valid & ~streamed),
            file.port("queues", "response_words").eq(queue.level),
            queue.o.ready.eq(file.port("response_data", role="strobe")),
        ]
        with m.If(streamed):
            m.d.comb += queue.o.ready.eq(self.responses.ready)

    def _connect_state(self, m: Module, packer: ResponsePacker) -> None:
        file, status = self._file, self.accelerator.link.status
        for register, field, value in (
            ("state", "running", status.running),
            ("state", "bad_instruction", status.bad_instruction),
            ("state", "response_status", packer.status),
            ("state", "response_sequence", packer.sequence),
            ("done", "matrix", status.done[0]),
            ("done", "post", status.done[1]),
            ("cycles", "value", status.cycles),
        ):
            m.d.comb += file.port(register, field).eq(value)

    def _connect_interrupts(self, m: Module) -> None:
        file, queue = self._file, self._responses
        running, was_running = self.accelerator.link.status.running, Signal()
        frames = Signal(range(queue.depth + 1))  # whole responses in the queue
        enters = queue.i.valid & queue.i.ready & queue.i.p.last
        leaves = queue.o.valid & queue.o.ready & queue.o.p.last
        waiting = file.port("interrupt_pending", "response_waiting")
        m.d.comb += [
            file.port("interrupt_pending", "run_finished").eq(was_running & ~running),
            waiting.eq(frames != 0),
        ]
        finished = file.port("interrupt_pending", "run_finished", "value")
        m.d.sync += [
            was_running.eq(running),
            frames.eq(frames + enters - leaves),
            self.irq.eq(
                finished & file.port("interrupt_enable", "run_finished", "value")
                | waiting & file.port("interrupt_enable", "response_waiting", "value")
            ),
        ]
