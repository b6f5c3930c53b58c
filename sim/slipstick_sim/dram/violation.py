"""The rules of an SDR SDRAM. Needs no Amaranth."""

from enum import IntEnum


class Violation(IntEnum):
    """What was done to a chip that its data sheet forbids."""

    rule: str

    def __new__(cls, number: int, rule: str) -> "Violation":
        """A member with its rule."""
        member = int.__new__(cls, number)
        member._value_, member.rule = number, rule
        return member

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
