"""The stages of a pipeline: in silicon the registers of one that holds no value rest."""

from contextlib import AbstractContextManager
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .delay import delay
from .resting import where


def busy_member(count: int, *, silicon: int) -> dict[str, wiring.Member]:
    """Returns the input ``busy`` of a pipeline of so many stages; in silicon only.

    Its bit k is 1 in the cycles at whose end the registers of stage k take a value: k cycles after
    that came.
    """
    return {"busy": In(count)} if silicon else {}


class Stages:
    """Registers of a pipeline by their stage; each is renewed only when it takes a value.

    Parameters
    ----------
    busy : Value or None
        As of ``busy_member``; None: there is none, and all registers are renewed in every cycle.
    """

    def __init__(self, busy: Value | None) -> None:
        self._busy = busy

    @classmethod
    def of(cls, pipeline: Any, *, silicon: int) -> "Stages":
        """Returns those of a component that may have a ``busy_member``."""
        return cls(pipeline.busy if silicon else None)

    def at(self, m: Module, stage: int) -> AbstractContextManager[None]:
        """Assigns registers of ``stage``: the context of their assignments."""
        return where(m, None if self._busy is None else self._busy[stage])

    def delay(self, m: Module, value: Any, stage: int, cycles: int, name: str) -> Any:
        """``value`` as it was ``cycles`` ago, by registers of ``stage`` and of those behind it."""
        if self._busy is None:
            return delay(m, value, cycles, name, reset_less=True)
        for place in range(cycles):
            register = Signal(value.shape(), name=f"{name}_{place}", reset_less=True)
            with self.at(m, stage + place):
                m.d.sync += Value.cast(register).eq(Value.cast(value))
            value = register
        return value

    def lead(self, m: Module, part: Any, stage: int) -> None:
        """Tells a part of the pipeline, which begins with ``stage``, which of its stages work."""
        if self._busy is not None:
            m.d.comb += part.busy.eq(self._busy[stage : stage + len(part.busy)])
