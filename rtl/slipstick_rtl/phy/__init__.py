"""Wires to the host: a record each in ``wires``, gateware beside it, PHY ports in ``interface``."""
