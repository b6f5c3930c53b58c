"""Hosts on RGMII and RMII: frames to the pins of a board, and from them."""

from typing import Any, Protocol

import cocotb
import cocotb.queue
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.eth import GmiiFrame, RgmiiSink, RgmiiSource

from .ethernet_frames import is_right, with_check

END_OF_PREAMBLE = 0xD5
_DIBITS = 4
_GAP_BYTES = 12


def preamble(count: int) -> bytes:
    """So many bytes, the end included."""
    return b"\x55" * (count - 1) + bytes([END_OF_PREAMBLE])


class WireHost(Protocol):
    """The other end of a wire."""

    async def send(self, frame: bytes, preamble_bytes: int = 8) -> None:
        """Sends a frame behind those before it; returns before it has left."""
        ...

    async def receive(self) -> bytes:
        """The next frame, whose preamble and check sequence are right, without them."""
        ...


def _checked(raw: bytes, preamble_bytes: int = 8) -> bytes:
    start = raw.index(END_OF_PREAMBLE)
    assert raw[: start + 1] == preamble(preamble_bytes), raw.hex()
    frame = raw[start + 1 :]
    assert is_right(frame), frame.hex()
    return frame[:-4]


class RgmiiHost:
    """1 Gbit/s: cocotbext-eth's ends of RGMII, and the chip's clock."""

    def __init__(self, dut: Any) -> None:
        Clock(dut.rx_clk, 8, unit="ns").start()
        self._source = RgmiiSource(dut.rx_data, dut.rx_ctl, dut.rx_clk)
        self._sink = RgmiiSink(dut.tx_data, dut.tx_ctl, dut.tx_clk)

    async def send(self, frame: bytes, preamble_bytes: int = 8) -> None:
        """As of ``WireHost``."""
        await self._source.send(GmiiFrame(preamble(preamble_bytes) + with_check(frame)))

    async def receive(self) -> bytes:
        """As of ``WireHost``."""
        # the sink wakes with the first byte, and begins with the second
        return _checked(bytes(await self._sink.recv()), 7)


class RmiiHost:
    """100 Mbit/s: two bits at a time, with the module's clock."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        Clock(dut.ref_clk, 20, unit="ns").start()
        self._to_send: cocotb.queue.Queue[bytes] = cocotb.queue.Queue()
        self._received: cocotb.queue.Queue[bytes] = cocotb.queue.Queue()
        dut.crs_dv.value = 0
        dut.rx_data.value = 0
        cocotb.start_soon(self._drive())
        cocotb.start_soon(self._watch())

    async def send(self, frame: bytes, preamble_bytes: int = 8) -> None:
        """As of ``WireHost``."""
        await self._to_send.put(preamble(preamble_bytes) + with_check(frame))

    async def receive(self) -> bytes:
        """As of ``WireHost``."""
        return _checked(await self._received.get())

    async def _drive(self) -> None:
        dut = self._dut
        while True:
            raw = await self._to_send.get()
            for byte in raw:
                for place in range(_DIBITS):
                    await FallingEdge(dut.ref_clk)
                    dut.crs_dv.value = 1
                    dut.rx_data.value = byte >> 2 * place & 3
            await FallingEdge(dut.ref_clk)
            dut.crs_dv.value = 0
            dut.rx_data.value = 0
            for _ in range(_GAP_BYTES * _DIBITS):
                await FallingEdge(dut.ref_clk)

    async def _watch(self) -> None:
        dut, dibits = self._dut, []
        while True:
            await RisingEdge(dut.ref_clk)
            if dut.tx_en.value == 1:
                dibits.append(int(dut.tx_data.value))
            elif dibits:
                groups = zip(*[iter(dibits)] * _DIBITS, strict=False)
                raw = bytes(sum(d << 2 * k for k, d in enumerate(group)) for group in groups)
                # the output's cell is high at first
                if raw:
                    self._received.put_nowait(raw)
                dibits = []
