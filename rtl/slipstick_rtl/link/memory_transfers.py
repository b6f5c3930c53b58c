"""The transfers of all commands: bytes with their addresses, and the table of regions."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from .layouts import ByteWrite, DataByte
from .protocol import REGION_PITCH, REGIONS, Space
from .region_walker import RegionWalker
from .spaces import inner_number, spaces_of, unit_bytes

_KINDS = ("write", "put", "define", "read", "get")


class _TransferSteps(wiring.Component):
    """Runs through the steps of a transfer; see :class:`MemoryTransfers`.

    Members
    -------
    start : In
    describe, look_up : In
        With ``start``: a description comes; or one is to be read from the table.
    described, looked_up, moved : In
        The description is in the table; its last byte is asked for; nothing is left to be moved.
    idle, describing, asking, beginning, placing, moving : Out
        ``placing``: the first address is there. ``beginning``: the whole description is.
    """

    start: Signal
    describe: Signal
    look_up: Signal
    described: Signal
    looked_up: Signal
    moved: Signal
    idle: Signal
    describing: Signal
    asking: Signal
    beginning: Signal
    placing: Signal
    moving: Signal

    def __init__(self) -> None:
        inputs = ("start", "describe", "look_up", "described", "looked_up", "moved")
        outputs = ("idle", "describing", "asking", "beginning", "placing", "moving")
        super().__init__({**dict.fromkeys(inputs, In(1)), **dict.fromkeys(outputs, Out(1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.idle.eq(1)
                with m.If(self.start):
                    m.next = "place"
                    with m.If(self.describe):
                        m.next = "describe"
                    with m.Elif(self.look_up):
                        m.next = "look up"
            with m.State("describe"):
                m.d.comb += self.describing.eq(1)
                with m.If(self.described):
                    m.next = "idle"
            with m.State("look up"):
                m.d.comb += self.asking.eq(1)
                with m.If(self.looked_up):
                    m.next = "take the last byte"
            with m.State("take the last byte"):
                m.next = "begin"
            with m.State("begin"):
                m.d.comb += self.beginning.eq(1)
                m.next = "place"
            with m.State("place"):
                m.d.comb += self.placing.eq(1)
                m.next = "move"
            with m.State("move"):
                m.d.comb += self.moving.eq(1)
                with m.If(self.moved):
                    m.next = "idle"
        return m


class MemoryTransfers(wiring.Component):
    """Gives every byte of a WRITE, PUT, READ or GET its place, one byte a cycle; keeps regions.

    Before its first byte a WRITE or READ takes two cycles, a PUT or GET ``REGION_BYTES`` + 4. A PUT
    that continues goes on where the one before it ended, if nothing was started between.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    start : In
        Begins; only while ``done``, and not while bytes are to be read.
    write, put, define, read, get : In
        What begins: at most one. These and all other inputs hold until ``done``.
    continues : In
        Of a PUT.
    space, address : In
        Of a WRITE or READ; the address of the first unit.
    region : In
        Of the other ones.
    some : In
        There is data.
    read_count : In
        Bytes that are wanted; of a GET, ``region_count``.
    defined_count : In
        Of a DEFINE: the first two bytes of its description, which are no part of ``data``.
    done : Out
        All data has been taken, or the first address of a READ or GET is known.
    refused : Out
        The PUT that is ``done`` had a byte for which there is no place.
    region_count : Out
        Bytes that a GET answers; valid with ``done``.
    data : In(stream of DataByte)
        All data is taken, also that for which there is no place.
    writes : Out(stream of ByteWrite)
    reads : Out(stream of byte addresses)
    """

    start: Signal
    write: Signal
    put: Signal
    define: Signal
    read: Signal
    get: Signal
    continues: Signal
    space: Signal
    address: Signal
    region: Signal
    some: Signal
    read_count: Signal
    defined_count: Signal
    done: Signal
    refused: Signal
    region_count: Signal
    data: stream.Interface
    writes: stream.Interface
    reads: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self._steps = _TransferSteps()
        self._walker = RegionWalker()
        # the byte of a description that is next, counted down to 1
        self._place = Signal(range(REGION_PITCH), init=REGION_PITCH - 1)
        # bytes are written; are dropped, or described
        self._giving, self._draining = Signal(name="giving"), Signal(name="draining")
        # the byte at hand does not exist
        self._over = Signal()
        self._ends = Signal()
        super().__init__(
            {
                **dict.fromkeys(("start", *_KINDS, "continues"), In(1)),
                "space": In(2),
                "address": In(24),
                "region": In(range(REGIONS)),
                "some": In(1),
                "read_count": In(16),
                "defined_count": In(16),
                "done": Out(1),
                "refused": Out(1),
                "region_count": Out(16),
                "data": In(stream.Signature(DataByte)),
                "writes": Out(stream.Signature(ByteWrite)),
                "reads": Out(stream.Signature(24)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.steps = steps = self._steps
        m.submodules.walker = walker = self._walker
        reading = self.read | self.get
        moving = self._giving | self._draining | self.reads.valid
        m.d.comb += [
            steps.start.eq(self.start),
            steps.describe.eq(self.define),
            steps.look_up.eq(self.get | self.put & ~self.continues),
            steps.described.eq(self._drained & self.data.p.last),
            steps.moved.eq(~moving),
            self.done.eq(steps.idle | steps.moving & (reading | ~moving)),
            self.region_count.eq(walker.count),
            walker.begin.eq(steps.beginning),
            walker.direct.eq(self.start & (self.write | self.read)),
            walker.start.eq(self.address),
        ]
        self._keep_regions(m)
        self._walk(m)
        self._move(m)
        self._ask(m)
        self._count_units(m)
        return m

    @property
    def _written(self) -> Value:
        return self.writes.valid & self.writes.ready

    @property
    def _drained(self) -> Value:
        return self._draining & self.data.valid

    @property
    def _asked(self) -> Value:
        return self.reads.valid & self.reads.ready

    def _keep_regions(self, m: Module) -> None:
        """A description goes into the table as it comes, and comes out in the same order."""
        steps = self._steps
        m.submodules.table = table = Memory(
            shape=8, depth=REGIONS * REGION_PITCH, init=[], attrs={"ram_style": "block"}
        )
        read_port, write_port = table.read_port(), table.write_port()
        place, draining = self._place, self._draining
        kept = Mux(place[0], self.defined_count[:8], self.defined_count[8:])
        described = steps.describing & (~draining | self.data.valid)
        m.d.comb += [
            write_port.addr.eq(Cat(place, self.region)),
            write_port.data.eq(Mux(draining, self.data.p.data, kept)),
            write_port.en.eq(described),
            read_port.addr.eq(Cat(place, self.region)),
            steps.looked_up.eq(place == 1),
            self._walker.byte.eq(read_port.data),
        ]
        with m.If(described | steps.asking):
            m.d.sync += place.eq(place - 1)
        with m.Elif(steps.idle):
            m.d.sync += place.eq(REGION_PITCH - 1)
        m.d.sync += self._walker.shift.eq(steps.asking)

    def _walk(self, m: Module) -> None:
        """The byte at hand has its address in a register, a step ahead of the walker's."""
        walker, address = self._walker, Signal(24)
        m.d.comb += [
            walker.step.eq(
                self._steps.placing & ~self.continues | self._written & self._ends | self._asked
            ),
            self.writes.p.address.eq(address),
            self.reads.payload.eq(address),
        ]
        with m.If(walker.step):
            m.d.sync += [address.eq(walker.address), self._over.eq(self._beyond)]

    @property
    def _beyond(self) -> Value:
        """The walker's byte does not exist."""
        limit = self._configuration.activation_bytes
        return self.put & (self._walker.ended | (self._walker.address >= limit))

    def _move(self, m: Module) -> None:
        """Decides whether the next byte is written, dropped, or part of a description."""
        steps, giving, draining = self._steps, self._giving, self._draining
        over = Mux(steps.placing & self.continues, self._over, self._beyond)
        more = ~self.data.p.last
        m.d.comb += [
            self.writes.p.data.eq(self.data.p.data),
            self.writes.valid.eq(giving & self.data.valid),
            self.data.ready.eq(giving & self.writes.ready | draining),
        ]
        with m.If(self.start):
            m.d.sync += self.refused.eq(0)
        with m.Elif(steps.placing):
            m.d.sync += [
                giving.eq(self.some & (self.write | self.put) & ~over),
                draining.eq(self.some & over),
                self.refused.eq(self.some & over),
            ]
        with m.Elif(self._written):
            m.d.sync += [
                giving.eq(more & ~over),
                draining.eq(more & over),
                self.refused.eq(more & over),
            ]
        with m.Elif(self._drained):
            m.d.sync += draining.eq(more)
        with m.Elif(steps.describing):
            # the first two bytes are at hand: those of the count
            m.d.sync += draining.eq(draining | ~self._place[0])

    def _ask(self, m: Module) -> None:
        """Asks for the bytes of a READ or GET, and counts those that are left."""
        left, reading = Signal(16), self.reads.valid
        with m.If(self._steps.placing):
            m.d.sync += [
                left.eq(self.read_count),
                reading.eq((self.read | self.get) & (self.read_count != 0)),
            ]
        with m.Elif(self._asked):
            m.d.sync += [left.eq(left - 1), reading.eq(left != 1)]

    def _count_units(self, m: Module) -> None:
        """Counts the place of the next byte in its unit; the last byte ends the unit."""
        offset, ends = self.writes.p.offset, self._ends
        # what is known of the unit, for its last byte
        single, before_last = Signal(), Signal(10)
        space, where = Mux(self.put, Space.ACTIVATIONS, self.space), Signal(2)
        count = Signal.like(offset)
        m.d.comb += [offset.eq(count), self.writes.p.space.eq(where)]
        with m.If(self.start):
            m.d.sync += [where.eq(space), count.eq(0)]
            for known in spaces_of(self._configuration):
                with m.If(space == inner_number(known)):
                    unit = unit_bytes(self._configuration, known)
                    m.d.sync += [
                        before_last.eq(Const(unit - 2, len(before_last))),
                        Cat(single, ends).eq(Const(0b11 if unit == 1 else 0, 2)),
                    ]
        with m.Elif(self._written):
            m.d.sync += [count.eq(count + 1), ends.eq(Mux(ends, single, count == before_last))]
            with m.If(ends):
                m.d.sync += count.eq(0)
