"""UDP over Ethernet: datagrams that carry the link's bytes, one host at a time."""
