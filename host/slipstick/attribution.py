"""To which layer a cycle counts: layers overlap in time, yet each cycle is one layer's."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class LayerTimes:
    """When a layer's instructions worked, in cycles.

    Parameters
    ----------
    array_starts, array_ends : list of int
        Of its CONVOLVEs: the first vector, and when the sums had landed.
    post_ends : list of int
        Of its post instructions: when the results had landed.
    """

    array_starts: list[int] = field(default_factory=list)
    array_ends: list[int] = field(default_factory=list)
    post_ends: list[int] = field(default_factory=list)

    def note(self, on_array: bool, start: int, end: int) -> None:
        """Counts an instruction in."""
        if on_array:
            self.array_starts.append(start)
            self.array_ends.append(end)
        else:
            self.post_ends.append(end)

    @property
    def works(self) -> bool:
        """Whether the layer has instructions at all."""
        return bool(self.array_ends or self.post_ends)


def attribute(layers: Sequence[LayerTimes], end: int, begin: int = 0) -> list[int]:
    """The cycles of each layer of one run; they sum up to ``end - begin``.

    A layer of the array counts until its last sums have landed: no layer can count fewer cycles
    than the array streamed for it, so no share of peak passes 100 %. A layer of the post-processor
    alone counts until its results have landed, or until the array works on a later layer: what
    hides under the array is free. The last layer counts until the run is over.

    Parameters
    ----------
    layers : sequence of LayerTimes
        In the order of execution.
    end, begin : int
        Of the run.
    """
    cycles = [0] * len(layers)
    reached, next_start = begin, end
    ends = [0] * len(layers)
    for index in reversed(range(len(layers))):
        times = layers[index]
        if times.array_ends:
            ends[index] = max(times.array_ends)
            next_start = min(times.array_starts)
        elif times.post_ends:
            ends[index] = min(max(times.post_ends), next_start)
    for index, layer_end in enumerate(ends):
        cycles[index] = max(layer_end - reached, 0)
        reached = max(reached, layer_end)
    working = [index for index, times in enumerate(layers) if times.works]
    if working:
        cycles[working[-1]] += end - reached
    return cycles
