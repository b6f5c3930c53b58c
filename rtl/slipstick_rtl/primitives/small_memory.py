"""A memory of a few words that is read without a clock: in look-up tables where there are such."""

from typing import Any

from amaranth.hdl import Array, Cat, ClockSignal, Const, Instance, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .multiplier18 import is_ecp5

BLOCK_WORDS = 16
"""Words of a block of ECP5's distributed memory."""

_BLOCK_BITS = 4


class SmallMemory(wiring.Component):
    """Words that are written at a cycle's end and read within a cycle; no reset.

    On ECP5 distributed memory, six look-up tables for 16 words of four bits; Yosys stops at such a
    memory within a larger design, so its blocks are instances.

    Parameters
    ----------
    width : int
        Bits of a word.
    depth : int
        Words, a multiple of ``BLOCK_WORDS``.

    Members
    -------
    write_enable, write_address, i : In
    address : In
    o : Out
        The word there, as it was before this cycle's write.

    Raises
    ------
    ValueError
        If the depth is no multiple of ``BLOCK_WORDS``, or 0.
    """

    write_enable: Signal
    write_address: Signal
    i: Signal
    address: Signal
    o: Signal

    def __init__(self, *, width: int, depth: int) -> None:
        if depth <= 0 or depth % BLOCK_WORDS:
            raise ValueError(f"depth must be a multiple of {BLOCK_WORDS}, not {depth}")
        self._depth = depth
        super().__init__(
            {
                "write_enable": In(1),
                "write_address": In(range(depth)),
                "i": In(width),
                "address": In(range(depth)),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if is_ecp5(platform):
            words = [self._blocks(m, k) for k in range(self._depth // BLOCK_WORDS)]
            place = self.address[BLOCK_WORDS.bit_length() - 1 :]
            m.d.comb += self.o.eq(Array(words)[place] if len(words) > 1 else words[0])
            return m
        m.submodules.memory = memory = Memory(shape=len(self.i), depth=self._depth, init=[])
        reader, writer = memory.read_port(domain="comb"), memory.write_port()
        m.d.comb += [
            reader.addr.eq(self.address),
            self.o.eq(reader.data),
            writer.en.eq(self.write_enable),
            writer.addr.eq(self.write_address),
            writer.data.eq(self.i),
        ]
        return m

    def _blocks(self, m: Module, number: int) -> Value:
        """The word that these 16 words' blocks have at the address's low bits."""
        low = BLOCK_WORDS.bit_length() - 1
        enable = self.write_enable & (self.write_address[low:] == number)
        word = Signal(len(self.i), name=f"word_{number}")
        for first in range(0, len(self.i), _BLOCK_BITS):
            part = self.i[first : first + _BLOCK_BITS]
            found = Signal(_BLOCK_BITS, name=f"found_{number}_{first}")
            ports: dict[str, Any] = {"i_DI": Cat(part, Const(0, _BLOCK_BITS - len(part)))}
            m.submodules[f"block_{number}_{first}"] = Instance(
                "TRELLIS_DPR16X4",
                p_WCKMUX="WCK",
                p_WREMUX="WRE",
                p_INITVAL=Const(0, 64),
                i_WCK=ClockSignal(),
                i_WRE=enable,
                i_WAD=self.write_address[:low],
                i_RAD=self.address[:low],
                o_DO=found,
                **ports,
            )
            m.d.comb += word[first : first + len(part)].eq(found)
        return word
