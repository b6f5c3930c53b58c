"""Numbers of the high-speed device that both ends know: the gateware and the host."""

INTERFACE_KIND = (0xFF, 0x53, 0x01)
"""Class (vendor-specific), subclass and protocol of the interface; a host finds it by them."""

BULK_ENDPOINT = 1
"""Both ways: the bytes."""

BULK_PACKET_BYTES = 512
"""Largest packet; high speed allows no other in bulk (USB 2.0, 5.8.3)."""
