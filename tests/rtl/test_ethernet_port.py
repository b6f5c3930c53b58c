"""The datagram port: parameters that are refused, and that its parts keep the PHY's interface."""

from typing import Any

import pytest
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import LONGEST_SEND, PRESENCE_BYTES, SLOT_BYTES, SLOTS
from slipstick_rtl.phy.ethernet.ethernet_port import EthernetPort
from slipstick_rtl.phy.ethernet.packet_words import RECEIVED_WORD, SENT_WORD
from slipstick_rtl.phy.interface import STREAMS
from slipstick_sim.toolchain import convert_to_rtlil

IDENTITY = Identity("0123456789abcdef", 3, 4, 512).pack()
GOOD: dict[str, Any] = {"identity": IDENTITY, "lease_cycles": 1_000_000_000}


def test_the_port_elaborates_and_is_a_phy() -> None:
    port = EthernetPort(**GOOD)
    assert "module \\ethernet_port" in convert_to_rtlil(port, "ethernet_port")
    members = dict(port.signature.members.items())
    for name, member in STREAMS.members.items():
        assert members[name] == member


def test_memories_are_two_block_rams_of_an_ecp5() -> None:
    """18 Kib each, 36 bits wide: more would cost a board's weights."""
    text = convert_to_rtlil(EthernetPort(**GOOD), "ethernet_port")
    assert f"memory width 35 size {SLOTS * SLOT_BYTES // 4} " in text
    assert f"memory width 32 size {2 * LONGEST_SEND // 4} " in text
    assert text.count("  memory ") == 2


def test_words_are_those_that_udp_has() -> None:
    assert (RECEIVED_WORD.size, SENT_WORD.size, PRESENCE_BYTES % 4) == (34, 33, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"identity": IDENTITY[1:]}, "identity must have 12 bytes, not 11"),
        ({"lease_cycles": 1}, "lease_cycles must be at least 2, not 1"),
        ({"quiet_cycles": 0}, "quiet_cycles must be at least 1, not 0"),
        ({"slots": 32}, "slots must be a power of two within 2..16, not 32"),
        ({"slots": 3}, "slots must be a power of two within 2..16, not 3"),
        ({"slot_bytes": 128}, "slot_bytes must be 256, 512 or 1024, not 128"),
    ],
)
def test_parameters_that_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EthernetPort(**{**GOOD, **wrong})
