"""Reads the lanes' notes behind a program: DRAINs that store them, and forget them."""

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES
from slipstick_rtl.isa import POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.mapping.activation_layout import round_up
from ...compiler.memory.constants import Images
from ..device.convolutions import sum_bytes

NOTE_BYTES = 4
"""Bytes of a lane's note."""

NOTE_DRAINS = NOTE_BYTES
"""DRAINs that read the notes, a byte each."""


def note_pitch(configuration: Configuration) -> int:
    """Bytes from the notes of a work to those of the next one, which begin with a word."""
    return round_up(NOTE_BYTES * configuration.lanes, WORD_BYTES)


class NoteReader:
    """The parameters of the DRAINs, and the DRAINs.

    Parameters
    ----------
    configuration : Configuration
        With ``training``.

    Members
    -------
    constants : bytes
        For the weight memory, from word 0 on.
    words : int
        Of the weight memory, that they take.
    """

    def __init__(self, configuration: Configuration) -> None:
        images, self._lanes = Images(configuration, shares=False), configuration.lanes
        self._parameters = [
            images.add_parameters(value, 0, self._lanes, "notes")
            for value in sum_bytes(self._lanes)
        ]
        (self.constants,) = (each.data for each in images.all() if each.space == Space.WEIGHTS)
        self.words = len(self.constants) // configuration.weight_unit_bytes

    def drains(self, destination: int) -> bytes:
        """Instructions of the post stream that store L bytes for each byte of the notes.

        Parameters
        ----------
        destination : int
            A byte of the activation memory, a multiple of L.
        """
        stream = bytearray()
        for number, parameters in enumerate(self._parameters):
            last = number == len(self._parameters) - 1
            fields = {
                "opcode": Opcode.DRAIN,
                "rows": 1,
                "columns": 1,
                "slices": 1,
                "destination": destination + number * self._lanes,
                "parameter_address": parameters,
                "rounding": Rounding.HALF_EVEN,
                "minimum": -128,
                "maximum": 127,
                "table_words": TrainingFlag.NOTES
                | TrainingFlag.AS_BYTES
                | (TrainingFlag.NOTED if last else TrainingFlag(0)),
            }
            stream += pack(POST_FIELDS, fields)
        return bytes(stream)
