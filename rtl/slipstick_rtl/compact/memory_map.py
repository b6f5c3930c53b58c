"""Where the spaces lie in the compact engine's one memory. Needs no Amaranth."""

from dataclasses import dataclass

from ..config import Configuration

INSTRUCTION_BYTES = 4
"""Of a word of the instruction memory."""


@dataclass(frozen=True)
class MemoryMap:
    """Weights, then activations, then instructions, in words of C bytes.

    The weights begin at word 0, so that tables in them are found by a single addition.

    Parameters
    ----------
    configuration : Configuration
    """

    configuration: Configuration

    @property
    def activations(self) -> int:
        """The first word of the activations."""
        return self.configuration.weight_words

    @property
    def instructions(self) -> int:
        """The first word of the instructions."""
        size = self.configuration.activation_bytes
        return self.activations + size // self.configuration.columns

    @property
    def words(self) -> int:
        """All words."""
        size = self.configuration.instruction_words * INSTRUCTION_BYTES
        return self.instructions + size // self.configuration.columns
