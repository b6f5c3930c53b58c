"""Results of the memory test's parts: passed or not, and why, in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.dma.transfer import WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A block of DRAM that was not as it had been written.

    Parameters
    ----------
    block, block_bytes : int
        Address of its first byte, and its size.
    address : int or None
        Of the first word of eight bytes that was wrong. None: all were right when the block was
        read again.
    expected, found : int
        That word, little endian.
    wrong_words : int
    right_again : bool
        The block was right when it was read directly after having been written once more.
    data_bits : int
        Of the chip.
    """

    block: int
    block_bytes: int
    data_bits: int
    address: int | None = None
    expected: int = 0
    found: int = 0
    wrong_words: int = 0
    right_again: bool = False

    @property
    def wrong_lines(self) -> list[int]:
        """Data bits of the chip in which the first wrong word differs."""
        wrong = self.expected ^ self.found
        return sorted({bit % self.data_bits for bit in range(8 * WORD_BYTES) if wrong >> bit & 1})

    def __str__(self) -> str:
        if self.address is None:
            return (
                f"the {self.block_bytes:,} bytes from {address_text(self.block)} on had another"
                " checksum once, and were right when they were read again: reading is unreliable"
            )
        again = (
            "right when it is written and read at once: it loses its contents, or another address"
            " overwrites it"
            if self.right_again
            else "wrong again when it is written and read at once"
        )
        words = f"{self.wrong_words:,} of the block's {self.block_bytes // WORD_BYTES:,} words"
        return (
            f"address {address_text(self.address)}: expected 0x{self.expected:016x}, found"
            f" 0x{self.found:016x}, different in {name_bits('data bit', self.wrong_lines)};"
            f" {words} are wrong; {again}"
        )

    def entry(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        found = self.address is not None
        return {
            "block": self.block,
            "block_bytes": self.block_bytes,
            "address": self.address,
            "expected": f"0x{self.expected:016x}" if found else None,
            "found": f"0x{self.found:016x}" if found else None,
            "data_bits": self.wrong_lines,
            "wrong_words": self.wrong_words,
            "right_again": self.right_again,
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of one part of the memory test.

    Parameters
    ----------
    name : str
    passed : bool or None
        None: it could not be judged, because of what was found before.
    detail : str
        One sentence or several for people.
    faults : tuple of Fault
        The blocks that were wrong.
    """

    name: str
    passed: bool | None
    detail: str
    faults: tuple[Fault, ...] = ()

    def entry(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        return {
            "name": self.name,
            "passed": self.passed,
            "detail": self.detail,
            "faults": [fault.entry() for fault in self.faults],
        }


def address_text(address: int) -> str:
    """Returns the address of a byte as all messages write it."""
    return f"0x{address:08x}"


def name_bits(what: str, numbers: Iterable[int]) -> str:
    """Returns bits by their numbers: ``data bit 3``, ``data bits 0 to 7 and 9``."""
    known = sorted(numbers)
    parts = list[str]()
    first = 0
    for k, number in enumerate(known):
        if k + 1 < len(known) and known[k + 1] == number + 1:
            continue
        run = known[first : k + 1]
        first = k + 1
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    text = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return f"{what}{'s' if len(known) > 1 else ''} {text}"
