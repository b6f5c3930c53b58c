"""Ethernet of 1 Gbit/s: a PHY chip on RGMII, datagrams of UDP."""

from collections.abc import Mapping
from typing import Any

from ...config import Configuration
from ..ethernet.addresses import OPTIONS
from ..ethernet.datagrams import GIGABIT_SLOTS, SLOT_BYTES, block_rams
from ..ethernet.liteeth import BLOCK_RAMS, CORE_HZ, RGMII
from ..wire import INPUT, OUTPUT, Domain, Pin, Wire


def _phy(configuration: Configuration, **options: Any) -> Any:
    """Makes the PHY.

    Options are ``ip`` and ``mac``, ``reset_milliseconds``, ``slots``, and ``tx_delay`` and
    ``rx_delay`` in seconds, where neither the chip nor the board delays clock or data.
    """
    from ..ethernet.wire_phy import ethernet_phy

    return ethernet_phy(configuration, RGMII, **options)


def _ecp5_clocks(oscillator_hz: int) -> Any:
    from ...fpga.ecp5.domain_clock import Ecp5DomainClock

    return Ecp5DomainClock(oscillator_hz=oscillator_hz, domain="ethernet", hertz=CORE_HZ)


def _block_rams(options: Mapping[str, Any]) -> int:
    return BLOCK_RAMS + block_rams(options.get("slots", GIGABIT_SLOTS), SLOT_BYTES)


WIRE = Wire(
    name="rgmii",
    device="udp",
    pins=(
        Pin(name="rx_clk", direction=INPUT),
        Pin(name="rx_ctl", direction=INPUT),
        Pin(name="rx_data", direction=INPUT, width=4),
        Pin(name="tx_clk", direction=OUTPUT),
        Pin(name="tx_ctl", direction=OUTPUT),
        Pin(name="tx_data", direction=OUTPUT, width=4),
        Pin(name="rst_n", direction=OUTPUT),
    ),
    phy=_phy,
    submodule="ethernet",
    domains=(
        Domain(name="ethernet", hertz=CORE_HZ),
        Domain(name="eth_rx", hertz=125_000_000, pin="rx_clk"),
    ),
    clocks={"ECP5": _ecp5_clocks},
    options=OPTIONS,
    block_rams_or_luts=BLOCK_RAMS,
    block_rams=_block_rams,
)
"""The network must be one of 1 Gbit/s: LiteEth's part for RGMII knows no slower one.

The chip's registers stay as its pins set them: MDC and MDIO are not connected. What is sent goes
with the clock of what comes in, so LiteEth has three clocks in all; the paths between them and
``sync`` are queues with Gray-coded pointers, and resets.
"""
