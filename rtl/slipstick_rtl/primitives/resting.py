"""Enables for parts of the core that may rest: what clock gates need."""

from amaranth.hdl import Module, Signal, Value


def works_for(m: Module, begins: Value, cycles: int, name: str) -> Value:
    """1 in every cycle in which ``begins`` is 1, and in the ``cycles`` after the last of them.

    Parameters
    ----------
    m : Module
        Gets a counter, in its ``sync`` domain.
    begins : Value
        There is something to do.
    cycles : int
        That it can take, at least 1.
    name : str
        Of the counter.
    """
    left = Signal(range(cycles + 1), name=name)
    with m.If(begins):
        m.d.sync += left.eq(cycles)
    with m.Elif(left != 0):
        m.d.sync += left.eq(left - 1)
    return begins | (left != 0)
