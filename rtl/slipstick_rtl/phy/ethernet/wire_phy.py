"""The PHYs of the Ethernet wires, from a configuration and options."""

from typing import Any

from ...config import Configuration
from ...link.identity import Identity
from .addresses import default_mac, parse_ip, parse_mac
from .datagrams import GIGABIT_SLOTS, LEASE_SECONDS, SLOTS
from .liteeth import RGMII, LiteEthSettings

RESET_MILLISECONDS = 20
"""Time in reset of the PHY chip and the core: chips ask for 10 ms."""


def ethernet_phy(
    configuration: Configuration,
    medium: str,
    *,
    ip: str | None = None,
    mac: str | None = None,
    reset_milliseconds: int = RESET_MILLISECONDS,
    lease_cycles: int | None = None,
    slots: int | None = None,
    **options: Any,
) -> Any:
    """Makes the PHY of a medium.

    Parameters
    ----------
    configuration : Configuration
    medium : str
        As of ``LiteEthSettings``.
    ip : str, optional
        The board's address; without it, it asks by DHCP, and has a link-local one until then.
    mac : str, optional
        By default one from the fingerprint (``default_mac``).
    reset_milliseconds : int
    lease_cycles : int, optional
        By default ``LEASE_SECONDS``.
    slots : int, optional
        For datagrams from the host; by default ``GIGABIT_SLOTS`` or ``SLOTS``.
    **options
        Of ``LiteEthSettings``.

    Raises
    ------
    ImportError
        If LiteEth is not installed.
    ValueError
        If an address is none.
    """
    from .ethernet_phy import EthernetPhy
    from .ethernet_port import EthernetPort
    from .liteeth_port import LiteEthPort

    address = None if ip is None else parse_ip(ip)
    station = default_mac(configuration.fingerprint) if mac is None else parse_mac(mac)
    liteeth = LiteEthPort(
        settings=LiteEthSettings(medium=medium, dhcp=address is None, **options),
        mac=station,
        ip=address,
        reset_cycles=max(1, configuration.clock_hz * reset_milliseconds // 1000),
    )
    if slots is None:
        # a faster wire needs more bytes on their way
        slots = GIGABIT_SLOTS if medium == RGMII else SLOTS
    port = EthernetPort(
        identity=Identity.of(configuration).pack(),
        lease_cycles=lease_cycles or configuration.clock_hz * LEASE_SECONDS,
        slots=slots,
    )
    return EthernetPhy(liteeth=liteeth, port=port)
