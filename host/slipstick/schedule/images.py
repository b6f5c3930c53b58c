"""What is loaded once: weights, tables and requantisation parameters, and where they lie."""

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Rounding
from slipstick_rtl.link.protocol import Space
from slipstick_rtl.numbers.rounding import encode_shift

from ..errors import CapacityError
from ..steps import Image
from .requantization import Requantization

_PARAMETER = np.dtype([("bias", "<i4"), ("multiplier", "<u4"), ("shift", "u1")])
_IDLE_SHIFT = encode_shift(Rounding.DOUBLE, 0)


class _Store:
    """Units laid end to end in one memory; equal runs of units are stored once, if ``shares``."""

    def __init__(self, name: str, unit: int, depth: int, *, shares: bool) -> None:
        self._name, self._unit, self._depth = name, unit, depth
        self._shares = shares
        self._places: dict[bytes, int] = {}
        self._first_beyond: str | None = None
        self.data = bytearray()

    def add(self, data: bytes, layer: str) -> int:
        """The address, in units, of these bytes; it may lie behind the memory's end."""
        if self._shares and data in self._places:
            return self._places[data]
        place = len(self.data) // self._unit
        if self._shares:
            self._places[data] = place
        self.data += data
        if self._first_beyond is None and len(self.data) > self._depth * self._unit:
            self._first_beyond = layer
        return place

    def check(self) -> None:
        """CapacityError if not all fits."""
        if self._first_beyond is not None:
            raise CapacityError(
                f"layer {self._first_beyond!r}: the {self._name} memory must hold"
                f" {len(self.data)} bytes for the whole network, but has"
                f" {self._depth * self._unit}, and this layer is the first that does not fit"
            )


class Images:
    """The contents of weight and parameter memory as operations add to them.

    Parameters
    ----------
    configuration : Configuration
    shares : bool
        Whether what is equal is stored once: addresses depend on the contents then.
    """

    def __init__(self, configuration: Configuration, *, shares: bool = True) -> None:
        self._configuration = configuration
        self._weights = _Store(
            "weight", configuration.columns, configuration.weight_words, shares=shares
        )
        self._parameters = _Store(
            "parameter",
            configuration.parameter_bytes,
            configuration.parameter_words,
            shares=shares,
        )

    def add_weights(self, words: np.ndarray, layer: str) -> int:
        """The weight address of these words, int8 (words, C)."""
        return self._weights.add(words.tobytes(), layer)

    def add_table(self, table: np.ndarray, layer: str) -> tuple[int, int]:
        """(address, words) of a table of int32 in weight memory."""
        data = table.astype("<i4").tobytes()
        return self._weights.add(data, layer), len(data) // self._configuration.columns

    def add_parameters(self, values: Requantization, first: int, count: int, layer: str) -> int:
        """The parameter address of ``count`` channels from ``first`` on, whole slices of L."""
        lanes = self._configuration.lanes
        words = np.zeros(-(-count // lanes) * lanes, _PARAMETER)
        words["shift"] = _IDLE_SHIFT
        for name in ("bias", "multiplier", "shift"):
            words[name][:count] = getattr(values, name)[first : first + count]
        return self._parameters.add(words.tobytes(), layer)

    def add_single(self, values: Requantization, layer: str) -> int:
        """The parameter address of one entry for all lanes."""
        words = np.zeros(self._configuration.lanes, _PARAMETER)
        for name in ("bias", "multiplier", "shift"):
            words[name] = getattr(values, name)[0]
        return self._parameters.add(words.tobytes(), layer)

    def all(self) -> tuple[Image, ...]:
        """The images to load; CapacityError if a memory is too small."""
        stores = ((Space.WEIGHTS, self._weights), (Space.PARAMETERS, self._parameters))
        for _, store in stores:
            store.check()
        return tuple(
            Image(int(space), 0, bytes(store.data)) for space, store in stores if store.data
        )
