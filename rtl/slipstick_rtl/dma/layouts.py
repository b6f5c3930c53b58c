"""The DMA's instructions in gateware, and what it writes."""

import math

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.utils import ceil_log2

from ..config import Configuration
from .transfer import FIELDS, GROUP_CELLS, WORD_BYTES

_fields = [field for word in FIELDS for field in word]
TRANSFER = data.StructLayout({name or "unused": bits for name, bits in _fields})
"""As :class:`.transfer.Transfer` packs it; ``run_bytes``, ``runs`` and ``rows`` are less one."""

RUN = data.StructLayout({"chip": 24, "bytes": TRANSFER["run_bytes"].shape})
"""A run of bytes on the chip: the first one's address, their number less one."""

WEIGHT_GROUP = data.StructLayout({"address": 24, "cells": 8 * WORD_BYTES, "ninth": GROUP_CELLS})
"""Eight cells of the weight memory: which group, their bytes and ninth bits."""

INSTRUCTION_PART = data.StructLayout({"last": 1, "data": 8 * WORD_BYTES})
"""A word of an instruction; ``last`` with its last one."""

INSTRUCTION_WORD = data.StructLayout({"address": 24, "data": 32})


def chunk_bytes(configuration: Configuration) -> int:
    """Bytes that the DMA moves to or from the activation memory at once."""
    return min(configuration.lanes, WORD_BYTES)


def crc_bits(configuration: Configuration) -> int:
    """Bits of what is read that the CRC takes per cycle: as fast as the memory brings them."""
    bits = math.ceil(8 * configuration.dram_bytes_per_cycle)
    return min(1 << ceil_log2(bits), 8 * WORD_BYTES)


assert Shape.cast(TRANSFER).width == 8 * WORD_BYTES * len(FIELDS)
