"""DRAM chips that boards have: sizes and times, as their data sheets give them.

Needs neither Amaranth nor LiteDRAM: configurations, compiler and host read it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

MOST_CAS_HZ = 100_000_000
"""Up to this clock a CAS latency of 2 is enough for all chips here."""


@dataclass(frozen=True, kw_only=True)
class DramChip:
    """Chips of one kind side by side, as one of their summed width.

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
    banks: int
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
    def bank_bits(self) -> int:
        """Counts the chips' bank pins."""
        return self.banks.bit_length() - 1

    @property
    def word_address_bits(self) -> int:
        """Counts the bits of the address of a word of ``data_bits``."""
        return (self.bytes // (self.data_bits // 8)).bit_length() - 1

    @property
    def transfers_per_clock(self) -> int:
        """Words of ``data_bits`` in a cycle of the chips' clock."""
        return 1

    def peak_bytes_per_second(self, chip_hertz: int) -> int:
        """Computes the peak rate of the data pins; pauses for refreshes and new rows reduce it."""
        return self.data_bits // 8 * self.transfers_per_clock * chip_hertz

    def cycles(self, nanoseconds: float, hertz: int) -> int:
        """Clock cycles that are no shorter than a time."""
        return math.ceil(nanoseconds * hertz * 1e-9 - 1e-9)


@dataclass(frozen=True, kw_only=True)
class SdrChip(DramChip):
    """SDR SDRAM."""

    banks: int = 4

    @property
    def address_bits(self) -> int:
        """Counts the chips' address pins."""
        return max(self.rows, self.columns << 1, 1 << 11).bit_length() - 1

    def cas_latency(self, hertz: int) -> int:
        """Cycles from READ to data: 2 or 3."""
        return 2 if hertz <= MOST_CAS_HZ else 3


@dataclass(frozen=True, kw_only=True)
class Ddr3Chip(DramChip):
    """DDR3 SDRAM. Bursts are of eight words.

    JEDEC 79-3F gives some times as the longer of cycles and nanoseconds: those have a least number
    of cycles in ``LEAST_CYCLES``.

    Parameters
    ----------
    t_wtr, t_rtp, t_faw, t_zqcs : float
        Nanoseconds. From the last data of a WRITE to READ; from READ to PRECHARGE; in which there
        are at most four ACTIVEs; a short calibration of the drivers.
    cas_latency, cas_write_latency : int
        Cycles of the chips' clock, up to 400 MHz.
    """

    LEAST_CYCLES: ClassVar[Mapping[str, int]] = {
        "t_rrd": 4,
        "t_wtr": 4,
        "t_rtp": 4,
        "t_zqcs": 64,
    }
    BURST: ClassVar[int] = 8
    """Words of a READ or WRITE."""
    REFRESHES: ClassVar[int] = 8192
    """REFRESHes that refresh all rows, of which each does some."""

    banks: int = 8
    t_wtr: float = 7.5
    t_rtp: float = 7.5
    t_faw: float
    t_zqcs: float = 80.0
    cas_latency: int = 6
    cas_write_latency: int = 5

    @property
    def address_bits(self) -> int:
        """Counts the chips' address pins."""
        return max(self.rows, 1 << 13).bit_length() - 1

    @property
    def column_bits(self) -> int:
        """Counts the bits of a column's address."""
        return self.columns.bit_length() - 1

    @property
    def groups(self) -> int:
        """Bytes of the data pins: each has a strobe of its own."""
        return self.data_bits // 8

    @property
    def transfers_per_clock(self) -> int:
        """Both edges of the clock move a word."""
        return 2

    @property
    def refresh_ns(self) -> float:
        """Time from one REFRESH to the next, on average."""
        return self.refresh_ms * 1e6 / self.REFRESHES

    def chip_cycles(self, time: str, chip_hertz: int) -> int:
        """Cycles of the chips' clock that a time takes, by its name: ``t_rcd`` and so on."""
        return max(self.LEAST_CYCLES.get(time, 1), self.cycles(getattr(self, time), chip_hertz))


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

MT41K256M16 = Ddr3Chip(
    name="MT41K256M16",
    data_bits=16,
    rows=32768,
    columns=1024,
    t_rcd=13.91,
    t_rp=13.91,
    t_ras=35.0,
    t_rc=48.75,
    t_rfc=260.0,
    t_rrd=7.5,
    t_wr=15.0,
    t_faw=40.0,
)
"""Micron MT41K256M16, 512 MB: the slower times of the grades -107 and -125."""

CHIPS: dict[str, DramChip] = {chip.name: chip for chip in (MT48LC16M16, M12L16161A, MT41K256M16)}
"""By name."""

DDR3_HZ = 75_000_000
"""Clock of the DDR3 controller, if the configuration names no other: the chip's clock is twice as
fast, whatever the core's is."""
DDR3_RANGE_HZ = (40_000_000, 100_000_000)
"""Clocks of that controller that are possible."""


def find_chip(name: str) -> DramChip:
    """Returns the chip of a name.

    Raises
    ------
    ValueError
        If there is no such chip.
    """
    if name not in CHIPS:
        raise ValueError(f"dram must be one of {', '.join(CHIPS)}, or empty, not {name!r}")
    return CHIPS[name]
