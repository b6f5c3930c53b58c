"""Places loads in a memory that does not hold them all, so that the next can come meanwhile."""

from collections.abc import Iterable


class DoubleBuffer:
    """Places for the loads of one memory, each of which is needed for a while.

    If all fit side by side, each has a place of its own. Otherwise they lie in turns at the
    memory's bottom and at its top.

    Parameters
    ----------
    capacity : int
        Units of the memory.
    unit : int
        Bytes of a unit.
    loads : iterable of bytes
        All of them.
    """

    def __init__(self, capacity: int, unit: int, loads: Iterable[bytes]) -> None:
        self._capacity, self._unit = capacity, unit
        self._places: dict[bytes, int] = {}
        distinct = dict.fromkeys(loads)
        self.holds_all = sum(map(self._units, distinct)) <= capacity
        address = 0
        if self.holds_all:
            for data in distinct:
                self._places[data] = address
                address += self._units(data)
        self._recent: list[tuple[bytes, int]] = []

    def _units(self, data: bytes) -> int:
        return -(-len(data) // self._unit)

    def place(self, data: bytes) -> int:
        """The address of what is needed next, which may be there from a while ago."""
        if self.holds_all:
            return self._places[data]
        for number, (other, address) in enumerate(self._recent):
            if other is data or other == data:
                self._recent.append(self._recent.pop(number))
                return address
        top = self._capacity - self._units(data)
        address = top if self._recent and self._recent[-1][1] == 0 else 0
        self._recent = [
            (other, start)
            for other, start in self._recent
            if start >= address + self._units(data) or start + self._units(other) <= address
        ]
        self._recent.append((data, address))
        return address
