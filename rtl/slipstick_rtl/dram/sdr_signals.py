"""Defines the signals between a controller and the pins of SDR SDRAM."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .chips import SdrChip


class SdrSignature(wiring.Signature):
    """The chip's pins, a cycle before they change; ``data_i`` is a cycle old.

    Parameters
    ----------
    chip : SdrChip
    """

    def __init__(self, chip: SdrChip) -> None:
        super().__init__(
            {
                "cke": Out(1),
                "cs_n": Out(1),
                "ras_n": Out(1),
                "cas_n": Out(1),
                "we_n": Out(1),
                "address": Out(chip.address_bits),
                "bank": Out(chip.bank_bits),
                "mask": Out(chip.data_bits // 8),
                "data_o": Out(chip.data_bits),
                "data_oe": Out(1),
                "data_i": In(chip.data_bits),
            }
        )
