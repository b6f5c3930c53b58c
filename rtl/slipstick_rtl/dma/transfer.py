"""The DMA's instructions: what they do, and how they lie in DRAM. Needs no Amaranth.

An instruction is ``TRANSFER_WORDS`` words of ``WORD_BYTES`` bytes, little endian. The DMA executes
those that it is given over the link, one after the other. A ``JUMP`` among them sends it to a list
in DRAM, which it executes until an ``END``. After an error nothing is executed before a reset.

A LOAD or STORE moves a box: *rows* of *runs* of bytes. On the chip a run begins at any byte. In
DRAM it begins with a word, and its last word is filled up with bytes that nobody looks at. Runs and
rows have pitches on either side.

**Weights with ninth bits** go in groups of eight cells of nine bits. In DRAM the ninth bits of
eight groups are a word, a byte for each group, and the eight groups' cells are the words behind it.
Where all ninth bits are 0, as behind a layer's parameters, or all cells are 0, as where parameters
take more room than weights, a LOAD of CELLS or NINTHS brings the other kind only. Without ninth
bits, weights are eight bytes to a word. Instructions are two words of 32 bits.

**CRC.** Each LOAD with ``checked`` names the CRC-32 (Ethernet's, zlib's) of all words that it
reads. If what comes is another, the DMA ends with MEMORY_CORRUPT: nothing that follows is executed,
and no run is begun.

**Weights that learn.** An UPDATE takes a step of training: ``master - psr(sum, shift)``, as
docs/explanation/training.md defines it. The sums of the gradient lie in the activation memory as
DRAINs with AS_BYTES leave them: ``SUM_BYTES`` planes, ``chip_run_pitch`` bytes apart. A row is the
bytes of eight weights, side by side in each plane. In DRAM it has a *master row* of
``MASTER_WORDS`` words: two with the eight masters, of 16 bits each, and one with the eight weights.

**Blocks that are turned.** Programs have the same weights in other orders. A LOAD of TURNED brings
blocks of eight words, ``dram_run_pitch`` words apart, and turns them: byte j of word i becomes byte
i of run j. A row of its box is a block; of each, ``runs`` runs of ``run_bytes`` bytes are written,
at most eight of eight.
"""

from dataclasses import dataclass
from enum import IntEnum

WORD_BYTES = 8
TRANSFER_WORDS = 4
TRANSFER_BYTES = WORD_BYTES * TRANSFER_WORDS
GROUP_CELLS = 8
"""Cells of the weight memory that a word of DRAM holds."""
SUM_BYTES = 4
"""Bytes of a gradient's sum: the planes that an UPDATE reads."""
MASTER_WORDS = 3
"""Words of a master row: eight masters and their weights."""
TURNED_WORDS = 8
"""Words of a block that is turned."""
SHIFT_BITS = 6
"""Bits of an UPDATE's shift."""
STILL_SHIFT = 32
"""Shift from which on an UPDATE changes no weight."""


class Operation(IntEnum):
    """The operation of an instruction of the DMA."""

    END = 0
    """Ends a list. Otherwise it does nothing."""

    LOAD = 1
    """Copies from DRAM to the chip."""

    STORE = 2
    """Copies activations to DRAM: ``chip`` and its pitches are multiples of the lanes."""

    RUN = 3
    """Starts the instruction streams at ``pcs``, once all bytes of LOADs are in their memories.
    What follows is executed meanwhile."""

    WAIT = 4
    """Until the streams have ended. BAD_INSTRUCTION if one met a bad instruction."""

    JUMP = 5
    """Goes on with the instructions in DRAM, from the word ``dram`` on."""

    UPDATE = 6
    """Weights learn: eight per row, from the master row at ``dram`` on; training hardware only."""


class Target(IntEnum):
    """The chip's memory that a LOAD writes; what ``chip`` counts in it."""

    ACTIVATIONS = 0
    """Bytes."""

    WEIGHTS = 1
    """Groups of eight cells. One run."""

    INSTRUCTIONS = 2
    """Words of 32 bits. One run."""

    CELLS = 3
    """As WEIGHTS, but only the cells come: the ninth bits become 0."""

    NINTHS = 4
    """As WEIGHTS, but only the ninth bits come, a byte for each group: the cells become 0."""

    TURNED = 5
    """As ACTIVATIONS, but each row is a block that is turned; training hardware only."""

    @property
    def boxed(self) -> bool:
        """It has runs and rows."""
        return self in (Target.ACTIVATIONS, Target.TURNED)


FIELDS: tuple[tuple[tuple[str, int], ...], ...] = (
    (("operation", 4), ("target", 3), ("checked", 1), ("chip", 24), ("dram", 32)),
    (("run_bytes", 16), ("runs", 16), ("rows", 16), ("chip_run_pitch", 16)),
    (("chip_row_pitch", 24), ("dram_run_pitch", 16), ("dram_row_pitch", 24)),
    (("crc", 32), ("pc_0", 16), ("pc_1", 16)),
)
"""Names and bits of each word's fields, the lowest bit first."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """An instruction of the DMA.

    Parameters
    ----------
    operation : Operation
    target : Target
        Of a LOAD.
    checked : bool
        A LOAD's words have the CRC ``crc``.
    chip : int
        Where the first run begins on the chip.
    dram : int
        Where it begins in DRAM, in words.
    run_bytes, runs, rows : int
        Bytes of a run; runs of a row; rows.
    chip_run_pitch, chip_row_pitch : int
        From run to run and from row to row, in bytes.
    dram_run_pitch, dram_row_pitch : int
        The same in words.
    crc : int
    pcs : tuple of int
        Of a RUN: a word of the instruction memory per stream.
    shift : int
        Of an UPDATE, in the place of the first of ``pcs``.

    Raises
    ------
    ValueError
        If a field breaks its rule.
    """

    operation: Operation
    target: Target = Target.ACTIVATIONS
    checked: bool = False
    chip: int = 0
    dram: int = 0
    run_bytes: int = 1
    runs: int = 1
    rows: int = 1
    chip_run_pitch: int = 0
    chip_row_pitch: int = 0
    dram_run_pitch: int = 0
    dram_row_pitch: int = 0
    crc: int = 0
    pcs: tuple[int, int] = (0, 0)
    shift: int = 0

    def __post_init__(self) -> None:
        for name in ("run_bytes", "runs", "rows"):
            if not 1 <= getattr(self, name) <= 1 << 16:
                raise ValueError(f"{name} must be within 1..65536, not {getattr(self, name)}")
        fields = self._fields()
        for name, bits in (field for word in FIELDS for field in word if field[0]):
            if not 0 <= fields[name] < 1 << bits:
                raise ValueError(f"{name} must be within 0..{(1 << bits) - 1}, not {fields[name]}")
        if not self.target.boxed and (self.runs, self.rows) != (1, 1):
            raise ValueError(
                f"a LOAD of {self.target.name} must be one run, not {self.rows} x {self.runs}"
            )
        if self.target is Target.TURNED:
            self._check_turned()
        if self.operation is Operation.UPDATE:
            self._check_update()

    def _check_turned(self) -> None:
        if self.operation is not Operation.LOAD:
            raise ValueError(f"only a LOAD turns blocks, not {self.operation.name}")
        if max(self.runs, self.run_bytes) > TURNED_WORDS:
            raise ValueError(
                f"a turned block must have at most {TURNED_WORDS} runs of {TURNED_WORDS} bytes,"
                f" not {self.runs} of {self.run_bytes}"
            )

    def _check_update(self) -> None:
        if (self.target, self.run_bytes, self.runs) != (Target.ACTIVATIONS, WORD_BYTES, SUM_BYTES):
            raise ValueError(
                f"an UPDATE must read {SUM_BYTES} runs of {WORD_BYTES} bytes of the activations,"
                f" not {self.runs} of {self.run_bytes} of the {self.target.name}"
            )
        if not 0 <= self.shift < 1 << SHIFT_BITS:
            raise ValueError(f"shift must be within 0..{(1 << SHIFT_BITS) - 1}, not {self.shift}")

    @property
    def run_words(self) -> int:
        """Words of DRAM that a run takes."""
        return -(-self.run_bytes // WORD_BYTES)

    @property
    def dram_runs(self) -> int:
        """Runs of a row in DRAM: those of the chip, or the words of a block that is turned."""
        return TURNED_WORDS if self.target is Target.TURNED else self.runs

    @property
    def words(self) -> int:
        """Words of DRAM that are moved; of an UPDATE those that are read."""
        if self.operation is Operation.UPDATE:
            return MASTER_WORDS * self.rows
        return self.run_words * self.dram_runs * self.rows

    def _fields(self) -> dict[str, int]:
        """Counts are stored less one."""
        updates = self.operation is Operation.UPDATE
        return {
            **{name: int(value) for name, value in vars(self).items() if name != "pcs"},
            **{name: getattr(self, name) - 1 for name in ("run_bytes", "runs", "rows")},
            "pc_0": self.shift if updates else self.pcs[0],
            "pc_1": self.pcs[1],
        }

    def pack(self) -> bytes:
        """As it lies in DRAM."""
        fields, packed = self._fields(), b""
        for word in FIELDS:
            value, place = 0, 0
            for name, bits in word:
                value |= fields.get(name, 0) << place
                place += bits
            packed += value.to_bytes(WORD_BYTES, "little")
        return packed

    @classmethod
    def unpack(cls, packed: bytes) -> "Transfer":
        """The instruction of ``TRANSFER_BYTES`` bytes.

        Raises
        ------
        ValueError
            If there is no such operation or target, or a field breaks its rule.
        """
        if len(packed) != TRANSFER_BYTES:
            raise ValueError(f"an instruction must be {TRANSFER_BYTES} bytes, not {len(packed)}")
        fields = dict[str, int]()
        for number, word in enumerate(FIELDS):
            value = int.from_bytes(packed[WORD_BYTES * number :][:WORD_BYTES], "little")
            for name, bits in word:
                fields[name] = value & (1 << bits) - 1
                value >>= bits
        fields.pop("", None)
        pcs = fields.pop("pc_0"), fields.pop("pc_1")
        for name in ("run_bytes", "runs", "rows"):
            fields[name] += 1
        operation = Operation(fields["operation"])
        updates = operation is Operation.UPDATE
        return cls(
            **{
                **fields,
                "operation": operation,
                "target": Target(fields["target"]),
                "checked": bool(fields["checked"]),
            },
            pcs=(0, 0) if updates else pcs,
            shift=pcs[0] % (1 << SHIFT_BITS) if updates else 0,
        )


class DmaStatus(IntEnum):
    """The result of a list of instructions."""

    OK = 0
    MEMORY_CORRUPT = 1
    """The words of a LOAD have another CRC."""

    BAD_TRANSFER = 2
    """An operation or target that there is none of."""

    BAD_INSTRUCTION = 3
    """A stream met a bad instruction."""
