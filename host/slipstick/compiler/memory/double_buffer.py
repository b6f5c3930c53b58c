"""Places loads in a memory that does not hold them all, so that the next can come meanwhile."""

from collections.abc import Iterable


class DoubleBuffer:
    """Places for the loads of one memory, each of which is needed for a while.

    If all fit side by side, each has a place of its own. Otherwise they lie in turns at the
    memory's bottom and at its top; or, ``far``, where as many as possible of those that were needed
    last stay whole, so that many can come ahead of time.

    Parameters
    ----------
    capacity : int
        Units of the memory.
    unit : int
        Bytes of a unit.
    loads : iterable of bytes
        All of them, in the order in which they are placed.
    far : bool
    """

    def __init__(
        self, capacity: int, unit: int, loads: Iterable[bytes], *, far: bool = False
    ) -> None:
        self._capacity, self._unit, self._far = capacity, unit, far
        self._places: dict[bytes, int] = {}
        order = [data for data in loads if data]
        distinct = dict.fromkeys(order)
        # the size of the next other one, for each
        self._next = [0] * len(order)
        for number in reversed(range(len(order) - 1)):
            same = order[number] == order[number + 1]
            behind = self._next[number + 1]
            self._next[number] = behind if same else self._units(order[number + 1])
        self.holds_all = sum(map(self._units, distinct)) <= capacity
        address = 0
        if self.holds_all:
            for data in distinct:
                self._places[data] = address
                address += self._units(data)
        self._recent: list[tuple[bytes, int]] = []
        self._placed = 0

    def _units(self, data: bytes) -> int:
        return -(-len(data) // self._unit)

    def place(self, data: bytes) -> int:
        """The address of what is needed next, which may be there from a while ago."""
        if self.holds_all:
            return self._places[data]
        following = self._next[self._placed]
        self._placed += 1
        for number, (other, address) in enumerate(self._recent):
            if other is data or other == data:
                self._recent.append(self._recent.pop(number))
                return address
        size = self._units(data)

        if self._far:
            address = self._farthest(size, following)
        else:
            top = self._capacity - size
            address = top if self._recent and self._recent[-1][1] == 0 else 0
        self._recent = [each for each in self._recent if not self._meets(each, address, size)]
        self._recent.append((data, address))
        return address

    def _farthest(self, size: int, following: int) -> int:
        """Finds the place that leaves room for the next one, and most of the last ones whole."""

        def merit(place: int) -> tuple[bool, int, int]:
            room = max(place, self._capacity - place - size)
            return room >= following, self._untouched(place, size), self._beside_last(place, size)

        return max(self._candidates(size), key=merit)

    def _candidates(self, size: int) -> list[int]:
        """Beside what is there, and at both ends."""
        ends = [address + self._units(data) for data, address in self._recent]
        starts = [address - size for _, address in self._recent]
        places = [0, self._capacity - size, *ends, *starts]
        return [place for place in places if 0 <= place <= self._capacity - size]

    def _untouched(self, place: int, size: int) -> int:
        """Counts the last ones that stay whole, up to the first that does not."""
        count = 0
        for each in reversed(self._recent):
            if self._meets(each, place, size):
                break
            count += 1
        return count

    def _beside_last(self, place: int, size: int) -> int:
        """Units that can come while the last one is still in use."""
        if not self._recent:
            return size
        data, start = self._recent[-1]
        end = start + self._units(data)
        return size - max(0, min(place + size, end) - max(place, start))

    def _meets(self, other: tuple[bytes, int], place: int, size: int) -> bool:
        data, start = other
        return start < place + size and place < start + self._units(data)
