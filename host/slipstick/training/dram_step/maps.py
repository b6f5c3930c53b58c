"""Writes programs of maps (MAP): the post-processor reads the activation memory, and writes it."""

from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.ir.requantization import Requantization
from ...compiler.memory.constants import Images

_INSTRUCTION_WORD = 4
"""Bytes of a word of the instruction memory."""

_NONE = TrainingFlag(0)

Steps = tuple[int, int, int]
"""Places of pixels: the first one's address, bytes from row to row, and from column to column."""


@dataclass(frozen=True)
class Program:
    """Instructions and constants, each from the first word of their memory on.

    Parameters
    ----------
    code : bytes
    pcs : (int, int)
        The streams' first words.
    constants : bytes
    """

    code: bytes
    pcs: tuple[int, int]
    constants: bytes


class MapWriter:
    """Writes maps of tensors of one size, one after the other.

    Parameters
    ----------
    configuration : Configuration
        With ``training``.
    size : (rows, columns, channels)
        Of what each map writes.
    """

    def __init__(self, configuration: Configuration, size: tuple[int, int, int]) -> None:
        self._configuration, self._size = configuration, size
        self._images = Images(configuration, shares=False)
        self._code = b""

    def finish(self, values: Requantization, flags: TrainingFlag = _NONE) -> dict[str, int]:
        """Places parameters; fields of a map whose sums become codes so."""
        return {
            "parameter_address": self._images.add_single(values, "map"),
            "rounding": Rounding.HALF_EVEN,
            "minimum": values.minimum,
            "maximum": values.maximum,
            "table_words": flags,
        }

    def load_table(self, even: np.ndarray, odd: np.ndarray) -> None:
        """Writes the loading of the tables, each of 256 numbers for the codes -128 to 127."""
        table = np.concatenate([even, odd]).astype(np.int32)
        address, words = self._images.add_table(table, "map")
        self._add({"opcode": Opcode.TABLE, "table_address": address, "table_words": words})

    def add(self, source: Steps, result: Steps, **fields: int) -> None:
        """Writes a map: by default of two taps side by side, ``tap_step_x`` bytes apart."""
        rows, columns, channels = self._size
        names = ("", "_row_step", "_column_step")
        self._add(
            {
                "opcode": Opcode.MAP,
                "rows": rows,
                "columns": columns,
                "slices": -(-channels // self._configuration.lanes),
                **{f"source{name}": step for name, step in zip(names, source, strict=True)},
                **{f"destination{name}": step for name, step in zip(names, result, strict=True)},
                "taps_y": 1,
                "taps_x": 2,
                **fields,
            }
        )

    def program(self) -> Program:
        """All that was written; CapacityError if the constants do not fit."""
        halt = pack(POST_FIELDS, {"opcode": Opcode.HALT})
        (constants,) = (each.data for each in self._images.all() if each.space == Space.WEIGHTS)
        return Program(halt + self._code + halt, (0, len(halt) // _INSTRUCTION_WORD), constants)

    def _add(self, fields: dict[str, int]) -> None:
        self._code += pack(POST_FIELDS, fields)
