"""DDR3 as the core sees it: bursts of 64-bit words, in the core's clock."""

from typing import Any

from amaranth.hdl import DomainRenamer, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out, connect, flipped

from .burst_port import WORD_BYTES, burst_layout
from .ddr3 import Ddr3Settings
from .ddr3_controller import Ddr3Controller
from .ddr3_leveller import LEVEL
from .ddr3_port import Ddr3Port
from .ddr3_signals import Ddr3Signature

DDR3_DOMAIN = "ddr3"
"""The controller's clock; who holds ``Ddr3Memory`` defines it."""

_BURST_DEPTH = 4
_WORD_DEPTH = 64
"""In the crossings: what comes from a READ until the news that its words have left, about 50 cycles
of the core later."""
_COUNTER_BITS = 6
"""More bursts than can be under way."""


class Ddr3Memory(wiring.Component):
    """Port and controller in the clock of the chip, and the crossings from the core's clock.

    Parameters
    ----------
    settings : Ddr3Settings
    power_up_seconds : float, optional
        As of ``Ddr3Initialiser``.

    Members
    -------
    bursts, writes, reads, idle
        As of :class:`.burst_port.BurstPort`.
    ready, failed, levels : Out
        As of :class:`.ddr3_controller.Ddr3Controller`; the last two change only before ``ready``.
    chip : Out(Ddr3Signature)
        In the domain ``DDR3_DOMAIN``.
    """

    bursts: stream.Interface
    writes: stream.Interface
    reads: stream.Interface
    idle: Signal
    ready: Signal
    failed: Signal
    levels: data.View
    chip: Any

    def __init__(self, *, settings: Ddr3Settings, power_up_seconds: float | None = None) -> None:
        self.settings = settings
        self._port = Ddr3Port(settings=settings, depth=_WORD_DEPTH)
        self._controller = Ddr3Controller(settings=settings, power_up_seconds=power_up_seconds)
        groups = settings.chip.groups
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(settings))),
                "writes": In(stream.Signature(8 * WORD_BYTES)),
                "reads": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
                "ready": Out(1),
                "failed": Out(groups),
                "levels": Out(data.ArrayLayout(LEVEL, groups)),
                "chip": Out(Ddr3Signature(settings)),
            }
        )

    @property
    def verilog(self) -> str:
        """LiteDRAM's, which goes beside the Verilog of this."""
        return self._controller.verilog

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port, controller = self._port, self._controller
        in_its_clock = DomainRenamer(DDR3_DOMAIN)
        m.submodules.port = in_its_clock(port)
        m.submodules.controller = in_its_clock(controller)
        connect(m, port.commands, controller.commands)
        connect(m, controller.chip, flipped(self.chip))
        self._cross(m, "bursts", _BURST_DEPTH, self.bursts, port.bursts, "sync")
        writes = self._cross(m, "writes", _WORD_DEPTH, self.writes, port.writes, "sync")
        reads = self._cross(m, "reads", _WORD_DEPTH, port.reads, self.reads, DDR3_DOMAIN)
        m.d.comb += [
            port.writes_level.eq(writes.r_level),
            port.reads_level.eq(reads.w_level),
            controller.written.eq(port.written),
            port.write_taken.eq(controller.write_taken),
            port.read_valid.eq(controller.read_valid),
            port.read_data.eq(controller.read_data),
            self.failed.eq(controller.failed),
            self.levels.eq(controller.levels),
        ]
        m.submodules.ready = FFSynchronizer(controller.ready, self.ready)
        self._count(m)
        return m

    def _cross(
        self, m: Module, name: str, depth: int, source: Any, sink: Any, domain: str
    ) -> AsyncFIFO:
        """A queue from one stream, in ``domain``, to another one in the other domain."""
        # the build's script knows the name (``fpga.yosys_script``)
        m.submodules[f"{name}_crossing"] = queue = AsyncFIFO(
            width=len(Value.cast(source.payload)),
            depth=depth,
            w_domain=domain,
            r_domain="sync" if domain == DDR3_DOMAIN else DDR3_DOMAIN,
        )
        m.d.comb += [
            queue.w_data.eq(source.payload),
            queue.w_en.eq(source.valid),
            source.ready.eq(queue.w_rdy),
            sink.payload.eq(queue.r_data),
            sink.valid.eq(queue.r_rdy),
            queue.r_en.eq(sink.ready),
        ]
        return queue

    def _count(self, m: Module) -> None:
        """``idle``: as many bursts have ended as were given."""
        given, ended = Signal(_COUNTER_BITS), Signal(_COUNTER_BITS)
        told, gray, seen = (Signal(_COUNTER_BITS) for _ in range(3))
        m.d.sync += given.eq(given + (self.bursts.valid & self.bursts.ready))
        port = self._port
        m.d[DDR3_DOMAIN] += ended.eq(ended + port.write_done + port.read_done)
        # two may end at once, but a count that crosses changes by one
        with m.If(told != ended):
            m.d[DDR3_DOMAIN] += told.eq(told + 1)
        m.d[DDR3_DOMAIN] += gray.eq(told ^ (told >> 1))
        m.submodules.seen = FFSynchronizer(gray, seen)
        m.d.comb += self.idle.eq(seen == (given ^ (given >> 1)))
