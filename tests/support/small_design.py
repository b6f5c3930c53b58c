"""A small design for the ASIC flow: two holders of a bit, and a memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class Hold(wiring.Component):
    """A register that takes an input, and one that takes the other's inverse."""

    i: In(1)  # type: ignore[reportInvalidTypeForm]
    o: Out(1)  # type: ignore[reportInvalidTypeForm]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taken = Signal(reset_less=True)
        given = Signal(reset_less=True)
        m.d.sync += [taken.eq(self.i), given.eq(~taken)]
        m.d.comb += self.o.eq(given)
        return m


class Pair(wiring.Component):
    """Two of them, one behind the other, and a memory that is read by a register's address."""

    i: In(1)  # type: ignore[reportInvalidTypeForm]
    write: In(1)  # type: ignore[reportInvalidTypeForm]
    o: Out(8)  # type: ignore[reportInvalidTypeForm]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.hold_0 = first = Hold()
        m.submodules.hold_1 = second = Hold()
        m.submodules.memory = memory = Memory(shape=8, depth=512, init=[])
        writer, reader = memory.write_port(), memory.read_port()
        address = Signal(9, reset_less=True)
        m.d.sync += address.eq(address + second.o)
        m.d.comb += [
            first.i.eq(self.i),
            second.i.eq(first.o),
            writer.en.eq(self.write),
            writer.addr.eq(address),
            writer.data.eq(self.i),
            reader.addr.eq(address),
            reader.en.eq(1),
            self.o.eq(reader.data),
        ]
        return m
