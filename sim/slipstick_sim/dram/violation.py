"""The rules of SDR SDRAM and of DDR3. Needs no Amaranth."""

from enum import IntEnum
from typing import Self


class Rules(IntEnum):
    """Violations of a chip's data sheet, each with its rule."""

    rule: str

    def __new__(cls, number: int, rule: str) -> Self:
        """A member with its rule."""
        member = int.__new__(cls, number)
        member._value_, member.rule = number, rule
        return member


_DDR3_RULES = 100
"""Number from which on a simulation's numbers are those of DDR3."""


class Violation(Rules):
    """Violations of the rules of SDR SDRAM."""

    NONE = 0, "all rules were kept"
    NOT_INITIALISED = 1, "PRECHARGE of all banks, two REFRESHes and the mode come before use"
    MODE = 2, "accesses must be single, with the CAS latency that is expected"
    OPEN = 3, "a bank must be closed before ACTIVE, and all before REFRESH and the mode"
    CLOSED = 4, "a bank must be open for READ and WRITE"
    T_RCD = 5, "ACTIVE to READ or WRITE"
    T_RP = 6, "PRECHARGE to ACTIVE or REFRESH"
    T_RAS = 7, "ACTIVE to PRECHARGE"
    T_RC = 8, "ACTIVE to ACTIVE of the same bank"
    T_RFC = 9, "REFRESH to any command"
    T_RRD = 10, "ACTIVE to ACTIVE of another bank"
    T_WR = 11, "the last data of a WRITE to PRECHARGE"
    REFRESH_LATE = 12, "at most eight REFRESHes may be late"
    CONTENTION = 13, "only one may drive the data pins"
    CKE = 14, "commands need the clock"


class Ddr3Violation(Rules):
    """Violations of the rules of DDR3, by JEDEC 79-3F, and of those of the model."""

    NONE = 0, "all rules were kept"
    NOT_INITIALISED = 1, "mode registers 2, 3, 1, 0 and the long calibration come before use"
    MODE = 2, "a mode register has another value than the model expects"
    OPEN = 3, "a bank must be closed before ACTIVE, and all before REFRESH and the like"
    CLOSED = 4, "a bank must be open for READ and WRITE"
    T_RCD = 5, "ACTIVE to READ or WRITE"
    T_RP = 6, "PRECHARGE to ACTIVE, REFRESH and the like"
    T_RAS = 7, "ACTIVE to PRECHARGE"
    T_RC = 8, "ACTIVE to ACTIVE of the same bank"
    T_RFC = 9, "REFRESH to any command"
    T_RRD = 10, "ACTIVE to ACTIVE of another bank"
    T_FAW = 11, "at most four ACTIVEs in a time"
    T_CCD = 12, "READ to READ and WRITE to WRITE"
    T_RTP = 13, "READ to PRECHARGE"
    T_WR = 14, "the last data of a WRITE to PRECHARGE"
    T_WTR = 15, "the last data of a WRITE to READ"
    T_RTW = 16, "READ to WRITE: only one may drive the data pins"
    T_MOD = 17, "a mode register to the next one, or to any other command"
    T_ZQ = 18, "a calibration to any command"
    T_XPR = 19, "CKE to the first command"
    T_DLLK = 20, "the reset of the chip's DLL to READ or WRITE"
    REFRESH_LATE = 21, "at most eight REFRESHes may be late"
    CKE = 22, "commands need RESET and CKE high, and CKE stays high"
    PHASE = 23, "READ and WRITE come in the phase of their latency, with the PHY's enable"
    AUTO_PRECHARGE = 24, "the model has no PRECHARGE that comes with READ or WRITE"
    ROW_NOT_HELD = 25, "the model holds the first and the last rows of a bank only"


def violation_of(number: int) -> Rules:
    """Returns the violation that a compiled simulation means by a number."""
    if number > _DDR3_RULES:
        return Ddr3Violation(number - _DDR3_RULES)
    return Violation(number)
