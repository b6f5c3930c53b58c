"""Places the spaces in the compact engine's one memory. Needs no Amaranth."""

from dataclasses import dataclass

from ..config import Configuration

INSTRUCTION_BYTES = 4
"""Bytes of a word of the instruction memory."""


@dataclass(frozen=True)
class MemoryMap:
    """Activations, then weights, then instructions, in words of C bytes.

    The activations begin at word 0: their addresses come late, and go to memory as they are.

    Parameters
    ----------
    configuration : Configuration
    """

    configuration: Configuration

    @property
    def weights(self) -> int:
        """The first word of the weights."""
        return self.configuration.activation_bytes // self.configuration.columns

    @property
    def instructions(self) -> int:
        """The first word of the instructions."""
        return self.weights + self.configuration.weight_words

    @property
    def words(self) -> int:
        """All words."""
        size = self.configuration.instruction_words * INSTRUCTION_BYTES
        return self.instructions + size // self.configuration.columns
