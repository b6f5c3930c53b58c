"""Register maps: checked once; gateware, JSON, C header and documentation are made from them.

Needs no Amaranth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

WORD_BYTES = 4
WORD_BITS = 8 * WORD_BYTES


class Access(Enum):
    """Software's access to a field: the operations it may do, and the value it reads."""

    CONSTANT = "constant"
    """Always ``reset``."""
    STATE = "state"
    """The hardware's present state."""
    SETTING = "setting"
    """The value that was written last."""
    EVENT = "event"
    """Set when it happens, until a 1 is written; it wins over a 1 that comes with it."""
    TAKE = "take"
    """Each read takes a word; refused while there is none."""
    GIVE = "give"
    """Each write gives the bytes whose strobes are set; refused while there is no room."""

    @property
    def text(self) -> str:
        """For people."""
        return _TEXTS[self]

    @property
    def readable(self) -> bool:
        """Tells whether a read is answered."""
        return self is not Access.GIVE

    @property
    def writable(self) -> bool:
        """Tells whether a write is taken."""
        return self in (Access.SETTING, Access.EVENT, Access.GIVE)


_TEXTS = {
    Access.CONSTANT: "read",
    Access.STATE: "read",
    Access.SETTING: "read, write",
    Access.EVENT: "read, write 1 to clear",
    Access.TAKE: "read takes",
    Access.GIVE: "write gives",
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """Some bits of a register.

    Parameters
    ----------
    name : str
        Lower case, an identifier.
    low, width : int
        Least significant bit, and bits.
    access : Access
    reset : int
        Value after reset.
    doc : str
        What it says, without markup.

    Raises
    ------
    ValueError
        If a parameter breaks its rule.
    """

    name: str
    low: int
    width: int
    access: Access
    doc: str
    reset: int = 0

    def __post_init__(self) -> None:
        if not (self.name.isidentifier() and self.name.islower()):
            raise ValueError(f"a field's name must be a lower-case identifier, not {self.name!r}")
        if self.width < 1 or self.low < 0 or self.low + self.width > WORD_BITS:
            raise ValueError(
                f"field {self.name} must lie within bits 0..{WORD_BITS - 1}, not"
                f" {self.low}..{self.low + self.width - 1}"
            )
        if not 0 <= self.reset < 1 << self.width:
            raise ValueError(
                f"the reset value of {self.name} must fit {self.width} bits, not {self.reset}"
            )
        if self.access in (Access.TAKE, Access.GIVE) and self.width != WORD_BITS:
            raise ValueError(f"field {self.name} must be a whole word, not {self.width} bits")

    @property
    def mask(self) -> int:
        """Its bits within the register."""
        return ((1 << self.width) - 1) << self.low

    @property
    def bits(self) -> str:
        """Its bits as people write them: ``15:8`` or ``3``."""
        return f"{self.low + self.width - 1}:{self.low}" if self.width > 1 else str(self.low)


@dataclass(frozen=True, kw_only=True)
class Register:
    """A word of the register map.

    Parameters
    ----------
    name : str
        Lower case, an identifier.
    offset : int
        In bytes, a multiple of 4.
    doc : str
    fields : tuple of Field
        From bit 0 up, without overlap; what lies between reads as 0.

    Raises
    ------
    ValueError
        If a parameter breaks its rule.
    """

    name: str
    offset: int
    doc: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if not (self.name.isidentifier() and self.name.islower()):
            raise ValueError(
                f"a register's name must be a lower-case identifier, not {self.name!r}"
            )
        if self.offset < 0 or self.offset % WORD_BYTES:
            raise ValueError(
                f"the offset of {self.name} must be a multiple of {WORD_BYTES}, not {self.offset}"
            )
        if not self.fields:
            raise ValueError(f"register {self.name} must have a field")
        if len({field.name for field in self.fields}) != len(self.fields):
            raise ValueError(f"the fields of {self.name} must have names of their own")
        end = 0
        for field in self.fields:
            if field.low < end:
                raise ValueError(f"field {field.name} of {self.name} must begin at bit {end} or up")
            end = field.low + field.width
        odd = {field.access for field in self.fields} & {Access.TAKE, Access.GIVE}
        if odd and len(self.fields) > 1:
            raise ValueError(f"register {self.name} must have one field, not {len(self.fields)}")

    @property
    def readable(self) -> bool:
        """Tells whether reads are answered; else they are errors."""
        return all(field.access.readable for field in self.fields)

    @property
    def writable(self) -> bool:
        """Tells whether writes are taken; else they are errors."""
        return any(field.access.writable for field in self.fields)

    @property
    def reset(self) -> int:
        """The word after reset."""
        return sum(field.reset << field.low for field in self.fields)


@dataclass(frozen=True, kw_only=True)
class RegisterMap:
    """Registers within a window of addresses; a whole of which the rest is unmapped.

    Parameters
    ----------
    size : int
        Bytes of the window, a power of two.
    registers : tuple of Register
        By ascending offset.

    Raises
    ------
    ValueError
        If offsets or names meet, or a register lies outside the window.
    """

    size: int
    registers: tuple[Register, ...]

    def __post_init__(self) -> None:
        if self.size < WORD_BYTES or self.size & (self.size - 1):
            raise ValueError(f"size must be a power of two of at least 4, not {self.size}")
        offsets = [register.offset for register in self.registers]
        if offsets != sorted(set(offsets)):
            raise ValueError(f"offsets must ascend, not {offsets}")
        if offsets and offsets[-1] >= self.size:
            raise ValueError(f"offsets must be below {self.size}, not {offsets[-1]}")
        if len({register.name for register in self.registers}) != len(offsets):
            raise ValueError("registers must have names of their own")

    def __iter__(self) -> Iterator[Register]:
        return iter(self.registers)

    def __getitem__(self, name: str) -> Register:
        for register in self.registers:
            if register.name == name:
                return register
        raise KeyError(f"no register is named {name!r}")

    @property
    def address_bits(self) -> int:
        """Bits of a byte address within the window."""
        return (self.size - 1).bit_length()

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "size": self.size,
            "registers": [
                {
                    "name": register.name,
                    "offset": register.offset,
                    "doc": register.doc,
                    "reset": register.reset,
                    "readable": register.readable,
                    "writable": register.writable,
                    "fields": [
                        {
                            "name": field.name,
                            "low": field.low,
                            "width": field.width,
                            "access": field.access.text,
                            "reset": field.reset,
                            "doc": field.doc,
                        }
                        for field in register.fields
                    ],
                }
                for register in self
            ],
        }
