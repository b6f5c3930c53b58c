"""Counts a window's row and column in the input, and tells whether they are inside."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..engines import COMPACT

COORDINATE_BITS = COMPACT.coordinate_bits


class Coordinate(wiring.Component):
    """One coordinate of a kernel tap over an output: rows or columns.

    Members
    -------
    origin, stride, dilation, size : In
        Of the instruction.
    restart : In
        The tap's coordinate becomes the origin.
    next_tap : In
        The tap's coordinate moves by ``dilation``.
    rewind : In
        The coordinate becomes the tap's.
    advance : In
        The coordinate moves by ``stride``. Of the four the first counts.
    inside : Out
        The coordinate is in 0..size - 1. Below zero wraps to beyond any size.
    """

    origin: Signal
    stride: Signal
    dilation: Signal
    size: Signal
    restart: Signal
    next_tap: Signal
    rewind: Signal
    advance: Signal
    inside: Signal

    def __init__(self) -> None:
        strobes = dict.fromkeys(("restart", "next_tap", "rewind", "advance"), In(1))
        super().__init__(
            {
                "origin": In(COORDINATE_BITS),
                "stride": In(8),
                "dilation": In(8),
                "size": In(COORDINATE_BITS),
                **strobes,
                "inside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tap, position = Signal(COORDINATE_BITS), Signal(COORDINATE_BITS)
        following = Signal(COORDINATE_BITS)
        m.d.comb += [
            following.eq(
                Mux(self.next_tap, tap, position) + Mux(self.next_tap, self.dilation, self.stride)
            ),
            self.inside.eq(position < self.size),
        ]
        with m.If(self.restart):
            m.d.sync += [tap.eq(self.origin), position.eq(self.origin)]
        with m.Elif(self.next_tap):
            m.d.sync += [tap.eq(following), position.eq(following)]
        with m.Elif(self.rewind):
            m.d.sync += position.eq(tap)
        with m.Elif(self.advance):
            m.d.sync += position.eq(following)
        return m
