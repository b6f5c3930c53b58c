"""Errors on the link: each has a code that stays, a meaning, and something to do about it."""

from ...errors import DeviceError

CODES = {
    "BAD_COMMAND": "The device does not know the request: update the host or the gateware.",
    "BAD_LENGTH": "The data are not whole units of the memory: a fault in the caller.",
    "BAD_SPACE": "There is no such memory, or it cannot be read: a fault in the caller.",
    "BAD_ADDRESS": "The place lies beyond the memory: a fault in the caller.",
    "BUSY": "A program runs: wait for its end, or reset the device.",
    "OUT_OF_ORDER": "The device expects another request: a fault of the host's program.",
    "NO_ANSWER": "No answer in spite of retries: check cable, power, port and baud rate.",
    "SESSION_LOST": "The device answers, but was reset, or another host took it: open it anew and"
    " load the program again.",
    "DISCONNECTED": "The port is gone, or takes no more bytes: plug it in, open the device anew.",
    "WRONG_HARDWARE": "Other gateware than the program was compiled for: program the board, or"
    " compile for its target.",
    "BAD_INSTRUCTION": "The device met a bad instruction: load the program again; if that does not"
    " help, report it.",
    "MEMORY_CORRUPT": "A block of the DRAM has another checksum than was written: load the program"
    " again; if that does not help, test the DRAM (`slipstick memtest`).",
    "BAD_TRANSFER": "The DMA met an instruction that there is none of: load the program again; if"
    " that does not help, test the DRAM (`slipstick memtest`).",
    "RUN_TIMEOUT": "The run did not end in time: reset the device; if it happens again, report it.",
    "RUN_STOPPED": "The run was reset before its end, so there is no result: run again.",
}
"""Meaning of each code, and advice."""


class LinkError(DeviceError):
    """A request that a device refused or did not answer.

    Members
    -------
    code : str
        One of ``CODES``.
    detail : str
        The message without the code.

    Raises
    ------
    ValueError
        If there is no such code.
    """

    def __init__(self, code: str, message: str) -> None:
        if code not in CODES:
            raise ValueError(f"the code of a link error must be one of {[*CODES]}, not {code!r}")
        super().__init__(f"{code}: {message}")
        self.code = code
        self.detail = message
