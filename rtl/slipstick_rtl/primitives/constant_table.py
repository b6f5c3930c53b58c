"""Tables of constants in logic: no memory, so that synthesis takes each bit for itself."""

from collections.abc import Iterable

import numpy as np
from amaranth.hdl import Cat, Const, Value


def look_up(entries: Iterable[int], index: Value) -> Value:
    """The entry that ``index`` names, combinational; as wide as the largest.

    Parameters
    ----------
    entries : iterable of int
        None negative; as many as the index has values.
    index : Value
    """
    table = np.array(list(entries), np.int64)
    places = int(table.max()).bit_length()
    columns = [
        int.from_bytes(np.packbits(table >> place & 1, bitorder="little").tobytes(), "little")
        for place in range(places)
    ]
    return Cat(Const(column, len(table)).bit_select(index, 1) for column in columns)
