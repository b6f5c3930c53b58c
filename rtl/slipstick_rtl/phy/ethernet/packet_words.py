"""Words of packets, as they pass between the datagram port and the UDP layer below it.

A packet is its peer's IP address in one word, most significant byte first in number; the peer's UDP
port and the payload's length in bytes (``PORT_AND_LENGTH``) in the next; and then the payload, the
first byte in the lowest bits. ``last`` marks the last word.
"""

from amaranth.lib.data import StructLayout

SENT_WORD = StructLayout({"data": 32, "last": 1})

RECEIVED_WORD = StructLayout({"data": 32, "last": 1, "error": 1})
"""``error`` counts in the last word: the packet is damaged."""

PORT_AND_LENGTH = StructLayout({"port": 16, "length": 16})

HEAD = StructLayout({"address": 32, "port": 16, "number": 16, "lease": 16})
"""Whom a datagram comes from or goes to, with what its header says."""

ADDRESS_WORDS = 2
"""Words of a packet before its payload."""
HEAD_WORDS = ADDRESS_WORDS + 2
"""Words of a packet before what follows the datagram's header."""
