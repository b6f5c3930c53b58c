"""The gateware of a register map."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .registers import WORD_BITS, WORD_BYTES, Access, Field, Register, RegisterMap


class Outcome(IntEnum):
    """The result of an access, as AXI encodes it."""

    OKAY = 0
    REFUSED = 2
    """SLVERR: such a register cannot be read, or written, or not now."""
    UNMAPPED = 3
    """DECERR: there is no register."""


class RegisterBus(wiring.Signature):
    """An access a cycle, answered in the next one; from the side that asks.

    Parameters
    ----------
    address_bits : int
        Of a byte address; the bus counts words.

    Members
    -------
    address : Out(address_bits - 2)
    read, write : Out
        Strobes, at most one a cycle.
    write_data : Out(32)
    write_strobes : Out(4)
        Bytes that count.
    read_data : In(32)
        0 unless a read was OKAY.
    outcome : In(Outcome)
    """

    def __init__(self, address_bits: int) -> None:
        super().__init__(
            {
                "address": Out(address_bits - 2),
                "read": Out(1),
                "write": Out(1),
                "write_data": Out(WORD_BITS),
                "write_strobes": Out(WORD_BYTES),
                "read_data": In(WORD_BITS),
                "outcome": In(2),
            }
        )


class RegisterFile(wiring.Component):
    """Registers behind a ``RegisterBus``.

    Parameters
    ----------
    registers : RegisterMap

    Members
    -------
    bus : In(RegisterBus)
    REGISTER_FIELD : In(width)
        For a field with access STATE its value; with EVENT its event; with GIVE (1 bit) whether
        there is room; with TAKE (32 bits) the word.
    REGISTER_FIELD_value : Out(width)
        With SETTING and EVENT: what is stored.
    REGISTER_FIELD_available : In
        With TAKE: there is a word.
    REGISTER_FIELD_strobe : Out
        With GIVE, ``bus.write_data`` and ``bus.write_strobes`` count now; with TAKE, the word is
        taken now.
    """

    bus: Any

    def __init__(self, *, registers: RegisterMap) -> None:
        self._registers = registers
        members = {"bus": In(RegisterBus(registers.address_bits))}
        for register in registers:
            for field in register.fields:
                members |= _members(f"{register.name}_{field.name}", field)
        super().__init__(members)

    def port(self, register: str, field: str = "value", role: str = "") -> Signal:
        """A member, by the names of register and field and its role: value, available, strobe."""
        return getattr(self, "_".join(filter(None, (register, field, role))))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        word = Signal(WORD_BITS)
        outcome = Signal(2, init=Outcome.UNMAPPED)
        with m.Switch(bus.address):
            for register in self._registers:
                with m.Case(register.offset // WORD_BYTES):
                    permitted = Mux(bus.write, self._may_write(register), self._may_read(register))
                    m.d.comb += [
                        word.eq(self._word(register)),
                        outcome.eq(Mux(permitted, Outcome.OKAY, Outcome.REFUSED)),
                    ]
                    self._strobe(m, register)
        m.d.sync += [
            bus.outcome.eq(outcome),
            bus.read_data.eq(Mux(bus.read & (outcome == Outcome.OKAY), word, 0)),
        ]
        for register in self._registers:
            for field in register.fields:
                self._store(m, register, field)
        return m

    def _word(self, register: Register) -> Value:
        """Returns the word that a read gives."""
        word = Value.cast(0)
        for field in register.fields:
            match field.access:
                case Access.CONSTANT:
                    value = Value.cast(field.reset)
                case Access.STATE | Access.TAKE:
                    value = self.port(register.name, field.name)
                case Access.SETTING | Access.EVENT:
                    value = self.port(register.name, field.name, "value")
                case Access.GIVE:
                    continue
            word = word | value << field.low
        return word

    def _may_read(self, register: Register) -> Value:
        if register.fields[0].access is Access.TAKE:
            return self.port(register.name, register.fields[0].name, "available")
        return Value.cast(register.readable)

    def _may_write(self, register: Register) -> Value:
        if register.fields[0].access is Access.GIVE:
            return self.port(register.name, register.fields[0].name)
        return Value.cast(register.writable)

    def _strobe(self, m: Module, register: Register) -> None:
        """Gives the strobe of a TAKE or GIVE field at once, when the register is accessed."""
        field = register.fields[0]
        if field.access is Access.TAKE:
            strobe = self.port(register.name, field.name, "strobe")
            m.d.comb += strobe.eq(self.bus.read & self._may_read(register))
        elif field.access is Access.GIVE:
            strobe = self.port(register.name, field.name, "strobe")
            m.d.comb += strobe.eq(self.bus.write & self._may_write(register))

    def _store(self, m: Module, register: Register, field: Field) -> None:
        """Stores written values and events in the field."""
        if field.access not in (Access.SETTING, Access.EVENT):
            return
        bus = self.bus
        value = Signal(field.width, init=field.reset, name=f"{register.name}_{field.name}_stored")
        m.d.comb += self.port(register.name, field.name, "value").eq(value)
        mask = Cat(strobe.replicate(8) for strobe in bus.write_strobes)
        bits = slice(field.low, field.low + field.width)
        with m.If(bus.write & (bus.address == register.offset // WORD_BYTES)):
            if field.access is Access.SETTING:
                new = value & ~mask[bits] | bus.write_data[bits] & mask[bits]
            else:
                new = value & ~(bus.write_data[bits] & mask[bits])
            m.d.sync += value.eq(new)
        if field.access is Access.EVENT:
            with m.If(self.port(register.name, field.name)):
                m.d.sync += value.eq(1)


def _members(name: str, field: Field) -> dict[str, wiring.Member]:
    match field.access:
        case Access.CONSTANT:
            return {}
        case Access.STATE:
            return {name: In(field.width)}
        case Access.SETTING:
            return {f"{name}_value": Out(field.width)}
        case Access.EVENT:
            return {name: In(1), f"{name}_value": Out(1)}
        case Access.GIVE:
            return {name: In(1), f"{name}_strobe": Out(1)}
        case Access.TAKE:
            return {name: In(field.width), f"{name}_available": In(1), f"{name}_strobe": Out(1)}
