"""Ethernet of 100 Mbit/s: a module with a PHY chip on RMII, such as LAN8720's; datagrams of UDP."""

from collections.abc import Mapping
from typing import Any

from ...config import Configuration
from ..ethernet.addresses import OPTIONS
from ..ethernet.datagrams import SLOT_BYTES, SLOTS, block_rams
from ..ethernet.liteeth import BLOCK_RAMS, CORE_HZ, RMII
from ..wire import INPUT, OUTPUT, Domain, Pin, Wire


def _phy(configuration: Configuration, **options: Any) -> Any:
    """Makes the PHY; options are ``ip``, ``mac``, ``reset_milliseconds`` and ``slots``."""
    from ..ethernet.wire_phy import ethernet_phy

    return ethernet_phy(configuration, RMII, **options)


def _block_rams(options: Mapping[str, Any]) -> int:
    return BLOCK_RAMS + block_rams(options.get("slots", SLOTS), SLOT_BYTES)


WIRE = Wire(
    name="rmii",
    device="udp",
    pins=(
        Pin(name="ref_clk", direction=INPUT),
        Pin(name="crs_dv", direction=INPUT),
        Pin(name="rx_data", direction=INPUT, width=2),
        Pin(name="tx_en", direction=OUTPUT),
        Pin(name="tx_data", direction=OUTPUT, width=2),
        Pin(name="rst_n", direction=OUTPUT),
    ),
    phy=_phy,
    submodule="ethernet",
    domains=(Domain(name="ethernet", hertz=CORE_HZ, pin="ref_clk"),),
    options=OPTIONS,
    block_rams_or_luts=BLOCK_RAMS,
    block_rams=_block_rams,
)
"""The module gives the clock of 50 MHz, which is LiteEth's as well: the FPGA needs no PLL for it.

``rst_n`` is for modules that have the pin; others may leave it open.
"""
