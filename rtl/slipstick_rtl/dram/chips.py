"""DRAM chips that boards have: sizes and times, as their data sheets give them.

Needs neither Amaranth nor LiteDRAM: configurations, compiler and host read it.
"""

import math
from dataclasses import dataclass

MOST_CAS_HZ = 100_000_000
"""Up to this clock a CAS latency of 2 is enough for all chips here."""


@dataclass(frozen=True, kw_only=True)
class SdrChip:
    """Chips of SDR SDRAM side by side, as one of their summed width.

    Parameters
    ----------
    name : str
        LiteDRAM's class of it in ``litedram.modules``.
    data_bits : int
        Of all chips together.
    banks, rows, columns : int
        Of each; powers of two.
    t_rcd, t_rp, t_ras, t_rc, t_rfc, t_rrd, t_wr : float
        Nanoseconds. From ACTIVE to READ or WRITE; from PRECHARGE to ACTIVE; from ACTIVE to
        PRECHARGE; from ACTIVE to ACTIVE of the same bank; from REFRESH to anything; from ACTIVE to
        ACTIVE of another bank; from the last data of a WRITE to PRECHARGE.
    refresh_ms : float
        All rows must be refreshed within.
    """

    name: str
    data_bits: int
    banks: int = 4
    rows: int
    columns: int
    t_rcd: float
    t_rp: float
    t_ras: float
    t_rc: float
    t_rfc: float
    t_rrd: float
    t_wr: float
    refresh_ms: float = 64.0

    def __post_init__(self) -> None:
        for name in ("data_bits", "banks", "rows", "columns"):
            value = getattr(self, name)
            if value < 2 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least 2, not {value}")

    @property
    def bytes(self) -> int:
        """All that the chips hold."""
        return self.data_bits // 8 * self.banks * self.rows * self.columns

    @property
    def address_bits(self) -> int:
        """Of the chips' address pins."""
        return max(self.rows, self.columns << 1, 1 << 11).bit_length() - 1

    @property
    def bank_bits(self) -> int:
        """Of the chips' bank pins."""
        return self.banks.bit_length() - 1

    @property
    def word_address_bits(self) -> int:
        """Of the address of a word of ``data_bits``."""
        return (self.bytes // (self.data_bits // 8)).bit_length() - 1

    def cycles(self, nanoseconds: float, hertz: int) -> int:
        """Clock cycles that are no shorter than a time."""
        return math.ceil(nanoseconds * hertz * 1e-9 - 1e-9)

    def cas_latency(self, hertz: int) -> int:
        """Cycles from READ to data: 2 or 3."""
        return 2 if hertz <= MOST_CAS_HZ else 3


MT48LC16M16 = SdrChip(
    name="MT48LC16M16",
    data_bits=16,
    rows=8192,
    columns=512,
    t_rcd=20.0,
    t_rp=20.0,
    t_ras=44.0,
    t_rc=66.0,
    t_rfc=66.0,
    t_rrd=15.0,
    t_wr=15.0,
)
"""Micron MT48LC16M16A2 of the grade -75, 32 MB; ISSI's IS42S16160 of the grade -7 is alike."""

M12L16161A = SdrChip(
    name="M12L16161A",
    data_bits=32,
    banks=2,
    rows=2048,
    columns=256,
    t_rcd=18.0,
    t_rp=18.0,
    t_ras=42.0,
    t_rc=60.0,
    t_rfc=60.0,
    t_rrd=12.0,
    t_wr=15.0,
    refresh_ms=32.0,
)
"""Two ESMT M12L16161A-5T or two Winbond W9816G6JH-6 side by side, 4 MB: the slower one's times."""

CHIPS = {chip.name: chip for chip in (MT48LC16M16, M12L16161A)}
"""By name."""


def find_chip(name: str) -> SdrChip:
    """Returns the chip of a name.

    Raises
    ------
    ValueError
        If there is no such chip.
    """
    if name not in CHIPS:
        raise ValueError(f"dram must be one of {', '.join(CHIPS)}, or empty, not {name!r}")
    return CHIPS[name]
