"""Addresses that follow a loop nest: additions only, one step a cycle."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration


class AddressGenerator(wiring.Component):
    """origin + the sum over the loops of turn x step.

    Each loop keeps the address at which its present turn began. When the loops inside it have
    ended, it adds its step, and the sum becomes the start of all of them.

    Parameters
    ----------
    width : int
        Bits of the address; it wraps.
    levels : int
        Loops, at least 2.

    Members
    -------
    load : In(1)
        The next address is ``origin``.
    origin : In(width)
    steps : In(width x levels)
        Innermost first; negative ones in two's complement.
    advance : In(1)
        Goes one step further.
    ends : In(levels - 1)
        Bit k: the present step is the last turn of loops 0..k.
    address : Out(width)
    """

    load: Signal
    origin: Signal
    steps: data.View
    advance: Signal
    ends: Signal
    address: Signal

    def __init__(self, *, width: int, levels: int) -> None:
        if levels < 2:
            raise ValueError(f"levels must be at least 2, not {levels}")
        self._width, self._levels = width, levels
        super().__init__(
            {
                "load": In(1),
                "origin": In(width),
                "steps": In(data.ArrayLayout(width, levels)),
                "advance": In(1),
                "ends": In(levels - 1),
                "address": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        starts = [self.address]
        starts += [Signal(self._width, name=f"start_{k}") for k in range(1, self._levels)]
        # added before one is chosen: which loops end is known late
        sums = [Signal(self._width, name=f"sum_{level}") for level in range(self._levels)]
        m.d.comb += [
            total.eq(starts[level] + self.steps[level]) for level, total in enumerate(sums)
        ]
        following: Value = sums[0]
        for level in range(1, self._levels):
            following = Mux(self.ends[level - 1], sums[level], following)

        with m.If(self.load):
            m.d.sync += [start.eq(self.origin) for start in starts]
        with m.Elif(self.advance):
            m.d.sync += starts[0].eq(following)
            for level in range(1, self._levels):
                with m.If(self.ends[level - 1]):
                    m.d.sync += starts[level].eq(following)
        return m


class AccumulatorCursor(wiring.Component):
    """Tracks the place of the next pixel's results in the accumulators, for one slice.

    P columns share an address; a row begins with a new one.

    Members
    -------
    load : In(1)
        Back to the first pixel.
    advance : In(1)
    row_end : In(1)
        The present pixel is its row's last one.
    address : Out(range(accumulator_depth))
    pixel : Out(range(P))
    """

    load: Signal
    advance: Signal
    row_end: Signal
    address: Signal
    pixel: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._pixels = configuration.pixels
        super().__init__(
            {
                "load": In(1),
                "advance": In(1),
                "row_end": In(1),
                "address": Out(range(configuration.accumulator_depth)),
                "pixel": Out(range(configuration.pixels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word_end = self.row_end | (self.pixel == self._pixels - 1)
        with m.If(self.load):
            m.d.sync += [self.address.eq(0), self.pixel.eq(0)]
        with m.Elif(self.advance):
            m.d.sync += [
                self.pixel.eq(Mux(word_end, 0, self.pixel + 1)),
                self.address.eq(self.address + word_end),
            ]
        return m
