"""The check of Ethernet frames, word by word as they come."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .datagrams import PORT
from .liteeth import DHCP_PORT

FRAME_WORD = data.StructLayout({"data": 32, "last_be": 4, "last": 1})
"""Four bytes of a frame without preamble and check sequence, the first in bits 0 to 7. ``last_be``
is zero but in the last word, where one bit marks the last byte."""

INCOMING_WORD = data.StructLayout({**FRAME_WORD.members, "error": 1})

_LAST_INDEX = 14
"""Index of the last word of the shortest frame, 60 bytes."""

_ETHERNET_BYTES, _IP_BYTES, _UDP_BYTES = 14, 20, 8
_IP, _ARP = 0x0800, 0x0806
_VERSION_AND_LENGTH = 0x45
_DONT_FRAGMENT = 0x4000
_ICMP, _UDP = 1, 17
_CLIENT_INDEX = 17  # the MAC address in DHCP's answer begins in the upper half of this word


class FrameCheck(wiring.Component):
    """Tells with the last word of a frame whether it is right, and for this board.

    Parameters
    ----------
    dhcp : bool
        Answers to a DHCP client are right as well.

    Members
    -------
    word : In
    valid : In
        The word counts.
    mac, ip : In
        The board's own.
    good : Out
        In the cycle of the last word.
    """

    word: data.View
    valid: Signal
    mac: Signal
    ip: Signal
    good: Signal

    def __init__(self, *, dhcp: bool = False) -> None:
        self._dhcp = dhcp
        super().__init__(
            {
                "word": In(INCOMING_WORD),
                "valid": In(1),
                "mac": In(48),
                "ip": In(32),
                "good": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.word
        index = Signal(9)
        refused, refused_now = Signal(), Signal()
        total_length = Signal(16)
        self._check_words(m, index, refused_now, total_length)
        long_enough = (index > _LAST_INDEX) | (index == _LAST_INDEX) & word.last_be[3]
        # last_be is one-hot
        tail = Cat(word.last_be[1] | word.last_be[3], word.last_be[2] | word.last_be[3])
        index_of_last = Cat(tail, index)
        # total_length is 0 if the frame is none of IP
        whole = total_length + _ETHERNET_BYTES <= index_of_last + 1
        m.d.comb += self.good.eq(~refused & ~refused_now & long_enough & whole)
        with m.If(self.valid):
            with m.If(word.last):
                m.d.sync += [index.eq(0), refused.eq(0), total_length.eq(0)]
            with m.Else():
                m.d.sync += [
                    index.eq(index + ~index.all()),
                    # frames that are too long would begin anew
                    refused.eq(refused | refused_now | index.all()),
                ]
        return m

    def _check_words(
        self, m: Module, index: Signal, refused_now: Signal, total_length: Signal
    ) -> None:
        bytes_of = self.word.data
        low, high = bytes_of[:16], bytes_of[16:]
        station, broadcast, is_ip, own_ip = (Signal() for _ in range(4))
        is_udp, is_icmp, is_dhcp = Signal(), Signal(), Signal()
        target_high = Signal(16)
        mac, ip = _in_order(self.mac), _in_order(self.ip)
        cases: dict[int, list[tuple[Signal, Value]]] = {
            0: [(station, bytes_of == mac[:32]), (broadcast, bytes_of.all())],
            1: [(station, station & (low == mac[32:])), (broadcast, broadcast & low.all())],
            3: [(is_ip, low == _swapped(_IP))],
            5: [
                (is_udp, is_ip & (bytes_of[24:] == _UDP)),
                (is_icmp, is_ip & (bytes_of[24:] == _ICMP)),
            ],
            7: [(target_high, high)],
            8: [(own_ip, Cat(target_high, low) == ip)],
            9: [(is_dhcp, is_udp & (low == _swapped(DHCP_PORT)))],
        }
        no_fragment = (low & ~Const(_swapped(_DONT_FRAGMENT), 16)) == 0
        udp_length = Cat(high[8:], high[:8])
        udp_right = (udp_length > _UDP_BYTES) & (udp_length + _IP_BYTES == total_length)
        port = low == _swapped(PORT)
        for_me = own_ip | broadcast
        if self._dhcp:
            client = low == _swapped(DHCP_PORT)
            port, for_me = port | client, for_me | client
        right: dict[int, Value] = {
            1: station & (low == mac[32:]) | broadcast & low.all(),
            3: (low == _swapped(_ARP))
            | (low == _swapped(_IP)) & (bytes_of[16:24] == _VERSION_AND_LENGTH),
            5: ~is_ip | no_fragment & ((bytes_of[24:] == _UDP) | (bytes_of[24:] == _ICMP)),
            9: ~is_ip | is_icmp & own_ip | is_udp & for_me & udp_right & port,
        }
        if self._dhcp:
            right[_CLIENT_INDEX] = ~is_dhcp | (high == mac[:16])
            right[_CLIENT_INDEX + 1] = ~is_dhcp | (bytes_of == mac[16:])
        with m.Switch(index):
            for place in sorted(cases.keys() | right.keys() | {4}):
                with m.Case(place):
                    if place in right:
                        m.d.comb += refused_now.eq(~right[place])
                    with m.If(self.valid):
                        m.d.sync += [state.eq(value) for state, value in cases.get(place, [])]
                        if place == 4:
                            m.d.sync += total_length.eq(is_ip.replicate(16) & Cat(low[8:], low[:8]))
        with m.If(self.word.error):
            m.d.comb += refused_now.eq(1)


def _swapped(number: int) -> int:
    """The two bytes of a number in the order of the wire, the first in bits 0 to 7."""
    return int.from_bytes(number.to_bytes(2, "big"), "little")


def _in_order(address: Signal) -> Value:
    """The bytes of an address in the order of the wire, the first in bits 0 to 7."""
    return Cat(address.word_select(byte, 8) for byte in reversed(range(len(address) // 8)))
