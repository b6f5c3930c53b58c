"""Lists the bytes that IDENTIFY answers. Needs neither Amaranth nor NumPy."""

import struct
from dataclasses import dataclass

from ..config import PROTOCOL_VERSION, Configuration
from ..isa import ISA_VERSION


@dataclass(frozen=True)
class Identity:
    """Holds the identity that a device reports.

    Parameters
    ----------
    fingerprint : str
        16 hexadecimal digits, the configuration's.
    protocol_version, isa_version : int
    payload_bytes : int
        Longest payload of a frame.
    """

    fingerprint: str
    protocol_version: int
    isa_version: int
    payload_bytes: int

    FORMAT = "<8sBBH"

    @classmethod
    def of(cls, configuration: Configuration) -> "Identity":
        """Returns the identity that hardware of this configuration reports."""
        return cls(
            fingerprint=configuration.fingerprint,
            protocol_version=PROTOCOL_VERSION,
            isa_version=ISA_VERSION,
            payload_bytes=configuration.payload_bytes,
        )

    @classmethod
    def unpack(cls, payload: bytes) -> "Identity":
        """Decodes the payload of an IDENTIFY response; ValueError if its length is wrong."""
        if len(payload) != struct.calcsize(cls.FORMAT):
            size = struct.calcsize(cls.FORMAT)
            raise ValueError(f"an identity must be {size} bytes, not {len(payload)}")
        fingerprint, *rest = struct.unpack(cls.FORMAT, payload)
        return cls(fingerprint.hex(), *rest)

    def pack(self) -> bytes:
        """The payload that ``unpack`` decodes."""
        return struct.pack(
            self.FORMAT,
            bytes.fromhex(self.fingerprint),
            self.protocol_version,
            self.isa_version,
            self.payload_bytes,
        )
