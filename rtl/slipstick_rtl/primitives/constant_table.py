"""Tables of constants in logic: no memory, so that synthesis takes each bit for itself."""

from collections.abc import Iterable

import numpy as np
from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value

from .multiplier18 import is_ecp5

_INPUTS = 4
"""Inputs of a look-up table."""


def look_up(entries: Iterable[int], index: Value) -> Value:
    """The entry that ``index`` names, combinational; as wide as the largest.

    Parameters
    ----------
    entries : iterable of int
        None negative; as many as the index has values.
    index : Value
    """
    return Cat(
        Const(column, 1 << len(index)).bit_select(index, 1) for column in _columns(list(entries))
    )


def small_look_up(
    m: Module, platform: object, entries: Iterable[int], index: Value, name: str
) -> Value:
    """``look_up`` where each bit is one look-up table that serves all its readers, if it can be.

    Left to itself synthesis for ECP5 repeats the table within each reader's gates: a little faster,
    and larger by a look-up table a reader.

    Parameters
    ----------
    m : Module
        Gets the cells, on ECP5.
    platform : object
        As ``elaborate`` has it.
    entries, index
        As of ``look_up``.
    name : str
        Prefix of the cells.
    """
    entries = list(entries)
    if not is_ecp5(platform) or len(index) > _INPUTS:
        return look_up(entries, index)
    bits: list[Value] = []
    ports = {f"i_{port}": bit for port, bit in zip("ABCD", index, strict=False)}
    unused = {f"i_{port}": Const(0, 1) for port in "ABCD"[len(index) :]}
    for place, column in enumerate(_columns(entries)):
        if column + 1 == 1 << len(entries):
            bits.append(Const(1, 1))
            continue
        bits.append(bit := Signal(name=f"{name}_{place}"))
        # a table with unused inputs is looked up at its beginning
        m.submodules[f"{name}_{place}_table"] = Instance(
            "LUT4", p_INIT=Const(column, 1 << _INPUTS), **ports, **unused, o_Z=bit
        )
    return Cat(bits)


def _columns(entries: list[int]) -> list[int]:
    """Each bit of all entries as a number, the first entry's lowest."""
    table = np.array(entries, np.int64)
    return [
        int.from_bytes(np.packbits(table >> place & 1, bitorder="little").tobytes(), "little")
        for place in range(int(table.max()).bit_length())
    ]
