"""Ethernet: addresses, the filter of frames, the crossings, LiteEth's Verilog, and the wires."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from echo_core import Echo
from ethernet_frames import (
    BOARD_MAC,
    EVERYBODY,
    HOST_IP,
    IP_NUMBER,
    MAC_NUMBER,
    arp_reply,
    arp_request,
    ether,
    ip,
    ping,
    udp,
)
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import UDP
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.ethernet import liteeth
from slipstick_rtl.phy.ethernet.addresses import (
    default_mac,
    format_ip,
    format_mac,
    link_local_ip,
    parse_ip,
    parse_mac,
)
from slipstick_rtl.phy.ethernet.datagrams import PORT
from slipstick_rtl.phy.ethernet.dhcp_start import RENEWALS, DhcpStart
from slipstick_rtl.phy.ethernet.frame_filter import WORDS, FrameFilter
from slipstick_rtl.phy.ethernet.liteeth import LiteEthSettings, check_liteeth, liteeth_verilog
from slipstick_rtl.phy.ethernet.liteeth_port import LiteEthPort
from slipstick_rtl.phy.ethernet.packet_crossings import ReceivedCrossing, SentCrossing
from slipstick_rtl.phy.interface import make_phy
from slipstick_rtl.phy.registry import find_wire
from slipstick_rtl.toplevel.design import SOURCES, write_board_design
from slipstick_rtl.toplevel.registry import find_board

CONFIGURATION = Configuration(rows=4, columns=4, lanes=4, clock_hz=100_000_000)


def test_addresses() -> None:
    assert parse_ip("192.168.1.50") == 0xC0A8_0132
    assert parse_mac("02:00:0A:00:00:ff") == parse_mac("02-00-0a-00-00-FF") == 0x02_000A_0000FF
    mac = default_mac(CONFIGURATION.fingerprint)
    assert mac >> 40 == 0x02 and default_mac("another") != mac
    assert format_mac(mac).startswith("02:") and parse_mac(format_mac(mac)) == mac
    for number in (0x0200_0000_0000, 0x02FF_FFFF_FFFF):
        assert re.fullmatch(r"169\.254\.1\.[12]|169\.254\.2\.2", format_ip(link_local_ip(number)))


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_ip, "192.168.1", "must be four numbers, such as 192.168.1.50, not '192.168.1'"),
        (parse_ip, "fe80::1", "must be four numbers"),
        (parse_ip, "239.1.1.1", "must be that of one host, not 239.1.1.1"),
        (parse_ip, "127.0.0.1", "must be that of one host"),
        (parse_ip, "0.0.0.1", "must be that of one host"),
        (parse_ip, "10.0.0.0", "must be that of one host"),
        (parse_ip, "10.0.0.255", "must be that of one host"),
        (parse_mac, "02:00:00:00:00", "must be six bytes, such as 02:00:00:00:00:01, not"),
        (parse_mac, "0x0200000001", "must be six bytes"),
        (parse_mac, "03:00:00:00:00:01", "must be that of one station, not 03:"),
        (parse_mac, "00:00:00:00:00:00", "must be that of one station"),
    ],
)
def test_addresses_that_are_refused(parse: Any, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def words_of(frame: bytes) -> Iterator[tuple[int, int, int]]:
    """The frame as LiteEth's MAC gives it: data, ``last_be``, ``last``."""
    for place in range(0, len(frame), 4):
        part = frame[place : place + 4]
        last = place + 4 >= len(frame)
        yield int.from_bytes(part, "little"), 1 << len(part) - 1 if last else 0, int(last)


def filtered(
    frames: list[tuple[bytes, bool]], *, dhcp: bool = False, ready_after: int = 0
) -> list[bytes]:
    """What comes through of frames, of which some have a wrong check sequence."""
    dut = FrameFilter(dhcp=dhcp)
    out: list[bytes] = []

    async def give(ctx: Any) -> None:
        ctx.set(dut.mac, MAC_NUMBER)
        ctx.set(dut.ip, IP_NUMBER)
        for frame, wrong in frames:
            for data, last_be, last in words_of(frame):
                word = {"data": data, "last_be": last_be, "last": last, "error": wrong and last}
                ctx.set(dut.i.payload, word)
                ctx.set(dut.i.valid, 1)
                assert ctx.get(dut.i.ready)
                await ctx.tick()
            ctx.set(dut.i.valid, 0)
            await ctx.tick().repeat(3)
        await ctx.tick().repeat(3 * WORDS + ready_after)

    async def take(ctx: Any) -> None:
        await ctx.tick().repeat(ready_after or 1)
        ctx.set(dut.o.ready, 1)
        frame = b""
        async for _, _, valid, word in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                frame += word.data.to_bytes(4, "little")
                if word.last:
                    out.append(frame[: len(frame) - 4 + word.last_be.bit_length()])
                    frame = b""

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return out


def padded(frame: bytes) -> bytes:
    return frame.ljust(60, b"\0")


def offer(mac: str, target: str = "192.168.1.77") -> bytes:
    """A DHCP server's answer to the station with a MAC address."""
    answer = BOOTP(op=2, xid=1, yiaddr=target, chaddr=bytes.fromhex(mac.replace(":", "")))
    server = UDP(sport=67, dport=68)
    return bytes(ether() / ip(target) / server / answer / DHCP(options=["end"]))


GOOD = {
    "question": arp_request(),
    "reply": arp_reply(),
    "ping": ping(b"abc"),
    "datagram": udp(b"x"),
    "long": udp(bytes(range(256)) * 2 + b"12345678"),
    "broadcast": udp(b"abcdefgh", mac=EVERYBODY, target="255.255.255.255"),
    "network's broadcast": udp(b"abcdefgh", mac=EVERYBODY, target="192.168.1.255"),
    "large network's broadcast": udp(b"abcdefgh", mac=EVERYBODY, target="192.168.255.255"),
    "unfragmented": udp(b"abcdefgh", flags="DF"),
}
BAD = {
    "another station's": udp(b"abcdefgh", mac="02:00:00:00:00:02"),
    "a group's": udp(b"abcdefgh", mac="01:00:5e:00:00:01"),
    "IPv6": bytes(ether())[:12] + b"\x86\xdd" + bytes(60),
    "options": udp(b"abcdefgh", options=[b"\x01\x01\x01\x00"]),
    "first fragment": udp(b"abcdefgh", flags="MF"),
    "last fragment": udp(b"abcdefgh", frag=1),
    "TCP": udp(b"abcdefgh", proto=6),
    "another host's": udp(b"abcdefgh", target="192.168.1.51"),
    "another network's": udp(b"abcdefgh", target="192.168.2.255"),
    "a broadcast to another port": udp(b"abcdefgh", mac=EVERYBODY, port=PORT + 1),
    "another port": udp(b"abcdefgh", port=PORT + 1),
    "no payload": udp(b""),
    "UDP longer than IP": udp(b"abcdefgh", length=17),
    "UDP shorter than IP": udp(b"abcdefgh", length=15),
    "IP longer than the frame": udp(b"abcdefgh" * 8, len=93, length=73),
    "ping to all": ping(b"abc", target="192.168.1.255"),
    "a DHCP server's": offer(BOARD_MAC),
}


def test_right_frames_come_through_and_others_do_not() -> None:
    good, bad = list(GOOD.values()), list(BAD.values())
    mixed = [frame for pair in zip(bad, good * 2, strict=False) for frame in pair]
    expected = [padded(frame) for frame in (good * 2)[: len(bad)]]
    assert filtered([(padded(frame), False) for frame in mixed]) == expected


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_frame_is_forgotten(name: str) -> None:
    assert filtered([(padded(BAD[name]), False)]) == []


def test_short_and_damaged_frames_are_forgotten() -> None:
    good = padded(udp(b"abcdefgh"))
    given = [(good, True), (good[:59], False), (good[:3], False), (good[:40], False), (good, False)]
    assert filtered(given) == [good]


def test_frames_without_room_are_forgotten_and_later_ones_are_not() -> None:
    frame = udp(bytes(1400))
    assert filtered([(frame, False)] * 3, ready_after=1300) == [frame]
    short = padded(udp(b"x"))
    assert filtered([(frame, False), (frame, False), (short, False)], ready_after=1300) == [
        frame,
        short,
    ]
    # 8 KiB would begin anew in a counter of 9 bits
    giant = udp(bytes(8000))
    assert filtered([(giant, False), (short, False)]) == [short]


def test_answers_of_a_dhcp_server() -> None:
    right, other = offer(BOARD_MAC), offer("02:00:00:00:00:02")
    assert filtered([(other, False), (right, False)], dhcp=True) == [right]
    assert filtered([(padded(frame), False) for frame in GOOD.values()], dhcp=True) == [
        padded(frame) for frame in GOOD.values()
    ]


def test_the_dhcp_client_is_started_again_and_its_address_kept() -> None:
    dut = DhcpStart(retry_cycles=10)
    starts: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.fallback, 5)
        for cycle in range(30 + 20 * RENEWALS):
            if cycle == 30:
                assert ctx.get(dut.ip) == 5
                ctx.set(dut.found, 9)
            if ctx.get(dut.start):
                starts.append(cycle)
            await ctx.tick()
        # an attempt fails
        ctx.set(dut.found, 0)
        await ctx.tick()
        assert ctx.get(dut.ip) == 9

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert starts[:3] == [1, 11, 21]
    assert set(b - a for a, b in zip(starts[3:], starts[4:], strict=False)) == {10 * RENEWALS}


class Crossed(wiring.Component):
    """A crossing with one clock for both domains."""

    def __init__(self, crossing: Any) -> None:
        self.crossing = crossing
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.ethernet = ClockDomain("ethernet")
        m.d.comb += ClockSignal("ethernet").eq(ClockSignal("sync"))
        m.submodules.crossing = self.crossing
        return m


@pytest.mark.parametrize("pause", [0, 3])
def test_a_received_datagram_has_its_sender_before_it(pause: int) -> None:
    dut = ReceivedCrossing()
    out: list[tuple[int, int, int]] = []

    async def give(ctx: Any) -> None:
        for data, last, error in ((0x11, 0, 1), (0x22, 1, 1), (0x33, 1, 0)):
            fields = {"ip_address": 0xC0A80102, "port": 4000, "length": 5}
            ctx.set(dut.i.payload, {"data": data, "last": last, **fields})
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.error, error)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            await ctx.tick().repeat(1 + pause)
        await ctx.tick().repeat(20)

    async def take(ctx: Any) -> None:
        ctx.set(dut.o.ready, 1)
        async for _, _, valid, word in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                out.append((word.data, word.last, word.error))

    simulator = Simulator(Crossed(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    head = [(0xC0A80102, 0, 0), (5 << 16 | 4000, 0, 0)]
    assert out == [*head, (0x11, 0, 0), (0x22, 1, 1), *head, (0x33, 1, 0)]


def test_a_packet_leaves_when_all_of_it_is_there() -> None:
    dut = SentCrossing()
    out: list[tuple[int, ...]] = []
    gaps: list[int] = []

    async def give(ctx: Any) -> None:
        for length in (1, 6, 8, 500):
            payload = [0x01010101 * (place & 0xFF) for place in range((length + 3) // 4)]
            words = [0xC0A80102, length << 16 | 4000, *payload]
            for place, data in enumerate(words):
                ctx.set(dut.i.payload, {"data": data, "last": place == len(words) - 1})
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
                ctx.set(dut.i.valid, 0)
                await ctx.tick().repeat(2)
        await ctx.tick().repeat(300)

    async def take(ctx: Any) -> None:
        ctx.set(dut.o.ready, 1)
        inside = False
        async for _, _, valid, word in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                out.append((word.data & 0xFF, word.ip_address, word.port, word.length))
                inside = not word.last
                if word.last:
                    assert word.last_be == 1 << (word.length - 1) % 4
                else:
                    assert word.last_be == 0
            elif inside:
                gaps.append(len(out))

    simulator = Simulator(Crossed(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    assert gaps == []
    ip_number = int.from_bytes(bytes(map(int, HOST_IP.split("."))), "big")
    assert out == [
        (place & 0xFF, ip_number, 4000, length)
        for length in (1, 6, 8, 500)
        for place in range((length + 3) // 4)
    ]


@pytest.mark.parametrize("medium", [liteeth.RGMII, liteeth.RMII, liteeth.BARE])
def test_the_verilog_is_the_same_each_time(medium: str) -> None:
    settings = LiteEthSettings(medium=medium, dhcp=True)
    text = liteeth_verilog(settings)
    liteeth_verilog.cache_clear()
    assert liteeth_verilog(settings) == text
    assert text.startswith("`timescale") and f"module {liteeth.NAME} (" in text
    cells = set(re.findall(r"^(DELAYG|ODDRX1F|IDDRX1F|[IO]FS1P3BX|FD1S3BX)\b", text, re.M))
    assert (
        cells
        == {
            liteeth.RGMII: {"DELAYG", "ODDRX1F", "IDDRX1F", "FD1S3BX"},
            liteeth.RMII: {"IFS1P3BX", "OFS1P3BX", "FD1S3BX"},
            liteeth.BARE: set(),
        }[medium]
    )


def test_a_missing_liteeth_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "liteeth.core", None)
    with pytest.raises(ImportError, match=r"Ethernet needs the Python package liteeth .*pip inst"):
        check_liteeth()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LiteEthSettings(medium="mii"), "medium must be one of rgmii, rmii, bare, not 'm"),
        (
            lambda: LiteEthSettings(medium="rgmii", rx_delay=4e-9),
            "rx_delay must be within 0 and 3.1 ns, not 4e-09",
        ),
        (
            lambda: LiteEthPort(
                settings=LiteEthSettings(medium="bare"), mac=1, ip=1, reset_cycles=0
            ),
            "reset_cycles must be at least 1, not 0",
        ),
        (
            lambda: LiteEthPort(
                settings=LiteEthSettings(medium="bare", dhcp=True), mac=1, ip=1, reset_cycles=1
            ),
            "ip must be None with DHCP, and only with it",
        ),
        (
            lambda: make_phy(find_wire("rgmii"), CONFIGURATION, ip="1.2.3"),
            "an IP address must be four numbers",
        ),
        (
            lambda: make_phy(find_wire("rmii"), CONFIGURATION, mac="1"),
            "a MAC address must be six bytes",
        ),
    ],
)
def test_settings_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "link", "nets", "plls"),
    [
        (
            "colorlight-5a75b",
            "rgmii",
            {"line.eth_rx_clock": 125, "line.clocks.ethernet_50_mhz": 50},
            2,
        ),
        ("ulx3s-85f", "rmii", {"line.ethernet_clock": 50}, 1),
    ],
)
@pytest.mark.parametrize("address", [None, "10.1.2.3"])
def test_a_board_has_liteeth_beside_its_design(
    name: str,
    link: str,
    nets: dict[str, int],
    plls: int,
    address: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slipstick_rtl.toplevel.board_top.Accelerator", Echo)
    monkeypatch.setattr("slipstick_rtl.toplevel.design.describe", lambda accelerator: {})
    configuration = Configuration(clock_hz=find_board(name).configuration.clock_hz)
    options = {} if address is None else {"ip": address}
    constraints = write_board_design(name, configuration, link, 105.0, tmp_path, options)
    for net, megahertz in nets.items():
        assert f'FREQUENCY NET "{net}" {megahertz}000000.0 HZ' in constraints
    design = (tmp_path / "design.il").read_text()
    assert len(re.findall(r"cell \\EHXPLLL ", design)) == plls
    assert f"cell \\{liteeth.NAME} " in design
    (source,) = (tmp_path / SOURCES).iterdir()
    assert source.name == f"{liteeth.NAME}.v"
    assert ("dhcp_start" in source.read_text()) == (address is None)
