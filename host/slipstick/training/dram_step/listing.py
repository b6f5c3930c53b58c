"""Collects a list for the DMA: its steps in the order of the program, and the constants."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import TRANSFER_BYTES, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_blocks import constant_loads
from ...program.steps import Image
from .cutting import cut
from .effects import Access, Step, moving
from .schedule import WAIT, best_schedule, schedule
from .timeline import predict_list

_LONGEST_CYCLES = 2000
"""Most cycles of a LOAD or STORE that is not split into several."""


class Listing:
    """A list that is being written.

    Parameters
    ----------
    configuration : Configuration
        With DRAM.
    first : int
        The word of DRAM for the first constants.

    Members
    -------
    steps : list of Step
    """

    def __init__(self, configuration: Configuration, first: int) -> None:
        self._configuration, self._first, self._place = configuration, first, first
        self.steps: list[Step] = []
        self._blocks: list[bytes] = []
        self._changing: dict[str, _Constants] = {}
        self._updates: dict[str, list[int]] = {}

    def move(self, transfer: Transfer, longest: int = _LONGEST_CYCLES, *, name: str = "") -> None:
        """Adds a LOAD, STORE or UPDATE; long LOADs and STOREs as several, to fit beside short runs.

        Parameters
        ----------
        transfer : Transfer
        longest : int
            Cycles that it may take.
        name : str
            Of a layer whose weights an UPDATE updates, for :meth:`Listed.set_shift`.
        """
        step = moving(transfer, self._configuration)
        count = -(-step.cycles // longest)
        updates = transfer.operation is Operation.UPDATE
        if updates:
            self._updates.setdefault(name, []).append(len(self.steps))
        if count == 1 or transfer.checked or updates:
            self.steps.append(step)
            return
        for part in cut(transfer, count, self._configuration):
            self.steps.append(moving(part, self._configuration))

    def run(
        self, pcs: tuple[int, int], accesses: Sequence[Access], cycles: int, busy: int = 0
    ) -> None:
        """Adds a RUN.

        Parameters
        ----------
        pcs : (int, int)
        accesses : sequence of Access
            All that it reads and writes.
        cycles, busy : int
            Predicted.
        """
        self.steps.append(Step(Transfer(operation=Operation.RUN, pcs=pcs), accesses, cycles, busy))

    def load_constants(self, space: Space, address: int, data: bytes, name: str = "") -> None:
        """Adds LOADs of instructions or weights, which lie in DRAM behind those before.

        Parameters
        ----------
        space : Space
        address : int
            In the units of the memory.
        data : bytes
        name : str
            Of what changes from step to step, for :meth:`Listed.replace`.
        """
        if not data:
            return
        image = Image(int(space), address, data)
        block, loads = constant_loads(image, self._configuration, self._place)
        if name:
            steps = range(len(self.steps), len(self.steps) + len(loads))
            self._changing[name] = _Constants(image, self._place, loads, steps)
        self._blocks.append(block)
        self._place += len(block) // WORD_BYTES
        for load in loads:
            self.move(load)

    def predict(self) -> int:
        """Cycles of the list."""
        return predict_list(self.steps, schedule(self.steps))

    def finish(self) -> "Listed":
        """The list in its order, behind the constants."""
        order = best_schedule(self.steps)
        transfers = [WAIT if n is None else self.steps[n].transfer for n in order]
        transfers.append(Transfer(operation=Operation.END))
        packed = b"".join(transfer.pack() for transfer in transfers)
        places = {number: at for at, number in enumerate(order) if number is not None}
        at = {
            name: [places[number] for number in constants.steps]
            for name, constants in self._changing.items()
        }
        updates = {
            name: [places[number] for number in numbers] for name, numbers in self._updates.items()
        }
        contents = bytearray(b"".join(self._blocks) + packed)
        return Listed(
            self._configuration,
            self._first,
            self._place,
            contents,
            self._changing,
            at,
            updates,
        )


@dataclass(frozen=True)
class _Constants:
    """Constants that change.

    Parameters
    ----------
    image : Image
        What they were.
    place : int
        The word of DRAM of the first one.
    loads : sequence of Transfer
    steps : range
        Which load them.
    unchecked : collection of int
        Which of ``loads`` have no CRC: the device writes some of their words.
    """

    image: Image
    place: int
    loads: Sequence[Transfer]
    steps: range
    unchecked: Collection[int] = ()

    @property
    def layout(self) -> list[Transfer]:
        """The LOADs, whatever they load."""
        return [dataclasses.replace(load, crc=0) for load in self.loads]


class Listed:
    """Constants and a list, as they lie in DRAM.

    Parameters
    ----------
    configuration : Configuration
    first, entry : int
        The first word of the constants, and that of the list.
    contents : bytearray
    changing : dict of _Constants by name
    places : mapping of sequence of int by name
        Which instructions of the list load them.
    updates : mapping of sequence of int by name
        Which instructions update a layer's weights.
    """

    def __init__(
        self,
        configuration: Configuration,
        first: int,
        entry: int,
        contents: bytearray,
        changing: dict[str, _Constants],
        places: Mapping[str, Sequence[int]],
        updates: Mapping[str, Sequence[int]],
    ) -> None:
        self._configuration, self._first = configuration, first
        self.entry, self.contents = entry, contents
        self._changing, self._places, self._updates = changing, places, updates

    @property
    def names(self) -> list[str]:
        """Returns the names of the constants that change."""
        return list(self._changing)

    def replace(self, name: str, data: bytes) -> bool:
        """Puts other constants in the place of those of a name.

        Returns
        -------
        bool
            False if they need other LOADs: then nothing is changed.
        """
        known = self._changing[name]
        if data == known.image.data:
            return True
        new, block = self._with(known, data)
        if new.layout != known.layout:
            return False
        first = (known.place - self._first) * WORD_BYTES
        self.contents[first : first + len(block)] = block
        self._put_loads(name, new)
        return True

    def block(self, name: str, data: bytes) -> tuple[int, bytes]:
        """Returns the first word of constants of a name, and what other ones would be there.

        Raises
        ------
        ValueError
            If they need other LOADs.
        """
        known = self._changing[name]
        new, block = self._with(known, data)
        if new.layout != known.layout:
            raise ValueError(f"constants of {name!r} must be loaded alike, whatever the weights")
        return known.place, block

    def uncheck(self, name: str, first: int, last: int) -> None:
        """Takes the CRC from LOADs of constants of a name that read some of these words."""
        known = self._changing[name]
        unchecked = [
            number
            for number, load in enumerate(known.loads)
            if load.dram <= last and first < load.dram + load.words
        ]
        self._put_loads(name, dataclasses.replace(known, unchecked=unchecked))

    def set_shift(self, name: str, shift: int) -> None:
        """Puts another shift into the UPDATEs of a layer."""
        for place in self._updates[name]:
            at = self._at(place)
            update = Transfer.unpack(bytes(self.contents[at : at + TRANSFER_BYTES]))
            self._put(place, dataclasses.replace(update, shift=shift))

    def _with(self, known: _Constants, data: bytes) -> tuple[_Constants, bytes]:
        image = dataclasses.replace(known.image, data=data)
        block, loads = constant_loads(image, self._configuration, known.place)
        return dataclasses.replace(known, image=image, loads=loads), block

    def _put_loads(self, name: str, constants: _Constants) -> None:
        self._changing[name] = constants
        for number, place in enumerate(self._places[name]):
            load = constants.loads[number]
            if number in constants.unchecked:
                load = dataclasses.replace(load, checked=False, crc=0)
            self._put(place, load)

    def _put(self, place: int, transfer: Transfer) -> None:
        at = self._at(place)
        self.contents[at : at + TRANSFER_BYTES] = transfer.pack()

    def _at(self, place: int) -> int:
        """The byte of ``contents`` of an instruction of the list."""
        return (self.entry - self._first) * WORD_BYTES + place * TRANSFER_BYTES
