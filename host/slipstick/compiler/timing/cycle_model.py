"""The cycle model: when each instruction starts beside the other stream, and when it is done.

How long its parts take stands in ``latencies.py``; constants here say how long after one another
they begin. Whole programs are held against the gateware by
``tests/host/verify/test_random_rtl.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from slipstick_rtl.isa import WORDS_PER_INSTRUCTION, Opcode

from .latencies import Durations

LOADER_HANDOVER = 0
"""Cycles from a CONVOLVE's last tile's start until the weight loader can take the next one."""

FETCH_CYCLES = WORDS_PER_INSTRUCTION + 5
"""Cycles from one instruction's being taken until the next one of its stream can be."""

START_CYCLES = 2 * WORDS_PER_INSTRUCTION + 9
"""Cycles from RUN until the first instructions are decoded: both streams fetch in turns."""

END_CYCLES = 1
"""Cycles from the last completion until the run is over."""

MATRIX_HANDOVER = 2
"""Cycles from a post instruction's completion until a CONVOLVE that waits for it starts."""

POST_HANDOVER = 3
"""Cycles from a CONVOLVE's completion until a post instruction that waits for it starts."""

POST_PIPELINE = 26
"""Cycles of ``POST_LATENCY`` in which a MAP's last results are under way and their writes stop no
reads."""

QUEUE_CYCLES = 19
"""Cycles from an instruction's being offered until its parameters are in place, beyond their words
and the weight memory's skew, if they are read ahead and the last ones are in use already."""

QUEUE_BURST = 14
"""Words that are read at once, before those of weights, when a block has been taken."""

ACCEPTANCE_CYCLES = 2
"""Cycles from an instruction's start until the next one is held in its place."""

FIELDS_PERIOD = 23
"""At least, from one post instruction's start to the next one's."""

MAP_HANDOVER = 2
"""Cycles from the completion of what is before it until a MAP or a TABLE starts."""


@dataclass(frozen=True, slots=True)
class _TileTimes:
    """Durations of a CONVOLVE's tiles."""

    fields: Mapping[str, int]
    vectors: int
    period: int
    pair_period: int
    load: int
    words: int


@dataclass(frozen=True)
class CycleModel(Durations):
    """Durations, and clocks that count with them."""

    @cached_property
    def _known_tiles(self) -> dict[int, _TileTimes]:
        """By the identity of the fields, which are kept: a search issues them again and again."""
        return {}

    def tile_times(self, fields: Mapping[str, int]) -> _TileTimes:
        """Returns all durations of a CONVOLVE's tiles."""
        times = self._known_tiles.get(id(fields))
        if times is None:
            times = self._known_tiles[id(fields)] = _TileTimes(
                fields,
                self.vectors(fields),
                self.tile_period(fields),
                self.tile_period(fields, pairs=True),
                self.tile_load(fields),
                self.tile_words(fields),
            )
        return times

    def clock(self) -> "Clock":
        """The state of both engines at the start of a run."""
        return Clock(self)

    def work_to_the_end(
        self, units: Iterable[Sequence[Mapping[str, int]]]
    ) -> tuple[list[int], list[int]]:
        """Adds up the least cycles of each unit and all behind it, array's and post-processor's.

        Parameters
        ----------
        units : iterable of sequences of mappings
            The fields of instructions, some together.

        Returns
        -------
        array_work, post_work : list of int
            One for each unit, and one more for none.
        """
        works: tuple[list[int], list[int]] = [0], [0]
        for unit in reversed(list(units)):
            both = [0, 0]
            for fields in unit:
                is_matrix = fields["opcode"] == Opcode.CONVOLVE
                work = self._array_work if is_matrix else self._post_work
                both[not is_matrix] += work(fields)
            for found, own in zip(works, both, strict=True):
                found.append(found[-1] + own)
        for found in works:
            found.reverse()
        return works

    def _array_work(self, fields: Mapping[str, int]) -> int:
        """Cycles from the last vector before a CONVOLVE to its own last one, at least."""
        tiles, times = fields["reduction_tiles"], self.tile_times(fields)
        if not fields["pairs"]:
            return (tiles - 1) * times.period + times.vectors
        if tiles == 1:
            return times.vectors // 2
        # the first tile takes two vectors a cycle
        return times.pair_period + (tiles - 2) * times.period + times.vectors

    def _post_work(self, fields: Mapping[str, int]) -> int:
        """Cycles from the last step before a post instruction to its own last one, at least."""
        match fields["opcode"]:
            case Opcode.TABLE:
                return 0
            case Opcode.DRAIN:
                return fields["rows"] * fields["columns"] * fields["slices"]
            case _:
                results = fields["rows"] * fields["columns"] * fields["slices"]
                # the last ones are written when all is read
                return results * (self.accesses(fields) - 1)


class Clock:
    """The state of both engines while instructions are issued to them in order.

    A reduction tile streams rows x groups vectors. The weights of the next tile, of the same
    instruction or the next, load from its start on, so a tile lasts at least ``tile_load``. Sums
    land ``matrix_latency`` after the last vector, while the next CONVOLVE may be streaming already.

    The post-processor takes the steps of DRAIN after DRAIN without a gap if their parameters are
    there; these load while the instruction before works on its last slice.
    """

    def __init__(self, model: CycleModel) -> None:
        self._model = model
        self._tile_started = START_CYCLES - LOADER_HANDOVER
        self._streamed = START_CYCLES
        self._landed = START_CYCLES
        self._matrix_fetched = START_CYCLES
        self._period = model.configuration.tile_words
        self._post_fetched = START_CYCLES
        self._post_stepped = START_CYCLES
        self._post_done = START_CYCLES
        self._slice_started = START_CYCLES - FIELDS_PERIOD
        self._post_started = START_CYCLES - FIELDS_PERIOD
        self._table_loaded = self._after_table = self._loading = self._foreseen = 0
        self._reads = 0
        self._accepted = START_CYCLES
        self._queued = START_CYCLES
        # the first results' parameters are read before the first weights
        self._held = max(model.configuration.parameter_block_words - 1, 0)

    def copy(self) -> "Clock":
        """An independent copy."""
        other = Clock.__new__(Clock)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def end(self) -> int:
        """Returns the cycle at which all that was issued has completed."""
        return max(self._landed, self._post_done)

    def end_after(self, array_work: int, post_work: int) -> int:
        """Returns the earliest cycle at which all has completed, if so much work follows.

        ``CycleModel.work_to_the_end`` counts it.
        """
        model, done = self._model, self._post_done
        if post_work:
            done = self._post_stepped + post_work + model.post_latency
        return max(self._streamed + array_work + model.matrix_latency, done)

    def issue(
        self, fields: Mapping[str, int], ready: int, repeated: bool = False
    ) -> tuple[int, int]:
        """Issues an instruction: its start and its completion.

        Parameters
        ----------
        fields : mapping of int by name
        ready : int
            When its wait is over.
        repeated : bool
            It is a further turn of the one before it: it need not be fetched.
        """
        match fields["opcode"]:
            case Opcode.CONVOLVE:
                return self._convolve(fields, ready, repeated)
            case Opcode.TABLE:
                return self._table(fields, ready)
            case Opcode.DRAIN:
                return self._drain(fields, ready, repeated)
            case _:
                return self._map(fields, ready)

    def _convolve(self, fields: Mapping[str, int], ready: int, repeated: bool) -> tuple[int, int]:
        model, times = self._model, self._model.tile_times(fields)
        tiles, vectors = fields["reduction_tiles"], times.vectors
        self._period = times.period
        # taken when the last tile before it started, or else when it has been fetched
        taken = self._tile_started + LOADER_HANDOVER + self._held
        if not repeated:
            taken = max(taken, self._matrix_fetched)
            self._matrix_fetched = taken + FETCH_CYCLES
        loaded = max(self._streamed, taken + times.load)
        first = max(loaded, ready + MATRIX_HANDOVER)
        self._loading = tiles * self._period
        self._hold_up_table(first, self._loading)
        # while it waited parameters could be read
        stolen = max(self._stolen(tiles, times.words) - (first - loaded), 0)
        self._tile_started = first + (tiles - 1) * self._period
        if fields["pairs"]:
            # the first tile takes two vectors a cycle
            self._tile_started -= times.period - times.pair_period if tiles > 1 else 0
            vectors = vectors // 2 if tiles == 1 else vectors
        # the first tile's weights have come: it is the next one's, of whichever instruction
        self._held = stolen if tiles == 1 else 0
        self._tile_started += stolen - self._held
        self._streamed = self._tile_started + vectors
        self._landed = self._streamed + model.matrix_latency
        return first, self._landed

    def _stolen(self, tiles: int, words: int) -> int:
        """Cycles that reads of parameters, which come first, cost the loader of weights."""
        configuration = self._model.configuration
        slack = self._period - words
        spare = tiles * slack
        # those of more than the last two were read before
        reads = min(self._reads, 2 * configuration.parameter_block_words)
        stolen = max(reads - spare, 0)
        # the loader is not a tile ahead
        stolen = max(stolen, min(reads, QUEUE_BURST) - slack)
        self._reads = 0
        if configuration.ninth_bits:
            # no more come than there is room for while weights are loaded
            urgent = self._model.urgent_words
            loading = tiles * words
            stolen = min(stolen, int(loading * urgent / (1 - urgent)))
        return stolen

    def _taken(self, ready: int, repeated: bool) -> int:
        """Returns the cycle at which a post instruction has its parameters and its wait is over.

        The parameters come before the wait is over if they can.
        """
        fetched = 0 if repeated else self._post_fetched
        model, words = self._model, self._model.configuration.parameter_block_words
        begun = max(self._slice_started, fetched)
        self._reads += words
        loaded = max(begun + model.slice_period, self._post_started + FIELDS_PERIOD)
        if model.configuration.ninth_bits:
            # read from when it is offered, while the one before waits for its start
            begun = max(self._accepted, fetched)
            self._accepted = max(begun, self._slice_started + ACCEPTANCE_CYCLES)
            loaded = max(loaded, self._read_block(begun))
        if not repeated:
            self._post_fetched = begun + FETCH_CYCLES
        return max(loaded, ready + POST_HANDOVER)

    def _read_block(self, begun: int) -> int:
        """Returns the cycle at which the next block of parameters is in place.

        It may be read from cycle ``begun`` on.
        """
        model, words = self._model, self._model.configuration.parameter_block_words
        if begun >= self._queued:
            self._queued = begun + words
        else:
            # behind others it comes as fast as blocks can be taken, which gives it room
            self._queued += model.slice_period
        return self._queued + model.skew + QUEUE_CYCLES

    def _drain(self, fields: Mapping[str, int], ready: int, repeated: bool) -> tuple[int, int]:
        start = max(self._taken(ready, repeated), self._post_stepped)
        self._post_started = self._slice_started = start
        results, further = fields["rows"] * fields["columns"], fields["slices"] - 1
        if not self._model.configuration.ninth_bits:
            self._reads += further * self._model.configuration.parameter_block_words
        for _ in range(further):
            # a queue still has those of the slice before
            loaded = self._slice_started + self._model.slice_period
            self._slice_started = max(self._slice_started + results, loaded)
        self._post_stepped = self._slice_started + results
        return start, self._complete(start, self._post_stepped + self._model.post_latency)

    def _map(self, fields: Mapping[str, int], ready: int) -> tuple[int, int]:
        # what it reads must have been written
        start = max(self._taken(ready, False), self._post_done + MAP_HANDOVER)
        self._post_started = start
        results = fields["rows"] * fields["columns"] * fields["slices"]
        accesses = self._model.accesses(fields)
        # the last results are written when all is read; all, if the first come out later than that
        pipeline = POST_PIPELINE + self._model.result_table_latency
        late = min(results, -(-pipeline // accesses))
        if results * (accesses - 1) <= pipeline:
            late = results
        self._slice_started = start
        self._post_stepped = start + results * accesses - late
        return start, self._complete(start, self._post_stepped + self._model.post_latency)

    def _complete(self, start: int, done: int) -> int:
        self._after_table += done - max(start, self._post_done)
        self._post_done = done
        return done

    def _table(self, fields: Mapping[str, int], ready: int) -> tuple[int, int]:
        start = max(self._post_done + MAP_HANDOVER, self._post_fetched, ready + POST_HANDOVER)
        self._accepted = start
        self._post_fetched = start + FETCH_CYCLES
        work = self._model.table_work(fields["table_words"])
        # of what is at work, and of the CONVOLVE behind it, which mostly is such a one
        loading = max(self._tile_started + self._loading - start, 0)
        work += self._model.table_delay(work, self._period, loading)
        self._post_stepped = self._post_done = self._table_loaded = start + work
        self._after_table, self._foreseen = 0, self._loading
        return start, self._post_done

    def _hold_up_table(self, first: int, loading: int) -> None:
        """A table that is being loaded waits for the weights of a CONVOLVE that starts."""
        left = self._table_loaded - first
        loading = max(loading - self._foreseen, 0)
        self._foreseen = 0
        if left > 0:
            self._table_loaded += self._model.table_delay(left, self._period, loading)
            late = max(self._table_loaded + self._after_table - self._post_done, 0)
            self._post_stepped += late
            self._post_done += late
