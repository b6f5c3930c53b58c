"""The compact engine's parameter memory: one channel an entry, its multiplier in signed digits."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import DIGITS, Configuration
from ..postprocess.rounding_shifter import SHIFT_BITS

PARAMETER_WRITE = data.StructLayout({"enable": 1, "address": 16, "offset": 10, "data": 8})
"""A byte from the link: ``offset`` counts the bytes of an entry (i32, u32, u8)."""

ENTRY_BYTES = 9
DIGIT_OFFSET = 128
"""A byte less this is a signed digit; the carries make the number the same."""

_MULTIPLIER = 4
_SHIFT = 8


class CompactParameters(wiring.Component):
    """Bias, multiplier and shift of a channel, for a requantiser that counts in signed digits.

    0x80 is added to each byte of bias and multiplier as it is written, with the carry of the byte
    before: what is read, less 0x80 a byte, is the number in digits of -128..127. The multiplier's
    last carry becomes the top bit of the shift's byte.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write : In(PARAMETER_WRITE)
        The bytes of an entry in order.
    address : In
    bias : Out(32)
        Plus 0x80808080; in the cycle after its address, as the others.
    digits : Out
        [DIGITS] of the multiplier, signed, lowest first.
    shift : Out
    """

    write: data.View
    address: Signal
    bias: Signal
    digits: data.View
    shift: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._words = configuration.parameter_words
        super().__init__(
            {
                "write": In(PARAMETER_WRITE),
                "address": In(exact_log2(self._words)),
                "bias": Out(32),
                "digits": Out(data.ArrayLayout(8, DIGITS)),
                "shift": Out(SHIFT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=8 * ENTRY_BYTES, depth=self._words, init=[])
        writer, reader = memory.write_port(granularity=8), memory.read_port()
        write = self.write
        carry, total = Signal(), Signal(9)
        fresh = (write.offset == 0) | (write.offset == _MULTIPLIER)
        # a multiplier has 31 bits
        byte = Mux(write.offset == _SHIFT - 1, write.data[:7], write.data)
        m.d.comb += total.eq(byte + DIGIT_OFFSET + Mux(fresh, 0, carry))
        with m.If(write.enable):
            m.d.sync += carry.eq(total[8])
        stored = Mux(write.offset == _SHIFT, Cat(write.data[:7], carry), total[:8])
        m.d.comb += [
            writer.addr.eq(write.address),
            writer.data.eq(stored.replicate(ENTRY_BYTES)),
            writer.en.eq(Mux(write.enable, 1 << write.offset[:4], 0)),
            reader.addr.eq(self.address),
            reader.en.eq(1),
            self.bias.eq(reader.data[:32]),
            self.shift.eq(reader.data.word_select(_SHIFT, 8)),
            self.digits[DIGITS - 1].eq(reader.data[-1]),
        ]
        for place in range(DIGITS - 1):
            stored_digit = reader.data.word_select(_MULTIPLIER + place, 8)
            m.d.comb += self.digits[place].eq(stored_digit ^ DIGIT_OFFSET)
        return m
