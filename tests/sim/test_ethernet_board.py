"""A compiled board on Ethernet: LiteEth, the datagrams' port and the core, from frame to frame."""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tap_network
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from ethernet_frames import (
    BOARD_IP,
    BOARD_MAC,
    EVERYBODY,
    HOST_IP,
    HOST_MAC,
    HOST_PORT,
    arp_reply,
    arp_request,
    datagram_of,
    ether,
    is_question,
    ping,
    udp,
)
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from slipstick.devices.ethernet_frames import Station, answer_arp, pack_frame, unpack_frame
from slipstick_rtl.accelerator import EVENTS
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import REQUEST_START, Command, encode
from slipstick_rtl.phy.ethernet.addresses import format_ip, link_local_ip, parse_mac
from slipstick_rtl.phy.ethernet.datagrams import PORT, Arrived, Datagram, Kind, Presence
from slipstick_sim.verilated import build_library, ethernet_library
from slipstick_sim.verilated.build import Line
from slipstick_sim.verilated.ethernet_board import EthernetBoard
from slipstick_sim.verilated.ethernet_endpoint import EthernetEndpoint

CONFIGURATION = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    accumulator_depth=64,
    instruction_words=64,
    payload_bytes=64,
)
LEASE_CYCLES = 50_000
PATIENCE = 40
"""Looks at the wire until nothing more is expected."""
LEASE = 0x1234


class Board:
    """A board and its host, who answers its questions."""

    def __init__(self, library: Path) -> None:
        self.endpoint = EthernetEndpoint(library)
        self.questions = 0

    def send(self, *frames: bytes, count: int = 1, **options: Any) -> list[bytes]:
        """The first frames that come back, those with questions left out."""
        came: list[bytes] = []
        for frame in frames:
            came += self.endpoint.feed(frame, **options)
        answers: list[bytes] = []
        for _ in range(PATIENCE):
            for frame in came:
                if is_question(frame):
                    self.questions += 1
                    self.endpoint.feed(arp_reply())
                else:
                    answers.append(frame)
            if len(answers) >= count:
                break
            came = self.endpoint.feed(b"")
        return answers

    def tell(self, kind: Kind, number: int = 0, body: bytes = b"", **options: Any) -> Datagram:
        """The answer to a datagram."""
        sent = Datagram(kind=kind, number=number, lease=LEASE, body=body)
        (answer,) = self.send(udp(sent.pack(), **options))
        return datagram_of(answer)

    def is_silent(self, *frames: bytes, **options: Any) -> bool:
        """Whether nothing comes back, and the board still is there."""
        silent = not self.send(*frames, **options)
        (answer,) = self.send(arp_request())
        return silent and Ether(answer)[ARP].hwsrc == BOARD_MAC


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ethernet_library(CONFIGURATION, ip=BOARD_IP, mac=BOARD_MAC, lease_cycles=LEASE_CYCLES)


@pytest.fixture
def board(library: Path) -> Iterator[Board]:
    board = Board(library)
    yield board
    board.endpoint.close()


def test_arp_and_ping_are_answered(board: Board) -> None:
    (answer,) = board.send(arp_request())
    packet = Ether(answer)
    assert (packet.dst, packet.src, packet[ARP].op) == (HOST_MAC, BOARD_MAC, 2)
    assert (packet[ARP].hwsrc, packet[ARP].psrc) == (BOARD_MAC, BOARD_IP)
    for size in (0, 1, 17, 56, 128):
        payload = bytes(range(size))
        (answer,) = board.send(ping(payload))
        packet = Ether(answer)
        assert (packet[IP].src, packet[IP].dst) == (BOARD_IP, HOST_IP)
        assert (packet[ICMP].type, packet[ICMP].id, packet[ICMP].seq) == (0, 7, 3)
        echoed = IP(bytes(packet[IP])[: packet[IP].len])
        assert bytes(echoed[ICMP].payload) == payload
        right = ICMP(bytes(echoed[ICMP]))
        del right.chksum
        assert ICMP(bytes(right)).chksum == echoed[ICMP].chksum
    assert board.questions >= 1
    assert board.is_silent(ping(bytes(129)))


@pytest.mark.parametrize("target", [BOARD_IP, "255.255.255.255", "192.168.1.255"])
def test_a_board_is_discovered(board: Board, target: str) -> None:
    mac = BOARD_MAC if target == BOARD_IP else EVERYBODY
    here = board.tell(Kind.DISCOVER, 5, mac=mac, target=target)
    assert (here.kind, here.number, here.lease) == (Kind.HERE, 5, LEASE)
    presence = Presence.unpack(here.body)
    assert presence.identity == Identity.of(CONFIGURATION) and not presence.owned


def test_a_request_of_the_link_is_answered(board: Board) -> None:
    granted = board.tell(Kind.CLAIM)
    assert granted.kind is Kind.GRANTED
    presence = Presence.unpack(granted.body)
    assert presence.owned and format_ip(int.from_bytes(presence.owner_address, "big")) == HOST_IP
    request = encode(REQUEST_START, Command.IDENTIFY, 9)
    data = Datagram(kind=Kind.DATA, lease=LEASE, body=request)
    answers = [datagram_of(frame) for frame in board.send(udp(data.pack()), count=2)]
    assert {answer.kind for answer in answers} == {Kind.SEND}
    assert Arrived.unpack(answers[-1].body).next == 1
    bytes_of_link = b"".join(answer.body[struct.calcsize("<HH") :] for answer in answers)
    assert Identity.of(CONFIGURATION).pack() in bytes_of_link
    # the lease runs out
    board.endpoint.feed(b"")
    while board.endpoint.cycles < 4 * LEASE_CYCLES:
        board.endpoint.feed(b"")
    assert not Presence.unpack(board.tell(Kind.DISCOVER).body).owned


def damaged(frame: bytes, place: int) -> bytes:
    changed = bytearray(frame)
    changed[place] ^= 1
    return bytes(changed)


DISCOVER = Datagram(kind=Kind.DISCOVER).pack()


def test_frames_with_a_wrong_check_sequence_are_forgotten(board: Board) -> None:
    """Short ones as well, of which LiteEth would have passed on all before it knows."""
    for frame in (udp(DISCOVER), arp_request(), ping(b"abc"), udp(DISCOVER + bytes(500))):
        assert board.is_silent(frame.ljust(60, b"\0"), fcs=b"\x12\x34\x56\x78")
    assert board.questions == 0


@pytest.mark.parametrize(
    "frame",
    [
        damaged(udp(DISCOVER), 24),  # the IP header's sum
        damaged(udp(DISCOVER), 27),  # an address under it
        udp(DISCOVER, flags="MF"),
        udp(DISCOVER, frag=2),
        udp(DISCOVER, length=100),
        udp(DISCOVER, port=PORT + 1),
        udp(DISCOVER, mac="02:00:00:00:00:02"),
        udp(DISCOVER, target="192.168.1.51"),
        udp(b""),
        udp(b"SL"),
        udp(DISCOVER, target="192.168.1.255"),
        arp_request("192.168.1.51"),
    ],
)
def test_wrong_packets_are_forgotten(board: Board, frame: bytes) -> None:
    assert board.is_silent(frame)
    assert board.tell(Kind.DISCOVER).kind is Kind.HERE


def test_runts_and_giants_are_forgotten(board: Board) -> None:
    for size in (1, 3, 4):
        # LiteEth's check of the sequence takes it for the beginning of the next frame
        assert not board.send(udp(DISCOVER)[:size], fcs=b"")
        assert not board.send(arp_request())
        assert board.is_silent()
    for size in (5, 14, 20, 42, 59):
        assert board.is_silent(udp(DISCOVER)[:size], fcs=b"")
        assert board.is_silent(udp(DISCOVER)[:size], fcs=struct.pack("<I", 0))
    assert board.is_silent(udp(DISCOVER + bytes(9000)))
    assert board.tell(Kind.DISCOVER).kind is Kind.HERE


def test_frames_without_a_pause_between_them_are_all_answered(board: Board) -> None:
    board.tell(Kind.DISCOVER)
    datagrams = [Datagram(kind=Kind.DISCOVER, number=number) for number in range(8)]
    frames = [udp(datagram.pack() + bytes(8)) for datagram in datagrams[:2]]
    assert board.is_silent(*frames)  # a DISCOVER has no body
    for _ in range(20):
        for frame in (udp(datagram.pack()) for datagram in datagrams):
            for answer in board.endpoint.feed(frame):
                assert datagram_of(answer).kind is Kind.HERE


def test_each_host_gets_its_own_answer(board: Board) -> None:
    """Three hosts ask in turns: an answer has the MAC address of the one that asked."""
    here = Station.of(BOARD_MAC, BOARD_IP)
    hosts = [Station.of(f"02:00:00:00:01:{k:02x}", f"192.168.1.{100 + k}") for k in range(3)]
    for turn in range(9):
        host = hosts[turn % 3]
        question = Datagram(kind=Kind.DISCOVER, number=turn).pack()
        came = board.endpoint.feed(pack_frame(host, here, HOST_PORT, PORT, question))
        answers = list[bytes]()
        for _ in range(PATIENCE):
            for frame in came:
                replies = [answer_arp(frame, each) for each in hosts]
                answers += [] if any(replies) else [frame]
                for reply in filter(None, replies):
                    answers += board.endpoint.feed(reply)
            if answers:
                break
            came = board.endpoint.feed(b"")
        (answer,) = answers
        assert answer[:6] == host.mac
        taken = unpack_frame(answer, host)
        assert taken is not None and Datagram.unpack(taken[2]).number == turn


def test_linux_and_the_host_find_the_board(library: Path) -> None:
    """Linux's own network stack, in a network namespace, where nobody else hears of it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare on this machine")
    configuration = json.dumps(CONFIGURATION.to_dict())
    script = [sys.executable, tap_network.__file__, str(library), configuration]
    namespace = [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--net", "--map-root-user"]
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [*namespace, *script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **paths},
        check=False,
    )
    if done.returncode == tap_network.NOT_PERMITTED or "unshare failed" in done.stderr:
        pytest.skip(f"no network namespace with a TAP interface here: {done.stdout or done.stderr}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"pinged {BOARD_IP}",
        f"found ['{BOARD_IP}']",
        "opened True",
    ]


class EchoCore(wiring.Component):
    """Has the ports of a core, and sends back what it receives."""

    i: stream.Interface
    o: stream.Interface
    running: Signal
    events: data.View

    def __init__(self) -> None:
        bytes_ = stream.Signature(8)
        super().__init__(
            {"i": In(bytes_), "o": Out(bytes_), "running": Out(1), "events": Out(EVENTS)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        return m


def dhcp_of(frame: bytes) -> tuple[Any, dict[str, Any]]:
    """The message of a client, and its options."""
    packet = Ether(frame)
    assert (packet[UDP].sport, packet[UDP].dport) == (68, 67)
    options = dict(option for option in packet[DHCP].options if isinstance(option, tuple))
    return packet, options


def dhcp_answer(kind: str, packet: Any, address: str) -> bytes:
    message = BOOTP(
        op=2,
        xid=packet[BOOTP].xid,
        yiaddr=address,
        siaddr=HOST_IP,
        chaddr=packet[BOOTP].chaddr,
    )
    options = [("message-type", kind), ("server_id", HOST_IP), ("lease_time", 600), "end"]
    headers = ether() / IP(src=HOST_IP, dst=address) / UDP(sport=67, dport=68)
    return bytes(headers / message / DHCP(options=options))


def test_an_address_by_dhcp() -> None:
    core = EthernetBoard(core=EchoCore(), configuration=CONFIGURATION, ip=None, mac=BOARD_MAC)
    library = build_library(core, name="dhcp", line=Line("ethernet"), others=core.verilog)
    board = Board(library)
    (discover,) = board.send(b"")
    packet, options = dhcp_of(discover)
    assert options["message-type"] == 1 and packet.dst == EVERYBODY
    assert packet[BOOTP].chaddr[:6] == bytes.fromhex(BOARD_MAC.replace(":", ""))
    own = format_ip(link_local_ip(parse_mac(BOARD_MAC)))
    (answer,) = board.send(arp_request(own))
    assert Ether(answer)[ARP].psrc == own
    (request,) = board.send(dhcp_answer("offer", packet, "192.168.1.77"))
    packet, options = dhcp_of(request)
    assert options["message-type"] == 3
    assert (options["requested_addr"], options["server_id"]) == ("192.168.1.77", HOST_IP)
    assert not board.send(arp_request("192.168.1.77"))
    assert not board.send(dhcp_answer("ack", packet, "192.168.1.77"))
    (answer,) = board.send(arp_request("192.168.1.77"))
    assert Ether(answer)[ARP].psrc == "192.168.1.77"
    assert not board.send(arp_request(own))
    board.endpoint.close()
