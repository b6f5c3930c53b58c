"""Golden model of the whole core: both instruction streams over NumPy memories, without clocks."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import TRANSFER_BYTES, DmaStatus
from slipstick_rtl.isa import STREAMS, WORDS_PER_INSTRUCTION, Opcode, accumulator_place
from slipstick_rtl.link.protocol import DeviceStatus, Space

from .convolve import Scratch
from .dma import GoldenDma
from .memories import Memories
from .post import drain, load_table, map_taps, table_entries
from .repeats import turn, turns

Order = str | int
"""``matrix_first``, ``post_first``, or a seed that draws each choice between the streams."""

HAZARD_ORDERS: tuple[Order, ...] = ("matrix_first", "post_first", 1)
"""The orders that ``check_hazards`` holds against each other.

The first two suffice: whatever pair of instructions the waits leave unordered runs one way round
in the first and the other way round in the second, since in each the stream that stands back goes
on only when the other cannot without it.
"""

_COUNTER_MASK = 0xFFFF


class DeadlockError(RuntimeError):
    """Neither instruction stream can go on: each waits for the other, or for one that ended."""


class HazardError(RuntimeError):
    """A program's result depends on the order in which its two streams run."""


@dataclass
class _Stream:
    """One instruction stream while it runs: where it is, and what its instruction waits for."""

    name: str
    word: int
    turn: int = 0
    wait: int = 0
    ended: bool = False

    @property
    def other(self) -> str:
        """The stream whose completed instructions this one waits for."""
        first, second = STREAMS
        return second if self.name == first else first

    def advance(self, turns: int) -> None:
        """Goes to the next turn of an instruction that has so many, or to the next instruction."""
        self.turn += 1
        if self.turn == turns:
            self.turn, self.word = 0, self.word + WORDS_PER_INSTRUCTION

    def state(self, done: int) -> str:
        """Describes the stream for a deadlock's message."""
        if self.ended:
            return f"the {self.name} stream has ended at word {self.word}"
        return (
            f"the {self.name} stream at word {self.word} waits for {self.wait} instructions of the"
            f" other, of which {done} are done"
        )


_Choice = tuple[_Stream, dict[str, int]]
_Snapshot = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, int], bool]


class GoldenCore:
    """The core as software: the same memories, commands and results, bit for bit; no cycles.

    Parameters
    ----------
    configuration : Configuration
    batch : int
        Copies of the activation memory. A program runs on all of them at once.
    memories : Memories, optional
        Instructions, weights and parameters shared with another core.
    check_hazards : bool
        Every run is executed in several legal orders of the two streams (``HAZARD_ORDERS``) and
        must give the same activations in each.

    Members
    -------
    activations : array of int8, (batch, activation_bytes)
    accumulators : array of int32, (2, batch, accumulator_depth, P, C)
    memories : Memories
    """

    def __init__(
        self,
        configuration: Configuration,
        batch: int = 1,
        *,
        memories: Memories | None = None,
        check_hazards: bool = False,
    ) -> None:
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}")
        self.configuration = configuration
        self.batch = batch
        self.memories = memories or Memories(configuration)
        self.activations = np.zeros((batch, configuration.activation_bytes), np.int8)
        depth, pixels = configuration.accumulator_depth, configuration.pixels
        self.accumulators = np.zeros((2, batch, depth, pixels, configuration.columns), np.int32)
        self._table = np.zeros(table_entries(configuration), np.int32)
        lanes = configuration.lanes if configuration.training else 0
        self._notes = np.zeros((batch, lanes), np.int32)
        self._scratch = Scratch()
        self._check_hazards = check_hazards
        self._done = dict.fromkeys(STREAMS, 0)
        self._bad_instruction = False
        self.dma: GoldenDma | None = None
        if configuration.dram_chip is not None:
            dram = np.zeros(configuration.dram_chip.bytes, np.uint8)
            self.dma = GoldenDma(
                dram,
                _CoreMemories(self),
                ninth_bits=bool(configuration.ninth_bits),
                training=bool(configuration.training),
            )

    def batched(self, batch: int, *, shared: bool = True) -> "GoldenCore":
        """A core of another batch: it shares the memories that a run only reads, also when they
        are written later, unless it gets copies of its own; and it starts with this one's first
        activations and accumulators for every image."""
        core = GoldenCore(
            self.configuration,
            batch,
            memories=self.memories if shared else self.memories.copy(),
            check_hazards=self._check_hazards,
        )
        core.activations[:] = self.activations[0]
        core._table[:] = self._table
        core._notes[:] = self._notes[:1]
        core.accumulators[:] = self.accumulators[:, :1]
        return core

    def write(self, space: int, address: int, data: bytes) -> None:
        """Writes whole units of a memory; to ACTIVATIONS, the same bytes for the whole batch.

        Raises
        ------
        ValueError
            If the space is unknown, or the data are not whole units within it.
        """
        if Space(space) is Space.TRANSFERS:
            self._give(data)
        elif Space(space) is Space.ACTIVATIONS:
            values = np.frombuffer(data, np.int8)
            self.write_batch(address, np.broadcast_to(values, (self.batch, len(values))))
        else:
            self.memories.write(Space(space), address, data)

    def read(self, address: int, count: int) -> bytes:
        """Bytes of the first image's activation memory."""
        self._check_addresses(address, count)
        return self.activations[0, address : address + count].tobytes()

    def write_batch(self, address: int, data: np.ndarray) -> None:
        """Writes ``data``, int8 (batch, n), into each image's activation memory."""
        if data.dtype != np.int8 or data.ndim != 2 or len(data) != self.batch:
            raise ValueError(
                f"data must be int8 ({self.batch}, n), not {data.dtype} {tuple(data.shape)}"
            )
        self._check_addresses(address, data.shape[1])
        self.activations[:, address : address + data.shape[1]] = data

    def read_batch(self, address: int, count: int) -> np.ndarray:
        """A copy of ``count`` bytes of each image's activation memory, int8 (batch, count)."""
        self._check_addresses(address, count)
        return self.activations[:, address : address + count].copy()

    def status(self) -> DeviceStatus:
        """Never running, as a run ends before ``run`` returns; all cycles are 0."""
        done = tuple(count & _COUNTER_MASK for count in self._done.values())
        dma = self.dma.status if self.dma is not None else DmaStatus.OK
        return dataclasses.replace(
            DeviceStatus.idle(done),
            bad_instruction=self._bad_instruction or dma is not DmaStatus.OK,
            dma=dma,
        )

    @property
    def bad_instruction(self) -> bool:
        """The last run met one."""
        return self._bad_instruction

    def wait(self) -> bool:
        """True: a run has ended when ``run`` returns."""
        return True

    def reset(self) -> None:
        """Forgets the last run; memories keep their contents."""
        self._done = dict.fromkeys(STREAMS, 0)
        self._bad_instruction = False
        if self.dma is not None:
            self.dma.clear()

    def _give(self, packed: bytes) -> None:
        """Instructions for the DMA."""
        if self.dma is None or self.batch != 1 or len(packed) % TRANSFER_BYTES:
            raise ValueError(
                f"TRANSFERS take whole units of {TRANSFER_BYTES} bytes, on hardware with DRAM and"
                f" in a batch of 1, not {len(packed)} bytes in a batch of {self.batch}"
            )
        for first in range(0, len(packed), TRANSFER_BYTES):
            self.dma.execute(packed[first : first + TRANSFER_BYTES])

    def run(self, pcs: Sequence[int], clear: bool, order: Order = "matrix_first") -> None:
        """Runs all streams to their ends.

        Parameters
        ----------
        pcs : sequence of int
            Words of the instruction memory where the streams start.
        clear : bool
            Whether the completion counters start from 0.
        order : str or int
            Which stream goes on while both may: see ``Order``. With ``check_hazards`` it is only
            the order whose accumulators and table remain.

        Raises
        ------
        DeadlockError
            If neither stream may go on. (After a bad instruction the run just ends: the gateware
            would wait for a RESET.)
        HazardError
            With ``check_hazards``, if two legal orders give different activations.
        ValueError
            If an instruction breaks a rule of the instruction set.
        """
        if not self._check_hazards:
            self._run(pcs, clear, order)
            return
        before = self._snapshot()
        self._run(pcs, clear, order)
        result = self._snapshot()
        for other in HAZARD_ORDERS:
            if other == order:
                continue
            self._restore(before)
            self._run(pcs, clear, other)
            differing = np.flatnonzero((self.activations != result[0]).any(axis=0))
            if len(differing):
                raise HazardError(
                    f"activations must not depend on the order of the streams, but {order!r} and"
                    f" {other!r} differ in {len(differing)} bytes from address {differing[0]} on"
                )
        self._restore(result)

    def _run(self, pcs: Sequence[int], clear: bool, order: Order) -> None:
        choose = _chooser(order)
        if clear:
            self._done = dict.fromkeys(STREAMS, 0)
        self._bad_instruction = False
        streams = [_Stream(name, pc) for name, pc in zip(STREAMS, pcs, strict=True)]
        while not all(stream.ended for stream in streams):
            ready = [
                (stream, instruction)
                for stream in streams
                if (instruction := self._next(stream)) is not None
            ]
            if ready:
                stream, instruction = choose(ready)
                self._execute(stream, instruction)
                self._done[stream.name] += 1
                stream.advance(turns(instruction))
            elif self._bad_instruction:
                return
            elif not all(stream.ended for stream in streams):
                states = [stream.state(self._done[stream.other]) for stream in streams]
                raise DeadlockError(f"neither stream can go on: {'; '.join(states)}")

    def _next(self, stream: _Stream) -> dict[str, int] | None:
        """The turn that is next in a stream, if it may start; HALT and what is bad end it."""
        if stream.ended:
            return None
        instruction = self.memories.instruction(stream.name, stream.word)
        if instruction is None or instruction["opcode"] == Opcode.HALT:
            # after a bad instruction the other stream still goes as far as it may
            self._bad_instruction |= instruction is None
            stream.ended = True
            return None
        instruction = turn(instruction, stream.turn)
        stream.wait = instruction["wait"]
        return instruction if self._done[stream.other] >= stream.wait else None

    def _execute(self, stream: _Stream, instruction: dict[str, int]) -> None:
        memories, configuration = self.memories, self.configuration
        opcode, bank = instruction["opcode"], self._bank(instruction)
        if opcode == Opcode.CONVOLVE:
            memories.prepared(stream.word, stream.turn)(self.activations, bank, self._scratch)
        elif opcode == Opcode.TABLE:
            load_table(instruction, memories.weights, self._table, configuration)
        elif opcode == Opcode.DRAIN:
            address, slices = instruction["parameter_address"], instruction["slices"]
            parameters = memories.channel_parameters(address, slices)
            table, activations = self._table, self.activations
            drain(instruction, bank, parameters, activations, configuration, self._notes, table)
        else:
            parameters = memories.channel_parameters(instruction["parameter_address"], 1)
            table, activations = self._table, self.activations
            map_taps(instruction, table, parameters, activations, configuration, self._notes)

    def _bank(self, instruction: dict[str, int]) -> np.ndarray:
        """The accumulators that an instruction names, (batch, words, P, C)."""
        depth, most = self.configuration.accumulator_depth, self.configuration.largest_parts
        if instruction["parts"] > most:
            raise ValueError(f"parts must be within 0..{most}, not {instruction['parts']}")
        half, first, words = accumulator_place(instruction["bank"], instruction["parts"], depth)
        return self.accumulators[half][:, first : first + words]

    def _check_addresses(self, address: int, count: int) -> None:
        size = self.configuration.activation_bytes
        if address < 0 or count < 0 or address + count > size:
            raise ValueError(
                f"ACTIVATIONS must be within 0..{size}, not {address}..{address + count}"
            )

    def _snapshot(self) -> _Snapshot:
        return (
            self.activations.copy(),
            self.accumulators.copy(),
            self._table.copy(),
            self._notes.copy(),
            dict(self._done),
            self._bad_instruction,
        )

    def _restore(self, snapshot: _Snapshot) -> None:
        self.activations[...], self.accumulators[...] = snapshot[:2]
        self._table[...], self._notes[...] = snapshot[2:4]
        self._done, self._bad_instruction = dict(snapshot[4]), snapshot[5]


class _CoreMemories:
    """A core as the DMA sees it."""

    def __init__(self, core: GoldenCore) -> None:
        self._core = core

    def _places(self, address: int, count: int) -> np.ndarray:
        return (address + np.arange(count)) % self._core.configuration.activation_bytes

    def write_activations(self, address: int, values: np.ndarray) -> None:
        self._core.activations[0, self._places(address, len(values))] = values.view(np.int8)

    def read_activations(self, address: int, count: int) -> np.ndarray:
        return self._core.activations[0, self._places(address, count)].view(np.uint8)

    def write_groups(self, first: int, cells: np.ndarray, ninth: np.ndarray | None) -> None:
        self._core.memories.write_groups(first, cells, ninth)

    def write_instructions(self, first: int, words: np.ndarray) -> None:
        self._core.memories.write(Space.INSTRUCTIONS, first, words.tobytes())

    def run_streams(self, pcs: tuple[int, int]) -> bool:
        self._core.run(pcs, clear=True)
        return not self._core.bad_instruction


def _chooser(order: Order) -> Callable[[list[_Choice]], _Choice]:
    """A function that picks which stream goes on among those that may, matrix before post."""
    if isinstance(order, int):
        return random.Random(order).choice
    if order not in ("matrix_first", "post_first"):
        raise ValueError(f"order must be 'matrix_first', 'post_first' or a seed, not {order!r}")
    return lambda ready: ready[0 if order == "matrix_first" else -1]
