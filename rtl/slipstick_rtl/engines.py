"""The two engines: one record of abilities and bounds per engine, which all layers ask."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EngineTraits:
    """Abilities and bounds of one way to execute instructions.

    Gateware, golden models, benches and the compiler ask these fields; none of them compares an
    engine's name. The gateware itself, its link and its cycle model register under ``name``.

    Parameters
    ----------
    name : str
        Value of ``Configuration.engine``.
    overlaps_streams : bool
        Matrix and post instructions are executed at the same time. Otherwise one instruction is
        executed at a time.
    shares_memory : bool
        One memory holds instructions, weights and activations. Its parts need not be powers of two.
        Otherwise each has a memory of its own.
    has_parameter_memory : bool
        Parameters of channels have a memory of their own. Otherwise they lie in the weight memory.
    requantises_in_array : bool
        The array's multipliers requantise. Otherwise a post-processor with multipliers does.
    copies_tables : bool
        TABLE copies a part of a table. Otherwise it notes where the whole table lies.
    aligned : bool
        A window's lanes are one word of memory. Otherwise any bytes that lie in different banks.
    accumulator_banks : int
        Banks that instructions may name, from 0 up.
    smallest_rows : int
        Fewest rows of the array.
    pixels, lanes : tuple of int
        Smallest and largest number.
    coordinate_bits : int
        Bits of the rows and columns of an input, padding included.
    """

    name: str
    overlaps_streams: bool
    shares_memory: bool
    has_parameter_memory: bool
    requantises_in_array: bool
    copies_tables: bool
    aligned: bool
    accumulator_banks: int
    smallest_rows: int
    pixels: tuple[int, int]
    lanes: tuple[int, int]
    coordinate_bits: int


PIPELINED = EngineTraits(
    name="pipelined",
    overlaps_streams=True,
    shares_memory=False,
    has_parameter_memory=False,
    requantises_in_array=False,
    copies_tables=True,
    aligned=False,
    accumulator_banks=2,
    smallest_rows=4,
    pixels=(1, 16),
    lanes=(4, 64),
    coordinate_bits=16,
)

COMPACT = EngineTraits(
    name="compact",
    overlaps_streams=False,
    shares_memory=True,
    has_parameter_memory=True,
    requantises_in_array=True,
    copies_tables=False,
    aligned=True,
    accumulator_banks=1,
    smallest_rows=2,
    pixels=(1, 1),
    lanes=(1, 1),
    coordinate_bits=12,
)

ENGINES = {engine.name: engine for engine in (PIPELINED, COMPACT)}
"""All engines by name."""
