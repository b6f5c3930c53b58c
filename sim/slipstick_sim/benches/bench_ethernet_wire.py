"""The Ethernet PHY at its pins, with the three clocks that a board has, against a host."""

import hashlib
import importlib.resources
from typing import Any

import cocotb
from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer, with_timeout
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.ethernet.addresses import format_ip, format_mac
from slipstick_rtl.phy.ethernet.datagrams import ARRIVED_BYTES, SLOT_BYTES, Arrived, Datagram, Kind
from slipstick_rtl.phy.ethernet.liteeth import RGMII, RMII, LiteEthSettings, liteeth_verilog
from slipstick_rtl.phy.ethernet.wire_phy import ethernet_phy

from .drivers.ethernet_frames import (
    BOARD,
    arp,
    asks_for_host,
    datagram_of,
    echo_of,
    is_reply,
    ping,
    udp,
)
from .drivers.ethernet_wires import RgmiiHost, RmiiHost, WireHost
from .drivers.usb_port import random_bytes
from .registry import Bench, parameters

CONFIGURATION = Configuration(rows=4, columns=4, lanes=4)
SYNC_NS, CORE_NS = 9.5, 20
PATIENCE_US = 300
LEASE = 77


class EchoPhy(wiring.Component):
    """An Ethernet PHY that sends back the link's bytes, with the clock of LiteEth for a port.

    Parameters
    ----------
    medium : str

    Members
    -------
    core_clk : In
        Of RGMII; RMII's is its ``ref_clk``.
    each pin
        As of the PHY.
    """

    core_clk: Signal

    def __init__(self, *, medium: str) -> None:
        self._medium = medium
        self._phy = ethernet_phy(
            CONFIGURATION,
            medium,
            ip=format_ip(BOARD.ip),
            mac=format_mac(BOARD.mac),
            reset_milliseconds=0,
        )
        members = dict(self._phy.signature.members.items())
        self._pins = {name: members[name] for name in members if name not in ("i", "o")}
        super().__init__({**self._pins, "core_clk": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.ethernet = ClockDomain("ethernet")
        own: Any = self
        core_clk = self.core_clk if self._medium == RGMII else own.ref_clk
        m.d.comb += ClockSignal("ethernet").eq(core_clk)
        m.submodules.phy = phy = self._phy
        connect(m, phy.o, phy.i)
        for name, member in self._pins.items():
            pin, port = getattr(phy, name), getattr(self, name)
            m.d.comb += port.eq(pin) if member.flow is Out else pin.eq(port)
        # models are kept by this text, which has only an instance of LiteEth
        digest = hashlib.sha256(phy.liteeth.verilog.encode()).hexdigest()[:16]
        m.d.comb += Signal(name=f"liteeth_{digest}").eq(core_clk)
        return m


def liteeth_and_cells(rtlil: str) -> str:
    """LiteEth's Verilog, and that of an ECP5's I/O cells."""
    medium = RGMII if "rgmii_clocks_rx" in rtlil else RMII
    cells = importlib.resources.files(__package__ or "") / "ecp5_io.v"
    core = liteeth_verilog(LiteEthSettings(medium=medium))
    return "\n" + core + "\n" + cells.read_text()


BENCH = Bench(
    name="bench_ethernet_wire",
    component=EchoPhy,
    test_module=__name__,
    parameters=({"medium": RGMII}, {"medium": RMII}),
    others=liteeth_and_cells,
)


class Wire:
    """The board with its clocks, and a host that answers its questions."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self.host: WireHost

    async def start(self) -> None:
        dut = self._dut
        dut.rst.value = 1
        Clock(dut.clk, SYNC_NS, unit="ns").start()
        if parameters()["medium"] == RGMII:
            Clock(dut.core_clk, CORE_NS, unit="ns").start()
            self.host = RgmiiHost(dut)
        else:
            self.host = RmiiHost(dut)
        await Timer(1, unit="us")
        dut.rst.value = 0
        await RisingEdge(dut.rst_n)
        await Timer(1, unit="us")

    async def receive(self) -> bytes:
        """The next frame that is no question."""
        while True:
            frame = await with_timeout(cocotb.start_soon(self.host.receive()), PATIENCE_US, "us")
            if not asks_for_host(frame):
                return frame
            await self.host.send(arp(is_reply=True))

    async def tell(self, datagram: Datagram) -> Datagram:
        """The answer to a datagram."""
        await self.host.send(udp(datagram))
        return datagram_of(await self.receive())


@cocotb.test()
async def answers_arp_ping_and_discover(dut: Any) -> None:
    wire = Wire(dut)
    await wire.start()
    await wire.host.send(arp(is_reply=False))
    assert is_reply(await wire.receive())
    for size in (1, 56, 128):
        payload = random_bytes(size, size)
        await wire.host.send(ping(payload))
        assert echo_of(await wire.receive(), size) == payload
    here = await wire.tell(Datagram(kind=Kind.DISCOVER, number=3))
    assert (here.kind, here.number) == (Kind.HERE, 3)


@cocotb.test()
async def takes_preambles_of_other_lengths(dut: Any) -> None:
    """A PHY chip may lose some of it, a switch may add."""
    wire = Wire(dut)
    await wire.start()
    for count in (4, 5, 6, 7, 9, 12, 15):
        await wire.host.send(arp(is_reply=False), count)
        assert is_reply(await wire.receive())
    await wire.host.send(arp(is_reply=False), 2)
    await wire.host.send(arp(is_reply=False))
    assert is_reply(await wire.receive())


@cocotb.test()
async def carries_all_slots_at_the_wires_rate(dut: Any) -> None:
    """Four datagrams without a pause between them, and all of their bytes back."""
    wire = Wire(dut)
    await wire.start()
    granted = await wire.tell(Datagram(kind=Kind.CLAIM, lease=LEASE))
    assert granted.kind is Kind.GRANTED
    given, came, arrived = random_bytes(1, 8 * SLOT_BYTES), b"", 0
    for first in (0, 4):
        for number in range(first, first + 4):
            body = given[number * SLOT_BYTES : (number + 1) * SLOT_BYTES]
            await wire.host.send(
                udp(Datagram(kind=Kind.DATA, number=number, lease=LEASE, body=body))
            )
        end = (first + 4) * SLOT_BYTES
        while len(came) < end or arrived < first + 4:
            send = datagram_of(await wire.receive())
            assert send.kind is Kind.SEND
            arrived = Arrived.unpack(send.body).next
            came += send.body[ARRIVED_BYTES:]
    assert came == given
