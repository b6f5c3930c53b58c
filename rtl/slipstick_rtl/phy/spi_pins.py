"""The bits of an SPI peripheral: pins in, bytes out, and back."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

SYNCHRONISER_STAGES = 2


class SpiPins(wiring.Component):
    """Follows SCK by looking at it in every clock cycle; mode 0, most significant bit first.

    MISO changes after the rising edge of SCK at which the controller has sampled it, instead of the
    falling one: 2 to 3 clock cycles later, so the controller may sample as late as 2 cycles after
    its edge, and the next bit has the rest of the period to get there. With the shortest period,
    ``MINIMUM_SCK_CYCLES``, that leaves a clock cycle for pins and wires.

    Parameters
    ----------
    first : int
        The first byte of every transfer.

    Members
    -------
    sck, chip_select_n, mosi : In
        Asynchronous. Either level of SCK must last for over a cycle, and MOSI must be stable from
        the rising edge on for one; the select must fall at least a cycle before the first rising
        edge, and rise as long after the last.
    miso : Out
        From a register.
    selected : Out
        The chip is selected, 2 cycles late.
    done : Out
        Strobe: a byte is complete, and the one after it begins to be sent, which is ``next``.
    data : Out(8)
        The byte, while ``done``.
    next : In(8)
        Taken at ``done``.
    """

    sck: Signal
    chip_select_n: Signal
    mosi: Signal
    miso: Signal
    selected: Signal
    done: Signal
    data: Signal
    next: Signal

    def __init__(self, *, first: int) -> None:
        self._first = first
        super().__init__(
            {
                "sck": In(1),
                "chip_select_n": In(1),
                "mosi": In(1),
                "miso": Out(1),
                "selected": Out(1),
                "done": Out(1),
                "data": Out(8),
                "next": In(8),
            }
        )

    @property
    def output_latency(self) -> int:
        """Cycles from a rising edge of SCK, at the most, to the edge at which MISO changes."""
        return SYNCHRONISER_STAGES + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sck, mosi, deselected = Signal(), Signal(), Signal(init=1)
        m.submodules.synchroniser = FFSynchronizer(
            Cat(self.sck, self.mosi, self.chip_select_n),
            Cat(sck, mosi, deselected),
            init=0b100,
            stages=SYNCHRONISER_STAGES,
        )
        was_high = Signal()
        bit = Signal(range(8))
        received = Signal(7)
        leaving = Signal(8, init=self._first)
        rising = self.selected & sck & ~was_high
        m.d.sync += was_high.eq(sck)
        m.d.comb += [
            self.selected.eq(~deselected),
            self.done.eq(rising & (bit == 7)),
            self.data.eq(Cat(mosi, received)),
            self.miso.eq(leaving[-1]),
        ]
        with m.If(deselected):
            m.d.sync += [bit.eq(0), leaving.eq(self._first)]
        with m.Elif(rising):
            m.d.sync += [
                bit.eq(bit + 1),
                received.eq(self.data),
                leaving.eq(Mux(self.done, self.next, leaving << 1)),
            ]
        return m
