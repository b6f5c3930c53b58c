"""Defines the signals between a controller of DDR3 and its PHY."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .ddr3 import PHASES, Ddr3Settings


def command_layout(settings: Ddr3Settings) -> data.StructLayout:
    """A word of ``word_bits`` to be read or written."""
    return data.StructLayout({"write": 1, "address": settings.word_address_bits})


class PhaseSignature(wiring.Signature):
    """A command in one cycle of the chip's clock; no command if ``ras_n, cas_n, we_n`` are high.

    Parameters
    ----------
    settings : Ddr3Settings
    """

    def __init__(self, settings: Ddr3Settings) -> None:
        super().__init__(
            {
                "ras_n": Out(1),
                "cas_n": Out(1),
                "we_n": Out(1),
                "address": Out(settings.chip.address_bits),
                "bank": Out(settings.chip.bank_bits),
            }
        )


class DelaySignature(wiring.Signature):
    """Sets the read delays of the PHY, for each byte of the data pins.

    The delay is within 0..7 quarters of the chip's clock cycle, and the slip within 0..3 words;
    they wrap around. While a byte is selected it is at rest, and cannot be read.

    Parameters
    ----------
    settings : Ddr3Settings
    """

    def __init__(self, settings: Ddr3Settings) -> None:
        groups = settings.chip.groups
        pulses = ("delay_reset", "delay_next", "slip_reset", "slip_next", "clear")
        super().__init__(
            {
                # bytes that the next four are for
                "select": Out(groups),
                **{name: Out(1) for name in pulses},
                # since clear: a burst of the byte's strobe has been read where it was expected
                "seen": In(groups),
            }
        )


class Ddr3Signature(wiring.Signature):
    """DFI, reduced to what LiteDRAM uses of it.

    ``read`` and ``write`` come with their command; ``written`` and ``mask`` are ``write_latency``
    cycles behind it, ``read_data`` are ``read_latency`` cycles behind. The first words of a burst
    are the lowest bits. ``mask`` is high where a byte is not written.

    Parameters
    ----------
    settings : Ddr3Settings
    """

    def __init__(self, settings: Ddr3Settings) -> None:
        bits = settings.word_bits
        super().__init__(
            {
                "reset_n": Out(1),
                "cke": Out(1),
                "odt": Out(1),
                **{f"phase{k}": Out(PhaseSignature(settings)) for k in range(PHASES)},
                "read": Out(1),
                "write": Out(1),
                "written": Out(bits),
                "mask": Out(bits // 8),
                "read_data": In(bits),
                "delays": Out(DelaySignature(settings)),
            }
        )
