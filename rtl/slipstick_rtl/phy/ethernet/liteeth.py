"""LiteEth's UDP core as one Verilog file, made when a design is.

The modules of LiteEth are put together here, not by its ``liteeth_gen``. That one, of 2024.12,
makes a core that cannot serve: a raw port receives only what is for the port that is *sent to*, the
DHCP client has the MAC address 0, and frames whose check sequence is wrong are answered. The way of
the frames from the MAC to the IP stack goes through ports of the Verilog, so that ``FrameFilter``
can sit there.
"""

from dataclasses import dataclass
from functools import cache

from ...primitives.migen_cores import core_verilog, require_core

CORE_HZ = 50_000_000
"""Frequency of LiteEth's clock ``sys``: 32 bits at a time are 1.6 Gbit/s. At 100 MHz, an ECP5 of
the slowest speed is too slow for the sum of the IP header."""

RGMII, RMII, BARE = "rgmii", "rmii", "bare"
"""Media: pins of a PHY chip, or a byte per cycle, for simulations."""

NAME = "liteeth_core"
BITS = 32
DHCP_PORT = 68
BLOCK_RAMS = 2
"""Block RAMs of an Ethernet PHY: received frames, and packets to be sent; ``EthernetPort`` has its
slots in others."""
_CDC_DEPTH = 32  # in look-up tables: an 85F or 45F has no block RAM to spare
INPUT, OUTPUT = "i", "o"
_PINS = {
    RGMII: (
        ("tx_ctl", 1, OUTPUT),
        ("tx_data", 4, OUTPUT),
        ("rx_ctl", 1, INPUT),
        ("rx_data", 4, INPUT),
    ),
    RMII: (
        ("tx_en", 1, OUTPUT),
        ("tx_data", 2, OUTPUT),
        ("crs_dv", 1, INPUT),
        ("rx_data", 2, INPUT),
    ),
    BARE: (
        ("tx_valid", 1, OUTPUT),
        ("tx_data", 8, OUTPUT),
        ("tx_last", 1, OUTPUT),
        ("rx_valid", 1, INPUT),
        ("rx_data", 8, INPUT),
        ("rx_last", 1, INPUT),
    ),
}
"""Names, widths and directions, as seen from here."""
_CLOCKS = {RGMII: (("tx", OUTPUT), ("rx", INPUT)), RMII: (("ref_clk", INPUT),), BARE: ()}


@dataclass(frozen=True, kw_only=True)
class LiteEthSettings:
    """Holds the settings that a core is generated from.

    Parameters
    ----------
    medium : str
        ``RGMII``, ``RMII`` or ``BARE``.
    dhcp : bool
        With LiteEth's DHCP client.
    device : str
        The FPGA, for its I/O cells.
    tx_delay, rx_delay : float
        Of RGMII's clock out and data in, in seconds, where the PHY chip does not delay them.
    cdc_depth : int
        Words of 32 bits between the clocks of the wire and the core.
    """

    medium: str
    dhcp: bool = False
    device: str = "LFE5U-25F-6BG256C"
    tx_delay: float = 0.0
    rx_delay: float = 0.0
    cdc_depth: int = _CDC_DEPTH

    def __post_init__(self) -> None:
        if self.medium not in _PINS:
            raise ValueError(f"medium must be one of {', '.join(_PINS)}, not {self.medium!r}")
        for name in ("tx_delay", "rx_delay"):
            if not 0 <= getattr(self, name) < 128 * 25e-12:
                raise ValueError(f"{name} must be within 0 and 3.1 ns, not {getattr(self, name)}")

    @property
    def pins(self) -> tuple[tuple[str, int, str], ...]:
        """Names, widths and directions of the medium's pins, beside its clocks."""
        return _PINS[self.medium]

    @property
    def clocks(self) -> tuple[tuple[str, str], ...]:
        """LiteEth's names of the medium's clocks, and their directions."""
        return _CLOCKS[self.medium]


def check_liteeth() -> None:
    """Raises ImportError, with how to install them, if LiteEth, LiteX or Migen is missing."""
    modules = "liteeth.core", "litex.build.lattice.platform"
    require_core("liteeth", modules, purpose="Ethernet", extra="ethernet")


@cache
def liteeth_verilog(settings: LiteEthSettings) -> str:
    """Returns the Verilog of a core, whose top is ``NAME``.

    Raises
    ------
    ImportError
        If LiteEth is not installed; the message says how to install it.
    """
    check_liteeth()

    def make() -> str:
        from .liteeth_core import convert

        return convert(settings, NAME)

    return core_verilog(make)
