"""Counts each cycle for a layer: layers overlap in time, yet each cycle is one layer's."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class LayerTimes:
    """Records when a layer's instructions worked, in cycles.

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
        """Tells whether the layer has instructions at all."""
        return bool(self.array_ends or self.post_ends)


def attribute(layers: Sequence[LayerTimes], end: int, begin: int = 0) -> list[int]:
    """The cycles of each layer of one run; they sum up to ``end - begin``.

    From when the sums of one instruction of the array have landed until those of the next have,
    cycles are the layer's of the latter, however layers take turns: no layer can count fewer cycles
    than the array streamed for it, so no share of peak passes 100 %. Of these, while the array
    waits, those until results have landed of a layer before it that is the post-processor's alone
    are that layer's: what hides under the array is free. The last layer counts until the run is
    over.

    Parameters
    ----------
    layers : sequence of LayerTimes
        In the order of the network.
    end, begin : int
        Of the run.
    """
    cycles = [0] * len(layers)
    reached = begin
    array = sorted(
        (landed, start, index)
        for index, times in enumerate(layers)
        for start, landed in zip(times.array_starts, times.array_ends, strict=True)
    )
    post = deque(
        sorted(
            (landed, index)
            for index, times in enumerate(layers)
            if not times.array_ends
            for landed in times.post_ends
        )
    )

    def give(index: int, until: int) -> None:
        nonlocal reached
        cycles[index] += max(until - reached, 0)
        reached = max(reached, until)

    for landed, start, layer in array:
        while post and post[0][0] <= reached:
            post.popleft()
        for done, index in post:
            if reached >= start:
                break
            if index < layer:
                give(index, min(done, start))
        give(layer, landed)
    for done, index in post:
        give(index, done)
    working = [index for index, times in enumerate(layers) if times.works]
    if working:
        give(working[-1], end)
    return cycles
