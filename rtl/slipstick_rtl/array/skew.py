"""The array's skew: a vector's activations, each row's as late as it is needed."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Value

from ..primitives.delay import delay
from ..primitives.delay_memory import LONGEST_RING, SHORTEST_RING, DelayRing, long_delay

Skewed = list[dict[int, Value]]
"""By number and by cycles of delay."""


def skew(m: Module, values: Sequence[Value], cycles: Sequence[set[int]], name: str) -> Skewed:
    """Each of ``values``, of equal widths, as it was so many cycles ago, by these.

    Parameters
    ----------
    m : Module
    values : sequence of Value
    cycles : sequence of sets of int
        Of each value those that are wanted, one at least.
    name : str
        Prefix of the names of what delays.
    """
    width = len(values[0])
    latest = [k for k, wanted in enumerate(cycles) if min(wanted) >= LONGEST_RING]
    begun = {k: (0, value) for k, value in enumerate(values)}
    if latest:
        # one ring for all, as each counts its places
        m.submodules[f"{name}_common"] = ring = DelayRing(
            shape=width * len(latest), cycles=LONGEST_RING
        )
        m.d.comb += ring.i.eq(Cat(values[k] for k in latest))
        begun |= {k: (LONGEST_RING, ring.o.word_select(n, width)) for n, k in enumerate(latest)}
    skewed: Skewed = []
    for k, wanted in enumerate(cycles):
        late, value = begun[k]
        found: dict[int, Value] = {}
        for cycle in sorted(wanted):
            distance, way = cycle - late, f"{name}_{k}_{cycle}"
            # a ring's output is not sent far: a register follows
            register = int(distance > SHORTEST_RING)
            value = long_delay(m, value, distance - register, way)
            value = delay(m, value, register, f"{way}_last", reset_less=True)
            found[cycle], late = value, cycle
        skewed.append(found)
    return skewed
