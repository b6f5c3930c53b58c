"""Groups works that run one after the other for each image, with their tensors on the chip."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import Operation

from ...compiler.codegen.dram_tensors import DramTensor
from ...errors import CapacityError
from ...program.steps import Placement
from .chip import Lifetime, Pitches, allocate, placed
from .durations import run_cycles
from .effects import moving
from .notes import NOTE_DRAINS, note_pitch
from .places import box
from .relocation import HALT, INSTRUCTION_BYTES, Built, Shifts, Streams, moved
from .works import BlockWork, Key, ProductWork, Work, key_of

_Item = Key | int | str
"""Item on the chip: a tensor by its key, a work's block by its number, or the notes."""


@dataclass(frozen=True)
class Template:
    """A work with its program, whose tensors begin with byte 0.

    Parameters
    ----------
    work : Work
    built : Built
    halved : bool
        With half of the accumulators.
    """

    work: Work
    built: Built
    halved: bool = False

    @property
    def code_words(self) -> int:
        """Counts the words of instructions, with those by which the next work reads its notes."""
        notes = NOTE_DRAINS * INSTRUCTION_BYTES // 4 if self.work.noted else 0
        return self.built.streams.words + notes

    def cycles(self, configuration: Configuration) -> int:
        """Predicts the cycles of its run."""
        return run_cycles(self.built.streams.matrix, self.built.streams.post, configuration)

    def constant_words(self, configuration: Configuration) -> int:
        """Counts the words of weight memory."""
        return len(self.built.constants) // configuration.weight_unit_bytes


@dataclass(frozen=True)
class Segment:
    """Works whose tensors stay on the chip.

    Parameters
    ----------
    templates : sequence of Template
    places : mapping of Placement by key
        Of the tensors, in the first copy.
    blocks : mapping of int
        The first byte of a BlockWork's block, by its number.
    notes : int
        The first byte of the notes, which follow one another.
    end : int
        Behind the last byte.
    copies, copy_bytes : int
        Sets of places that take turns, and from one to the next.
    share : float
        Of the works around a tensor's lifetime, during which there is room for its moves.
    """

    templates: Sequence[Template]
    places: Mapping[Key, Placement]
    blocks: Mapping[int, int]
    notes: int
    end: int
    copies: int
    copy_bytes: int
    share: float

    @property
    def noted(self) -> list[str]:
        """Works that are noted, in the order of their notes."""
        return [each.work.name for each in self.templates if each.work.noted]

    def code_words(self) -> int:
        """Counts the words of instructions of all copies, and for reading the last notes."""
        return self.copies * sum(each.code_words for each in self.templates) + last_words(
            self.templates
        )


def last_words(templates: Sequence[Template]) -> int:
    """Counts the words of instructions of a program that reads the last work's notes."""
    if not templates[-1].work.noted:
        return 0
    return (NOTE_DRAINS * INSTRUCTION_BYTES + 2 * len(HALT)) // 4


def make_templates(
    works: Sequence[Work],
    pitches: Pitches,
    configuration: Configuration,
    *,
    halved: bool = False,
) -> list[Template]:
    """The programs of works; CapacityError if one does not fit."""
    found = list[Template]()
    for work in works:
        places = {key_of(each): placed(each, 0, pitches) for each in (*work.reads, *work.writes)}
        found.append(Template(work, work.build(places, configuration, halved=halved), halved))
    return found


def cut_segments(
    templates: Sequence[Template],
    pitches: Pitches,
    configuration: Configuration,
    room: tuple[int, int, int],
    roomy: float = 0.0,
) -> Iterator[Segment]:
    """Groups works, as many as fit.

    Parameters
    ----------
    templates : sequence of Template
    pitches : mapping
    configuration : Configuration
    room : (int, int, int)
        Words of the instruction memory and of the weight memory, bytes of the activation memory.
    roomy : float
        The ``share`` that segments should have: the higher, the smaller they are.

    Raises
    ------
    CapacityError
        If a single work does not fit.
    """
    begin = 0
    while begin < len(templates):
        best = None
        for end in range(begin + 1, len(templates) + 1):
            found = _segment(templates[begin:end], pitches, configuration, room)
            if found is None:
                break
            if best is None or best.share < roomy or found.share >= roomy:
                best = found
        if best is None:
            raise _refusal(templates[begin], pitches, configuration, room)
        yield best
        begin += len(best.templates)


def _store_cycles(tensor: DramTensor, pitches: Pitches, configuration: Configuration) -> int:
    """For all that is stored of a tensor: also errors as kernels, which takes longer."""
    transfer = box(Operation.STORE, placed(tensor, 0, pitches), tensor, 0)
    return _STORES * moving(transfer, configuration).cycles


def _segment(
    templates: Sequence[Template],
    pitches: Pitches,
    configuration: Configuration,
    room: tuple[int, int, int],
) -> Segment | None:
    """The segment of some works; None if it does not fit."""
    code = sum(each.code_words for each in templates)
    constants = sum(each.constant_words(configuration) for each in templates)
    last = last_words(templates)
    if code + last > room[0] or constants > room[1]:
        return None
    tensors, lifetimes = _lifetimes(templates, pitches, configuration)
    step, size = max(configuration.lanes, configuration.rows), room[2]
    found = _allocated(templates, lifetimes, pitches, size, step)
    if found is None:
        return None
    at, end, share = found
    places = {key: placed(tensor, at[key], pitches) for key, tensor in tensors.items()}
    blocks = {number: at[number] for number in at if isinstance(number, int)}
    copy_bytes = size // 2 // step * step
    twice = end <= copy_bytes and 2 * code + last <= room[0] and len(templates) <= _MOST_TWICE
    copies = 2 if twice else 1
    return Segment(templates, places, blocks, at[_NOTES], end, copies, copy_bytes, share)


def _allocated(
    templates: Sequence[Template],
    lifetimes: Mapping[_Item, Lifetime],
    pitches: Pitches,
    size: int,
    step: int,
) -> tuple[dict[_Item, int], int, float] | None:
    """Returns where everything lies, the end, and the share; None if it does not fit."""
    for share, in_place in _WAYS:
        items, roots = dict(lifetimes), dict[_Item, _Item]()
        if in_place:
            items, roots = _replace(templates, lifetimes, pitches)
        places, end = allocate(list(items.values()), len(templates), share, step)
        if end <= size:
            at = dict(zip(items, places, strict=True))
            return at | {key: at[root] for key, root in roots.items()}, end, share
    return None


def _replace(
    templates: Sequence[Template], lifetimes: Mapping[_Item, Lifetime], pitches: Pitches
) -> tuple[dict[_Item, Lifetime], dict[_Item, _Item]]:
    """Lifetimes where results take the places of what they replace, and whose those are."""
    items, roots = dict(lifetimes), dict[_Item, _Item]()
    for number, template in enumerate(templates):
        work = template.work
        for tensor in work.replaced:
            old, new = key_of(tensor), key_of(work.writes[0])
            before, after = lifetimes[old], lifetimes[new]
            if before.last != number or pitches[old] != pitches[new] or old[1:] != new[1:]:
                continue
            root = roots.get(old, old)
            items[root] = replace(items[root], last=after.last, behind=after.behind)
            del items[new]
            roots[new] = root
            break
    return items, roots


_NOTES = "notes"
_WAYS = (
    (1.0, False),
    (0.5, False),
    (1.0, True),
    (0.5, True),
    (0.25, False),
    (0.25, True),
    (0.01, False),
    (0.01, True),
    (0.0, False),
    (0.0, True),
)
"""Share of the works around lifetimes, and whether results replace what they are made of: from what
is best to what takes the least room."""
_MOST_TWICE = 2
"""Works of a segment that are given two sets of places: of more, others fill the time of moves."""


def _lifetimes(
    templates: Sequence[Template], pitches: Pitches, configuration: Configuration
) -> tuple[dict[Key, DramTensor], dict[_Item, Lifetime]]:
    """Tensors by key; lifetimes of them, of blocks by number, and of the notes."""
    tensors, spans = dict[Key, DramTensor](), dict[Key, tuple[int, int, bool]]()
    for number, template in enumerate(templates):
        work = template.work
        for tensor in (*work.reads, *work.writes):
            key = key_of(tensor)
            tensors[key] = tensor
            made = tensor in work.writes
            first, _, loaded = spans.get(key, (number, number, not made))
            spans[key] = first, number, loaded
    cycles = [each.cycles(configuration) for each in templates]
    lifetimes = dict[_Item, Lifetime]()
    for key, (first, last, loaded) in spans.items():
        stores = _store_cycles(tensors[key], pitches, configuration)
        before = _works_around(cycles, first, -1, _LOADS * stores // _STORES) if loaded else 0
        behind = max(first + _works_around(cycles, first, 1, stores) - last, 0)
        size = placed(tensors[key], 0, pitches).bytes
        lifetimes[key] = Lifetime(size, first, last, before, behind)
    for number, template in enumerate(templates):
        if isinstance(template.work, BlockWork):
            lifetimes[number] = Lifetime(template.work.block_bytes, number, number)
    noted = sum(template.work.noted for template in templates)
    notes = max(noted * note_pitch(configuration), 1)
    lifetimes[_NOTES] = Lifetime(notes, 0, len(templates) - 1)
    return tensors, lifetimes


_LOADS = 1
_STORES = 2
"""Times that a tensor's STORE takes, for all that is stored of it, about."""


def _works_around(cycles: Sequence[int], number: int, step: int, needed: int) -> int:
    """Works behind one, or before it, whose runs take so long; all but it at most."""
    count = len(cycles)
    for distance in range(1, count):
        needed -= cycles[(number + step * distance) % count]
        if needed <= 0:
            return distance
    return count - 1


def _refusal(
    template: Template,
    pitches: Pitches,
    configuration: Configuration,
    room: tuple[int, int, int],
) -> CapacityError:
    _, lifetimes = _lifetimes([template], pitches, configuration)
    needed = (
        (
            "activation_bytes",
            room[2],
            sum(e.size for e in lifetimes.values()),
        ),
        ("instruction_words", room[0], template.code_words),
        ("weight_words", room[1], template.constant_words(configuration)),
    )
    name, there, wanted = next((each for each in needed if each[2] > each[1]), needed[0])
    return CapacityError(
        f"{template.work.name!r} must fit {name} ({there}) in a step from DRAM, not need {wanted}"
    )


def program_of(
    segment: Segment, number: int, copy: int, weight_word: int, configuration: Configuration
) -> Streams:
    """Both streams of a work where it lies, without their HALT and the reading of notes.

    Parameters
    ----------
    segment : Segment
    number : int
        Of the work.
    copy : int
    weight_word : int
        The first one of its constants.
    configuration : Configuration
    """
    template, offset = segment.templates[number], copy * segment.copy_bytes
    work, built = template.work, template.built
    if isinstance(work, ProductWork):
        source, *masks = (segment.places[key_of(each)].address for each in work.reads)
        result = segment.places[key_of(work.writes[0])].address
        mask = masks[0] if masks else 0
        shifts = Shifts(weight_word, source + offset, result + offset, mask + offset)
    elif isinstance(work, BlockWork):
        block = segment.blocks[number] + offset
        shifts = Shifts(weight_word, block, block)
    else:
        built = work.build(segment.places, configuration, halved=template.halved)
        shifts = Shifts(weight_word, offset, offset, offset)
    return moved(built.streams, shifts)


def code_of(streams: Streams) -> tuple[bytes, int]:
    """A program's bytes, and the word in them with which its post stream begins."""
    matrix = streams.matrix + HALT
    return matrix + streams.post + HALT, len(matrix) // 4
