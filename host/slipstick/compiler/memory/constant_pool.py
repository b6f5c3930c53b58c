"""Memories that are filled once: what is laid in them end to end, and whether it fits."""

from ...errors import CapacityError


class Store:
    """Units laid end to end in one memory; equal runs of units are stored once, if ``shares``.

    Parameters
    ----------
    name : str
        The memory's, for messages.
    unit, depth : int
        Bytes of a unit, and units of the memory.
    shares : bool
    """

    def __init__(self, name: str, unit: int, depth: int, *, shares: bool) -> None:
        self._name, self._unit, self._depth = name, unit, depth
        self._shares = shares
        self._places: dict[bytes, int] = {}
        self._first_beyond: str | None = None
        self.data = bytearray()

    @property
    def units(self) -> int:
        """Units in use."""
        return len(self.data) // self._unit

    def add(self, data: bytes, layer: str) -> int:
        """The address, in units, of these bytes; it may lie behind the memory's end."""
        if self._shares and data in self._places:
            return self._places[data]
        place = self.units
        if self._shares:
            self._places[data] = place
        self.data += data
        if self._first_beyond is None and self.units > self._depth:
            self._first_beyond = layer
        return place

    def check(self) -> None:
        """CapacityError if not all fits."""
        if self._first_beyond is not None:
            raise CapacityError(
                f"layer {self._first_beyond!r}: the {self._name} must hold"
                f" {len(self.data)} bytes for the whole network, but has"
                f" {self._depth * self._unit}, and this layer is the first that does not fit"
            )
