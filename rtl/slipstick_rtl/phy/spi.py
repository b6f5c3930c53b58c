"""An SPI peripheral: two streams of bytes through transfers that may end at any time."""

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..primitives.replay_queue import POSITION_BITS, ReplayQueue
from ..primitives.stream_queue import StreamQueue
from .spi_pins import SpiPins
from .spi_protocol import DEVICE_START
from .spi_transfer import SpiTransfer


class Spi(wiring.Component):
    """Transfers of :mod:`spi_protocol`: no byte of either stream is lost, repeated or invented,
    whenever the chip is deselected and however slow the streams are.

    Bits that the wires spoil are spoilt in the data as well, where the link's checksums find them;
    in headers and trailers they are found here.

    Parameters
    ----------
    receive_depth : int
        Received bytes that wait at most, at least 2.
    replay_bits : int
        Up to 2^replay_bits bytes to be sent wait, or are kept until the host has said that it has
        them: as many as it can get in a transfer; 1..15 bits.

    Members
    -------
    sck, chip_select_n, mosi, miso
        The pins, as of ``SpiPins``; SCK has up to a ``MINIMUM_SCK_CYCLES``-th of the clock.
    miso_enable : Out
        MISO may be driven: the chip is selected. Straight from the pin.
    i : In(stream of bytes)
        To be sent.
    o : Out(stream of bytes)
        Received.
    selected : Out
        The chip is selected, 2 cycles late.
    refused : Out
        Strobe: a host header was wrong.

    Raises
    ------
    TypeError, ValueError
        As for ``StreamQueue`` and ``ReplayQueue``.
    """

    sck: Signal
    chip_select_n: Signal
    mosi: Signal
    miso: Signal
    miso_enable: Signal
    i: stream.Interface
    o: stream.Interface
    selected: Signal
    refused: Signal

    def __init__(self, *, receive_depth: int, replay_bits: int) -> None:
        self._pins = SpiPins(first=DEVICE_START)
        self._transfer = SpiTransfer(depth_bits=replay_bits)
        self._received = StreamQueue(shape=8, depth=receive_depth)
        self._replay = ReplayQueue(depth_bits=replay_bits)
        super().__init__(
            {
                "sck": In(1),
                "chip_select_n": In(1),
                "mosi": In(1),
                "miso": Out(1),
                "miso_enable": Out(1),
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "selected": Out(1),
                "refused": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pins = pins = self._pins
        m.submodules.transfer = ResetInserter(~pins.selected)(self._transfer)
        m.submodules.received = received = self._received
        m.submodules.replay = replay = self._replay
        transfer = self._transfer
        taken = Signal(POSITION_BITS)
        connect(m, flipped(self.i), replay.i)
        connect(m, received.o, flipped(self.o))
        m.d.sync += taken.eq(taken + transfer.store)
        m.d.comb += [
            pins.sck.eq(self.sck),
            pins.chip_select_n.eq(self.chip_select_n),
            pins.mosi.eq(self.mosi),
            self.miso.eq(pins.miso),
            self.miso_enable.eq(~self.chip_select_n),
            self.selected.eq(pins.selected),
            self.refused.eq(transfer.refused),
            transfer.done.eq(pins.done),
            transfer.received.eq(pins.data),
            pins.next.eq(transfer.next),
            transfer.taken.eq(taken),
            transfer.released.eq(replay.released),
            transfer.sent.eq(replay.sent),
            transfer.written.eq(replay.written),
            replay.rewind.eq(transfer.rewind),
            replay.position.eq(transfer.position),
            transfer.given.eq(replay.o.payload),
            transfer.available.eq(replay.o.valid),
            replay.o.ready.eq(transfer.give),
            received.i.payload.eq(pins.data),
            received.i.valid.eq(transfer.store),
            transfer.room.eq(received.i.ready),
        ]
        return m
