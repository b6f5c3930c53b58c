"""Records of wires to the host: each module here has one as ``WIRE``.

Modules are imported without Amaranth; gateware is imported when a PHY is made.
"""
