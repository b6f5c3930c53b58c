"""Keeps a program's state from one inference to the next: on the host, or on the device."""

import numpy as np

from ..errors import DeviceError, StateLostError
from ..graph import Variable
from ..program import Program
from ..program.steps import Placement
from .device_memory import Memory

Values = dict[str, np.ndarray]
"""Tensors by name, each with a batch axis of one."""


class KeptState:
    """The values of a program's variables, by their sources.

    Those that are ``resident`` are written to a memory once, and stay there from run to run: the
    host's copies of them are old as soon as one has begun.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._there: Memory | None = None
        self._values: Values = {}
        self._fresh, self._running, self._lost = True, False, False
        self.reset()

    def reset(self) -> None:
        """The next inference begins as the first one did."""
        self.restore({each.source: each.initial for each in self._program.variables})

    def restore(self, values: Values) -> None:
        """The next inference begins with these, as ``saved`` gave them."""
        self._values, self._there = dict(values), None
        self._fresh, self._running, self._lost = True, False, False

    def begin(self, memory: Memory) -> Values:
        """Brings to a memory what it must hold; returns the other variables' values.

        Raises
        ------
        StateLostError
            If a run failed, and nobody has reset the state since.
        """
        self._require()
        if self._there is not memory:
            self._fetch()
            for variable, place in self._residents:
                memory.upload(place, self._values[variable.source])
            self._there = memory
        resident = self._program.resident
        return {name: value for name, value in self._values.items() if name not in resident}

    def started(self) -> None:
        """A run begins, over what the memory holds."""
        if self._program.resident:
            self._fresh, self._running = False, True

    def end(self, values: Values) -> None:
        """An inference has ended well, with these tensors on the host."""
        self._running = False
        for each in self._program.variables:
            if each.source not in self._program.resident:
                # a copy: the values are the caller's too
                self._values[each.source] = values[each.result].copy()

    def failed(self) -> bool:
        """An inference has not ended well; returns whether the state is lost by that."""
        if self._running:
            self._lost, self._there = True, None
        return self._running

    def saved(self) -> Values:
        """All values, brought to the host."""
        self._require()
        self._fetch()
        return dict(self._values)

    def leave(self) -> None:
        """Brings all to the host, as others are about to use the memory."""
        try:
            if not self._lost:
                self._fetch()
        except DeviceError:
            self._lost = True
        self._there = None

    @property
    def _residents(self) -> list[tuple[Variable, Placement]]:
        found = []
        for each in self._program.variables:
            place = self._program.tensors[each.source].placement
            if each.source in self._program.resident and place is not None:
                found.append((each, place))
        return found

    def _fetch(self) -> None:
        if not self._fresh and self._there is not None:
            for each, place in self._residents:
                flat = self._there.download(place)()
                self._values[each.source] = flat.reshape(each.initial.shape).copy()
        self._fresh = True

    def _require(self) -> None:
        if self._lost:
            raise StateLostError(
                f"what {self._program.name} keeps from run to run was lost with a run that failed:"
                " reset_state() begins anew"
            )
